// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func found(t *testing.T, c client.Client, namespace, name string) explain.Objects {
	t.Helper()
	objects, err := why.Find(t.Context(), c, why.Target{Namespace: namespace, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func forbidden(resource, why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(why))
}

func TestCancelDeletesTheWorkThatWasFound(t *testing.T) {
	for _, row := range []struct{ name, question, says string }{
		{"pulls", "Delete AppWrapper pulls in namespace blue, which is Running, and all that it has created?", "AppWrapper pulls was deleted in namespace blue\n"},
		{"train", "Delete PyTorchJob train in namespace blue, which is Admitted, and all that it has created?", "PyTorchJob train was deleted in namespace blue\n"},
	} {
		var deleted string
		c := cluster(t, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			var all client.DeleteOptions
			all.ApplyOptions(options)
			deleted = o.GetName() + " " + string(*all.Preconditions.UID)
			return nil
		}})
		objects := found(t, c, "blue", row.name)
		var out bytes.Buffer
		err := work.Cancel(t.Context(), c, objects, &out)
		if question := work.Ending([]explain.Objects{objects}); err != nil || out.String() != row.says || question != row.question || deleted != row.name+" uid-"+row.name {
			t.Errorf("got %q, %q, %s, %v", question, &out, deleted, err)
		}
	}
}

func TestWhatCannotBeCancelledIsASentence(t *testing.T) {
	for want, row := range map[string]struct {
		namespace, name string
		err             error
	}{
		"you may not delete appwrappers in namespace blue: ask an administrator for a role with this right": {"blue", "pulls", forbidden("appwrappers", "no role")},
		"cannot delete appwrappers in namespace blue: appwrappers is forbidden: a policy denied request":    {"blue", "pulls", forbidden("appwrappers", "a policy denied request")},
		"AppWrapper step belongs to Run study: use 'mlbatch cancel run/study'":                              {"red", "step", nil},
	} {
		c := cluster(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return row.err }})
		var out bytes.Buffer
		err := work.Cancel(t.Context(), c, found(t, c, row.namespace, row.name), &out)
		wording.OneSentence(t, out.String(), err, want)
	}
}

func TestRetryCreatesACopyOfWhatTheUserHasWritten(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	change, err := work.ParseChange([]string{"retryLimit=0", "example.com/Run=a=b", "example.com/none-"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lost-2", "lost-3"} { // at the same time
		var out bytes.Buffer
		if err := work.Retry(t.Context(), c, found(t, c, "red", "lost"), change, &out); err != nil || out.String() != "AppWrapper "+name+" was submitted in namespace red\n" {
			t.Fatalf("got %q, %v", &out, err)
		}
		aw := found(t, c, "red", name).AppWrapper
		wanted := map[string]string{"note": "mine", "codeflare.dev/retry-of": "lost", v1beta2.RetryLimitAnnotation: "0", "example.com/Run": "a=b"}
		if diff := cmp.Diff(wanted, aw.Annotations); diff != "" || aw.Labels["team"] != "red" || aw.Spec.Suspend || aw.Spec.Components[0].PodSetInfos != nil || aw.Status.Phase != "" {
			t.Errorf("%s is %+v", name, aw)
		}
		if _, tracked := aw.Labels["app.kubernetes.io/instance"]; tracked {
			t.Errorf("%s would be pruned: it has the labels %v", name, aw.Labels)
		}
	}
	copied := found(t, c, "red", "lost-3").AppWrapper
	copied.Status.Phase = v1beta2.AppWrapperFailed
	var out bytes.Buffer
	if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: copied}, work.Change{}, &out); err != nil || out.String() != "AppWrapper lost-4 was submitted in namespace red\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

