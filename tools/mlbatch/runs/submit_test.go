// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

const (
	dataSet = `{apiVersion: codeflare.dev/v1alpha1, kind: DataSet, metadata: {name: survey}, spec: {pvc: {claimName: answers}}}`
	small   = `{apiVersion: codeflare.dev/v1alpha1, kind: RunSizeConfiguration, metadata: {name: small}, spec: {config: {tiny: {workers: 1, cpu: 1, memory: 1Gi, gpu: 0}}}}`
)

// read reads manifests for namespace blue.
func read(t *testing.T, documents ...string) runs.Manifests {
	t.Helper()
	m, err := runs.Read([]string{file(t, documents...)}, nil, "blue")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// submitted checks manifests and submits them.
func submitted(t *testing.T, c client.Client, m runs.Manifests) (out string, notes []string, err error) {
	t.Helper()
	_, notes, err = m.Check(t.Context(), c)
	if err != nil {
		return "", notes, err
	}
	var lines strings.Builder
	_, err = m.Submit(t.Context(), c, &lines)
	return lines.String(), notes, err
}

// Only the Application comes from another namespace, and those of a workflow with it.
func TestAnApplicationOfAnotherNamespaceIsRead(t *testing.T) {
	here, there := &v1alpha1.Application{}, &v1alpha1.Application{}
	here.Namespace, here.Name, here.Spec = "blue", "survey", v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "a", Command: "here"}
	there.Namespace, there.Name, there.Spec = "red", "survey", v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "a", Command: "there"}
	steps := &v1alpha1.Application{}
	steps.Namespace, steps.Name, steps.Spec = "red", "steps", v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{"survey"}}
	c := cluster(t, interceptor.Funcs{}, here, there, steps)
	for name, says := range map[string]string{"survey": "", "steps": "", "none": "there is no Application none in namespace red yet"} {
		m := read(t, strings.Replace(run, "{name: survey}", "{namespace: red, name: "+name+"}", 1))
		plans, _, err := m.Check(t.Context(), c)
		if says != "" {
			wording.Wanted(t, err, says)
			continue
		}
		if err != nil || len(plans) != 1 || plans[0].AppWrapper.Namespace != "blue" || !strings.Contains(string(plans[0].AppWrapper.Spec.Components[0].Template.Raw), `"there"`) {
			t.Errorf("%s: got %+v, %v", name, plans, err)
		}
	}
}

// stored counts the objects of a team.
func stored(t *testing.T, c client.Client) (count int) {
	t.Helper()
	for _, list := range []client.ObjectList{&v1alpha1.ApplicationList{}, &v1alpha1.DataSetList{}, &v1alpha1.RunList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		count += meta.LenList(list)
	}
	return count
}

func TestRunsComeAfterWhatTheyNeed(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	m := read(t, strings.Replace(run, "}}}", "}, size: tiny}}", 1), app, dataSet, small)
	out, _, err := submitted(t, c, m)
	want := "RunSizeConfiguration small was applied\n" +
		"Application survey was applied in namespace blue\n" +
		"DataSet survey was applied in namespace blue\n" +
		"Run survey-1 was submitted in namespace blue\n"
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	// What is there is changed, and not replaced: apply it again with another command.
	changed := strings.Replace(app, "command: date", "command: who", 1)
	if _, _, err := submitted(t, c, read(t, changed, strings.Replace(run, "survey-1", "survey-2", 1))); err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.Application
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "survey"}, &got); err != nil || got.Spec.Command != "who" || got.Spec.Image != "a" {
		t.Errorf("got %+v, %v", got.Spec, err)
	}
}

func TestWhatTheFilesLackIsOnTheCluster(t *testing.T) {
	theirs := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "survey"}}
	theirs.Spec = v1alpha1.ApplicationSpec{API: "shell", Image: "theirs", Command: "date", Inputs: []v1alpha1.Input{{Name: "survey"}}}
	data := &v1alpha1.DataSet{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "survey"}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: "answers"}}}
	for name, row := range map[string]struct {
		documents []string
		image     string
	}{
		"all of it":                       {[]string{run}, "theirs"},
		"nothing":                         {[]string{run, app, dataSet}, "a"},
		"the data, and not the namespace": {[]string{run, strings.Replace(app, "command: date", "command: date, inputs: [{name: survey}]", 1)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, theirs, data)
			plans, _, err := read(t, row.documents...).Check(t.Context(), c)
			if err != nil || len(plans) != 1 || plans[0].Size.Name != "sm" || !strings.Contains(string(plans[0].AppWrapper.Spec.Components[0].Template.Raw), `"image":"`+row.image+`"`) {
				t.Errorf("got %+v, %v", plans, err)
			}
		})
	}
}

// A plan asks for no more than it needs, and checks nothing.
func TestAPlanTakesWhatTheFilesLackFromTheCluster(t *testing.T) {
	theirs := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "survey"}}
	theirs.Spec = v1alpha1.ApplicationSpec{API: "shell", Image: "theirs", Command: "date"}
	tiny := strings.Replace(run, "}}}", "}, size: tiny}}", 1)
	unreadable := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return forbidden("runsizeconfigurations")
	}}
	for name, row := range map[string]struct {
		c                 client.Client
		documents         []string
		image, note, says string
	}{
		"the Application is there":     {c: cluster(t, interceptor.Funcs{}, theirs), documents: []string{run}, image: "theirs"},
		"the file has another one":     {c: cluster(t, interceptor.Funcs{}, theirs), documents: []string{run, app}, image: "a"},
		"nothing is there":             {c: cluster(t, interceptor.Funcs{}), documents: []string{run}, says: "there is no Application survey"},
		"the file has the size":        {c: bare(t, interceptor.Funcs{}), documents: []string{tiny, app, small}, image: "a"},
		"nobody has a size":            {c: bare(t, interceptor.Funcs{}), documents: []string{tiny, app}, says: "there is no size tiny"},
		"the cluster has no Runs":      {c: noDefinitions(t), documents: []string{run, app}, image: "a", note: "nothing comes from the cluster: the cluster does not know Runs"},
		"nothing there can be read":    {c: cluster(t, unreadable), documents: []string{run, app}, image: "a", note: "nothing comes from the cluster: cannot list the RunSizeConfigurations"},
		"the cluster does not answer":  {c: gone(t), documents: []string{run, app}, says: "use --offline to plan without a cluster"},
		"what is there cannot be used": {c: cluster(t, interceptor.Funcs{}, theirs), documents: []string{tiny}, says: "there is no size tiny"},
	} {
		t.Run(name, func(t *testing.T) {
			plans, notes, err := read(t, row.documents...).PlanOn(t.Context(), row.c)
			if row.says != "" {
				wording.Wanted(t, err, row.says)
				return
			}
			if err != nil || len(plans) != 1 || !strings.Contains(string(plans[0].AppWrapper.Spec.Components[0].Template.Raw), `"image":"`+row.image+`"`) {
				t.Errorf("got %+v, %v", plans, err)
			}
			if got := strings.Join(notes, "; "); !strings.Contains(got, row.note) || row.note == "" && got != "" {
				t.Errorf("the notes are %q", got)
			}
		})
	}
}