// ended is work of these resources that has ended, and keeps them.
func ended(t *testing.T, c client.Client, name string, resources ...string) *v1beta2.AppWrapper {
	t.Helper()
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "red"}, Status: v1beta2.AppWrapperStatus{Phase: v1beta2.AppWrapperSucceeded}}
	for _, resource := range resources {
		raw, err := yaml.YAMLToJSON([]byte(resource))
		if err != nil {
			t.Fatal(err)
		}
		aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	}
	aw.Status.Conditions = []metav1.Condition{{Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionTrue}}
	if err := c.Create(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	return aw
}

const (
	carries = "{apiVersion: v1, kind: ConfigMap, metadata: {name: sweep-program}, data: {main.py: sweep-program}}"
	trains  = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: sweep, labels: {app: sweep}}, spec: {backoffLimit: 12345678901234567, template: {
  metadata: {labels: {app: sweep, scheduling.x-k8s.io/pod-group: sweep}},
  spec: {containers: [{name: sweep, command: [python, sweep], env: [{name: CKPT, value: /data/sweep-2024}, {name: RUN, value: sweep}], envFrom: [{configMapRef: {name: other}}]}],
    volumes: [{name: p, configMap: {name: sweep-program}}, {name: d, persistentVolumeClaim: {claimName: sweep}}],
    topologySpreadConstraints: [{labelSelector: {matchLabels: {training.kubeflow.org/job-name: sweep}}}]}}}}`
	gangs = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: sweep}}"
	alone = "{apiVersion: batch/v1, kind: Job, metadata: {name: mine}}"
)

// So a copy need not wait until the old resources are gone. What the program reads stays: it may name a checkpoint.
func TestTheResourcesOfACopyHaveNewNames(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	old := ended(t, c, "sweep", carries, trains, gangs, alone)
	for _, suffix := range []string{"-2", "-3"} {
		var out bytes.Buffer
		if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, &out); err != nil {
			t.Fatal(err)
		}
		old = found(t, c, "red", "sweep"+suffix).AppWrapper
		new := strings.NewReplacer("name: sweep-program", "name: sweep"+suffix+"-program", "metadata: {name: sweep", "metadata: {name: sweep"+suffix, "pod-group: sweep", "pod-group: sweep"+suffix,
			"job-name: sweep", "job-name: sweep"+suffix, "metadata: {name: mine", "metadata: {name: mine"+suffix)
		for i, before := range []string{carries, trains, gangs, alone} {
			want, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(new.Replace(before), suffix+suffix, suffix)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(old.Spec.Components[i].Template.Raw)); diff != "" {
				t.Errorf("component %d (-want +got)\n%s", i, diff)
			}
		}
		old.Status.Phase = v1beta2.AppWrapperFailed
	}
}

// What the AppWrapper does not wrap has the name that its owner gave it, though it may be that of something inside.
func TestWhatACopyDoesNotWrapKeepsItsName(t *testing.T) {
	const pod = `spec: {template: {metadata: {labels: {scheduling.x-k8s.io/pod-group: own, training.kubeflow.org/job-name: own, job-name: own, workload.codeflare.dev/appwrapper: own}},
  spec: {imagePullSecrets: [{name: own}], containers: [{name: own, envFrom: [{configMapRef: {name: own}}, {secretRef: {name: own}}],
    env: [{name: A, valueFrom: {configMapKeyRef: {name: own, key: a}}}, {name: B, valueFrom: {secretKeyRef: {name: own, key: b}}}]}],
    volumes: [{name: a, configMap: {name: own}}, {name: b, secret: {secretName: own}}, {name: c, projected: {sources: [{secret: {name: own}}, {configMap: {name: own}}]}}]}}}}`
	for what, row := range map[string]struct {
		wrapped []string
		renamed []string // what is renamed in the first
	}{
		"a Job":                     {[]string{"{apiVersion: batch/v1, kind: Job, metadata: {name: own}, " + pod}, []string{"metadata: {name: own", " job-name: own", "appwrapper: own"}},
		"a Job of another name":     {[]string{"{apiVersion: batch/v1, kind: Job, metadata: {name: alone}, " + pod}, []string{"metadata: {name: alone", "appwrapper: own"}},
		"a PyTorchJob and a Secret": {[]string{"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: own}, " + pod, "{apiVersion: v1, kind: Secret, metadata: {name: own}}"}, []string{"metadata: {name: own", "org/job-name: own", "appwrapper: own", "Secrets: [{name: own", "secretRef: {name: own", "secretKeyRef: {name: own", "secretName: own", "secret: {name: own"}},
	} {
		c := cluster(t, interceptor.Funcs{})
		old := ended(t, c, "own", row.wrapped...)
		if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, io.Discard); err != nil {
			t.Fatal(err)
		}
		want := row.wrapped[0]
		for _, text := range row.renamed {
			want = strings.ReplaceAll(want, text, text+"-2")
		}
		whole, err := yaml.YAMLToJSON([]byte(want))
		if diff := cmp.Diff(string(whole), string(found(t, c, "red", "own-2").AppWrapper.Spec.Components[0].Template.Raw)); diff != "" || err != nil {
			t.Errorf("%s (-want +got)\n%s%v", what, diff, err)
		}
	}
}

// A number of the user's own is no number of a copy.
func TestACopyKeepsTheNumbersOfTheUser(t *testing.T) {
	for name, row := range map[string]struct{ job, first, second string }{
		"exp-5":    {"job-5", "job-5-2", "job-5-3"},
		"exp-2":    {"job-2", "job-2-2", "job-2-3"},
		"llama-70": {"resnet-70", "resnet-70-2", "resnet-70-3"},
		"llama":    {"resnet-2", "resnet-2-2", "resnet-2-3"},
		"run-7":    {"run-7-main", "run-7-2-main", "run-7-3-main"},
	} {
		c := cluster(t, interceptor.Funcs{})
		old := ended(t, c, name, "{apiVersion: batch/v1, kind: Job, metadata: {name: "+row.job+"}}")
		for _, copied := range []struct{ name, job string }{{name + "-2", row.first}, {name + "-3", row.second}} {
			if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, io.Discard); err != nil {
				t.Fatal(err)
			}
			old = found(t, c, "red", copied.name).AppWrapper
			if raw := string(old.Spec.Components[0].Template.Raw); !strings.Contains(raw, `"name":"`+copied.job+`"`) {
				t.Errorf("%s has %s, want %s", copied.name, raw, copied.job)
			}
			old.Status.Phase = v1beta2.AppWrapperFailed
		}
	}
}

// A copy with the old names waits until these are free.
func TestNamesThatOthersMayKnowStay(t *testing.T) {
	for what, resource := range map[string]string{
		"a Service is called by its name":  "{apiVersion: v1, kind: Service, metadata: {name: held}}",
		"a JobSet's pods call each other":  "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: held}}",
		"a claim has data":                 "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: held}}",
		"a program calls a pod":            "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: held}, spec: {args: ['--master=held-master-0:29500']}}",
		"a program calls a pod in a URL":   "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: held}, spec: {args: ['tcp://held-worker-3']}}",
		"the new name would be too long":   "{apiVersion: batch/v1, kind: Job, metadata: {name: " + strings.Repeat("x", 49) + "}}",
		"nobody knows what this kind does": "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: held}}",
	} {
		c := cluster(t, interceptor.Funcs{})
		old := ended(t, c, "held", resource, alone)
		var out bytes.Buffer
		err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, &out)
		if err == nil || err.Error() != "AppWrapper held keeps its resources, whose names another one would need: 'mlbatch why held' says until when" {
			t.Errorf("%s: got %v", what, err)
		}
		old.Status.Conditions = nil
		if err := c.Update(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, &out); err != nil {
			t.Errorf("%s: got %v", what, err)
		}
		if raw := string(found(t, c, "red", "held-2").AppWrapper.Spec.Components[1].Template.Raw); !strings.Contains(raw, `"mine"`) {
			t.Errorf("%s: a part has another name: %s", what, raw)
		}
		second := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, work.Change{}, &out)
		wording.OneSentence(t, "", second, "AppWrapper held-2 has resources whose names another one would need: wait for its end with 'mlbatch wait held-2', or cancel it")
	}
}

func TestRetryChangesSettings(t *testing.T) {
	job, err := submit.New("0.0.1", map[string]any{"containerImage": "a", "jobName": "set", "mainProgram": "train.py", "namespace": "red"})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, interceptor.Funcs{})
	var out bytes.Buffer
	if err := job.Create(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	old := found(t, c, "red", "set").AppWrapper
	old.Status.Phase = v1beta2.AppWrapperFailed
	change, err := work.ParseChange([]string{"retryLimit=0"})
	if err != nil {
		t.Fatal(err)
	}
	change.Settings, change.Version = []string{"numGpusPerPod=2", "environmentVariables[0].name=LR", "environmentVariables[0].value=0.1"}, "0.0.1"
	for want, wrong := range map[string]error{"it can never run": errors.New("it can never run"), "": nil} {
		change.Check = func(context.Context, submit.Job) error { return wrong }
		err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: old}, change, &out)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
	aw := found(t, c, "red", "set-2").AppWrapper
	raw := string(aw.Spec.Components[0].Template.Raw)
	if !strings.Contains(raw, `"nvidia.com/gpu"`) || !strings.Contains(raw, `"LR"`) || aw.Annotations[v1beta2.RetryLimitAnnotation] != "0" || aw.Annotations["codeflare.dev/retry-of"] != "set" {
		t.Errorf("got %+v", aw)
	}
	if err := work.Retry(t.Context(), c, found(t, c, "red", "lost"), change, &out); err == nil || !strings.HasPrefix(err.Error(), "AppWrapper lost does not say of which settings it was made") {
		t.Errorf("got %v", err)
	}
	err = work.Retry(t.Context(), c, explain.Objects{Run: &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "study"}}}, change, &out)
	wording.OneSentence(t, "", err, "settings are those of 'mlbatch submit', and Run study has none: change its manifest")
}

func TestAnAnnotationThatCannotBeReadIsASentence(t *testing.T) {
	for _, text := range []string{"retryLimit", "retryLimit-=0", "=0", "-", "a/b/c=0", "a b=1", ""} {
		_, err := work.ParseChange([]string{text})
		wording.OneSentence(t, "", err, "cannot read --annotate "+text+": ")
	}
}

func TestWhatCannotBeRepeatedIsASentence(t *testing.T) {
	for want, row := range map[string]struct {
		namespace, name string
		err             error
	}{
		"PyTorchJob train is not wrapped: submit it again from its manifest, or wrap it with 'mlbatch pack'":           {"blue", "train", nil},
		"AppWrapper pulls has not ended: it is Running: wait for its end with 'mlbatch wait pulls'":                    {"blue", "pulls", nil},
		"AppWrapper step belongs to Run study: use 'mlbatch retry run/study'":                                          {"red", "step", nil},
		"you may not create appwrappers in namespace red: ask an administrator for a role with this right":             {"red", "lost", forbidden("appwrappers", "no role")},
		"another AppWrapper lost-2 was created at this moment: run the command again":                                  {"red", "lost", apierrors.NewAlreadyExists(schema.GroupResource{}, "lost-2")},
		"cannot create appwrappers in namespace red: appwrappers is forbidden: admission webhook x denied the request": {"red", "lost", forbidden("appwrappers", "admission webhook x denied the request")},
	} {
		c := cluster(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return row.err }})
		var out bytes.Buffer
		err := work.Retry(t.Context(), c, found(t, c, row.namespace, row.name), work.Change{}, &out)
		wording.OneSentence(t, out.String(), err, want)
	}
}