// Manifests that were read from a cluster have fields that only it may set.
func TestARunThatWasReadFromAClusterIsSubmitted(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	exported := strings.Replace(run, "{name: survey-1}", "{name: survey-1, uid: u, resourceVersion: '7', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z', managedFields: []}", 1)
	exported = strings.Replace(exported, "spec:", "status: {phase: Failed}, spec:", 1)
	if _, _, err := submitted(t, c, read(t, app, exported)); err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.Run
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "survey-1"}, &got); err != nil || got.UID == "u" || got.Status.Phase != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatIsNotThereYetIsANote(t *testing.T) {
	full := strings.NewReplacer("command: date", "command: date, repo: 'https://h/a/b/tree/c', repoSecret: {name: git}, imagePullSecret: registry, envFrom: [{secretRef: {name: keys}}, {secretRef: {name: extra, optional: true}}, {configMapRef: {name: settings}}], inputs: [{name: survey}, {name: bucket}]").Replace(app)
	bucket := `{apiVersion: codeflare.dev/v1alpha1, kind: DataSet, metadata: {name: bucket}, spec: {s3: {endpoint: "http://s3", bucket: abc, secretName: bucket-keys}}}`
	hidden := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if key.Name == "keys" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no role"))
		}
		return c.Get(ctx, key, o, options...)
	}}
	c := cluster(t, hidden, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "settings"}})
	_, notes, err := submitted(t, c, read(t, full, dataSet, bucket, run))
	want := []string{
		"Run survey-1: there is no PersistentVolumeClaim answers in namespace blue: its pods need it",
		"Run survey-1: there is no Secret git in namespace blue: its pods need it",
		"Run survey-1: there is no Secret registry in namespace blue: its pods need it",
		"Run survey-1: there is no Secret bucket-keys in namespace blue: its pods need it",
		`Run survey-1: skipped a check: cannot look up Secret keys: secrets "keys" is forbidden: no role`,
	}
	if diff := cmp.Diff(want, notes); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// failing answers calls for one kind with an error.
func failing(kind string, err error) interceptor.Funcs {
	refuse := func(got string) error {
		if got == kind {
			return err
		}
		return nil
	}
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if err := refuse(o.(interface{ GetKind() string }).GetKind()); err != nil {
				return err
			}
			return c.Apply(ctx, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := refuse(o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refuse(fmt.Sprintf("%T", list)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}
}

// Nothing is created for any of these mistakes.
func TestWhatCannotBeSubmittedIsOneSentence(t *testing.T) {
	with := func(manifest, more string) string { return strings.Replace(manifest, "}}}", "}, "+more+"}}", 1) }
	torch := strings.NewReplacer("api: shell", "api: torch", "command: date", "command: a.py, torch: {backend: JobSet}").Replace(app)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "codeflare.dev", Resource: "applications"}, "survey", errors.New("Apply failed with 1 conflict:\n- .spec.image"))
	there := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "survey-1"}}
	second := strings.Replace(run, "survey-1", "survey-2", 1)
	for name, row := range map[string]struct {
		documents []string
		calls     interceptor.Funcs
		objects   []client.Object
		says      string
	}{
		"no Application":         {documents: []string{run}, says: "Run survey-1: there is no Application survey in namespace blue yet"},
		"an unknown size":        {documents: []string{app, with(run, "size: huge")}, says: "Run survey-1: there is no size huge; there are: lg, md, sm, xl, xs, xxl, xxs"},
		"no DataSet":             {documents: []string{run, strings.Replace(app, "command: date", "command: date, inputs: [{name: survey}]", 1)}, says: "there is no DataSet survey in namespace blue, which the Application needs"},
		"too large":              {documents: []string{app, with(run, "size: lg")}, says: "Run survey-1: the job can never be admitted: the job requests 32 of cpu, but ClusterQueue blue-queue can have at most 8, including what it can borrow"},
		"no quota for GPUs":      {documents: []string{app, with(run, "resources: {nvidia.com/gpu: 1}")}, says: "the job requests 2 of nvidia.com/gpu, but ClusterQueue blue-queue has no quota for it"},
		"no such queue":          {documents: []string{app, with(run, "queueName: fast")}, says: "Run survey-1: namespace blue has no queue fast: set queueName to one of: default-queue"},
		"no such priority":       {documents: []string{app, with(run, "priority: high")}, says: "Run survey-1: there is no PriorityClass high-priority: change priority, or ask an administrator"},
		"a kind that is missing": {documents: []string{torch, run}, says: "Run survey-1: the cluster does not serve JobSet: ask an administrator to enable jobset, or set torch.backend to PyTorchJob"},
		"two mistakes":           {documents: []string{app, with(run, "queueName: fast"), with(second, "priority: high")}, says: "one of: default-queue; Run survey-2: there is no PriorityClass"},
		"a Run that exists":      {documents: []string{app, run}, objects: []client.Object{there}, says: "namespace blue already has a Run survey-1: choose another name, or repeat it with 'mlbatch retry run/survey-1'"},
		"a second Run, refused":  {documents: []string{app, run, second}, calls: failing("survey-2", forbidden("runs")), says: `cannot create Run survey-2: runs.codeflare.dev "survey" is forbidden: no role`},
		"a conflict":             {documents: []string{app, run}, calls: failing("Application", conflict), says: "cannot apply Application survey, which was changed in another way: remove what differs from the file, or apply it with 'kubectl apply --server-side --force-conflicts': "},
		"sizes without the right": {documents: []string{app, run, small}, calls: failing("RunSizeConfiguration", forbidden("runsizeconfigurations")),
			says: "only an administrator may apply RunSizeConfiguration small: leave it out of the files: runsizeconfigurations.codeflare.dev"},
		"an Application without the right": {documents: []string{app, run}, calls: failing("Application", forbidden("applications")), says: "cannot apply Application survey: applications.codeflare.dev"},
		"an answer that is none":           {documents: []string{app, run}, calls: failing("*v1alpha1.DataSetList", apierrors.NewInternalError(errors.New("no\nleader"))), says: "cannot list the DataSets of namespace blue: Internal error occurred: no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, row.objects...)
			out, _, err := submitted(t, interceptor.NewClient(c, row.calls), read(t, row.documents...))
			wording.OneSentence(t, out, err, row.says)
			if now := stored(t, c); now != len(row.objects) {
				t.Errorf("there were %d objects, and are %d", len(row.objects), now)
			}
		})
	}
}

func TestAClusterThatCannotHaveRunsIsOneSentence(t *testing.T) {
	for name, row := range map[string]struct {
		cluster func(*testing.T) client.WithWatch
		says    string
	}{
		"no definitions":                {noDefinitions, "the cluster does not know Runs: an administrator sets codeflare.enabled in the values of the chart mlbatch"},
		"definitions that were deleted": {definitionsGone, "the cluster does not know Runs: "},
		"no cluster":                    {gone, "cannot list the RunSizeConfigurations: "},
		"a cluster that has no sizes":   {func(t *testing.T) client.WithWatch { return bare(t, interceptor.Funcs{}) }, "there is no size sm, nor any other: an administrator adds a RunSizeConfiguration"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := submitted(t, row.cluster(t), read(t, app, run))
			wording.OneSentence(t, out, err, row.says)
		})
	}
}

// Without the right to read sizes, the API server still decides.
func TestChecksWithoutRightsAreSkippedWithANote(t *testing.T) {
	c := cluster(t, failing("*v1alpha1.RunSizeConfigurationList", forbidden("runsizeconfigurations")))
	out, notes, err := submitted(t, c, read(t, app, run))
	if err != nil || !strings.Contains(out, "Run survey-1 was submitted") || len(notes) != 1 || !strings.Contains(notes[0], "an administrator can bind the role mlbatch-view-queues") {
		t.Errorf("got %q, %q, %v", out, notes, err)
	}
}

func TestFilesOfAnotherNamespaceThanTheFlag(t *testing.T) {
	err := read(t, app, in("red", run)).Only("blue")
	wording.OneSentence(t, "", err, "Run survey-1 has namespace red, but --namespace is blue: remove one of them")
	if err := read(t, app, run, small).Only("blue"); err != nil {
		t.Error(err)
	}
}
