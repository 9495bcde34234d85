// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestSettings(t *testing.T) {
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.yaml"), filepath.Join(folder, "second.yaml")
	for file, text := range map[string]string{first: "a: {b: 1, c: 2}\nd: x\n", second: "a: {b: 3}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Settings([]string{first, second, "-"}, []string{"a.c=4,e=true", "d=null"}, strings.NewReader("f: 5"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"b": 3.0, "c": int64(4)}, "d": nil, "e": true, "f": 5.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Settings([]string{"-"}, nil, strings.NewReader("a: 1\na: 2")); err == nil || !strings.HasPrefix(err.Error(), "cannot read the settings in -: ") {
		t.Errorf("a setting that is there twice gives %v", err)
	}
}

// job renders a job of two pods in the namespace blue.
func job(t *testing.T, settings map[string]any) Job {
	t.Helper()
	all := map[string]any{"jobName": "train", "containerImage": "a", "numPods": 2}
	for value, setting := range settings {
		all[value] = setting
	}
	j, err := New("0.0.1", all)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.In("", "blue"); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestTheNamespaceOfAJob(t *testing.T) {
	for name, row := range map[string]struct {
		own             any
		chosen, present string
		want, says      string
	}{
		"in the settings": {own: "a", present: "c", want: "a"},
		"with the flag":   {chosen: "b", present: "c", want: "b"},
		"by the context":  {present: "c", want: "c"},
		"twice the same":  {own: "a", chosen: "a", want: "a"},
		"nowhere":         {says: "set the namespace of your team with --namespace"},
		"in two ways":     {own: "a", chosen: "b", says: "the settings have namespace a, but --namespace is b: remove one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := New("0.0.1", map[string]any{"jobName": "a", "containerImage": "a", "namespace": row.own})
			if err != nil {
				t.Fatal(err)
			}
			err = j.In(row.chosen, row.present)
			right := j.appWrapper.Namespace == row.want && strings.Contains(j.Manifest, fmt.Sprintf("  namespace: %q\n", row.want))
			if row.says == "" && (err != nil || !right) || row.says != "" && (err == nil || err.Error() != row.says) {
				t.Errorf("got %q, %v", j.appWrapper.Namespace, err)
			}
		})
	}
}

// cluster returns a cluster on which team blue has four CPUs and can borrow four more.
func cluster(t *testing.T, calls interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	named := func(o client.Object, name string) client.Object { o.SetName(name); return o }
	local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "default-queue"}}
	local.Spec.ClusterQueue = "blue-queue"
	lost := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "lost"}}
	lost.Spec.ClusterQueue = "gone"
	other := local.DeepCopy()
	other.Namespace = "red"
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(kinds(scheme)).WithInterceptorFuncs(calls).WithStatusSubresource(&v1beta2.AppWrapper{}).WithObjects(
		named(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "blue"}}}, "blue"),
		named(&corev1.Namespace{}, "red"), named(&corev1.Namespace{}, "empty"), local, lost, other,
		named(&schedulingv1.PriorityClass{}, "default-priority"), named(&kueue.WorkloadPriorityClass{}, "urgent"),
		clusterQueue("blue-queue"), clusterQueue("other-queue"),
	).Build()
}

// kinds maps the kinds that the cluster serves: JobSet is one of them, PodGroup is not.
func kinds(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}, meta.RESTScopeNamespace)
	return mapper
}

func clusterQueue(name string) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.CohortName = "all"
	q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	flavor := kueue.FlavorQuotas{Name: "nodes"}
	for resourceName, amount := range map[corev1.ResourceName]string{"cpu": "4", "memory": "1Ti"} {
		flavor.Resources = append(flavor.Resources, kueue.ResourceQuota{Name: resourceName, NominalQuota: resource.MustParse(amount)})
	}
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{flavor}}}
	return q
}

func TestCheckSaysWhyAJobCanNeverRun(t *testing.T) {
	for name, row := range map[string]struct {
		settings  map[string]any
		namespace string
		want      string
	}{
		"a job that fits":                              {},
		"a job that fits with borrowed quota":          {settings: map[string]any{"numCpusPerPod": 4}},
		"a JobSet that fits":                           {settings: map[string]any{"numCpusPerPod": 4, "backend": "jobset", "podGroup": false}},
		"a job whose queue is not known yet":           {settings: map[string]any{"queueName": nil, "numCpusPerPod": 400}},
		"a job that is too large":                      {settings: map[string]any{"numCpusPerPod": 5}, want: "the job can never be admitted: the job requests 10 of cpu, but ClusterQueue blue-queue can have at most 8, including what it can borrow"},
		"a JobSet that is too large":                   {settings: map[string]any{"numCpusPerPod": 5, "backend": "jobset", "podGroup": false}, want: "the job can never be admitted: the job requests 10 of cpu, but ClusterQueue blue-queue can have at most 8, including what it can borrow"},
		"a job that requests a resource without quota": {settings: map[string]any{"numGpusPerPod": 8}, want: "the job can never be admitted: the job requests 16 of nvidia.com/gpu, but ClusterQueue blue-queue has no quota for it"},
		"a job that requests zero GPUs":                {settings: map[string]any{"emitZeroResources": true}},
		"a kind that the cluster does not serve":       {settings: map[string]any{"backend": "jobset"}, want: "the cluster does not serve PodGroup: ask an administrator to enable coscheduler, or set podGroup to false"},
		"a queue that does not exist":                  {settings: map[string]any{"queueName": "blue-queue"}, want: "namespace blue has no queue blue-queue: set queueName to one of: default-queue, lost"},
		"a namespace without queues":                   {namespace: "empty", want: "namespace empty has no queue: choose the namespace of a team with --namespace"},
		"a queue whose ClusterQueue does not exist":    {settings: map[string]any{"queueName": "lost"}, want: "queue lost: there is no ClusterQueue gone"},
		"a queue of another team":                      {namespace: "red", want: "the job can never be admitted: ClusterQueue blue-queue admits no work from namespace red"},
		"a priority that does not exist":               {settings: map[string]any{"priority": "high-priority"}, want: "there is no PriorityClass high-priority: change priority, or ask an administrator"},
		"a class that exists":                          {settings: map[string]any{"workloadPriorityClass": "urgent"}},
		"a class that does not exist":                  {settings: map[string]any{"workloadPriorityClass": "urgnt"}, want: "there is no WorkloadPriorityClass urgnt: change workloadPriorityClass, or ask an administrator"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t, row.settings)
			if row.namespace != "" {
				j.appWrapper.Namespace = row.namespace
			}
			if err := j.Check(t.Context(), cluster(t, interceptor.Funcs{}), t.Output()); fmt.Sprint(err) != row.want && (err != nil || row.want != "") {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}

func TestForbiddenChecksAreSkippedWithANote(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key.Namespace == "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, key.Name, errors.New("no role"))
		}
		return c.Get(ctx, key, o, opts...)
	}})
	var notes strings.Builder
	if err := job(t, map[string]any{"numCpusPerPod": 400}).Check(t.Context(), c, &notes); err != nil || strings.Count(notes.String(), "mlbatch-view-queues") != 2 {
		t.Errorf("got %v, and notes %s", err, &notes)
	}
	err := job(t, map[string]any{"queueName": "no-queue"}).Check(t.Context(), c, &notes)
	if err == nil || !strings.HasPrefix(err.Error(), "namespace blue has no queue no-queue") {
		t.Errorf("got %v", err)
	}
}

// Nodes come and go, so it is no error: a larger one may be added.
func TestAPodThatFitsNoNodeIsNoted(t *testing.T) {
	for largest, want := range map[string]string{
		`{"cpu":"1","memory":"1Ti"}`: "note: a pod of the job fits no node: it requests 2 of cpu, and no node of flavor nodes has more than 1: it waits with its quota until a larger node is added\n",
		`{"cpu":"2"}`:                "",
		`{"memory":"1Ti"}`:           "",
		``:                           "",
	} {
		c := cluster(t, interceptor.Funcs{})
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "nodes", Annotations: map[string]string{v1beta2.LargestNodeAnnotation: largest}}}
		if err := c.Create(t.Context(), flavor); err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		if err := job(t, map[string]any{"numCpusPerPod": 2}).Check(t.Context(), c, &notes); err != nil || notes.String() != want {
			t.Errorf("with %s it notes %q, %v", largest, &notes, err)
		}
	}
}

func TestQuotaIsCheckedWithoutAccessToNamespaces(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*corev1.Namespace); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, key.Name, errors.New("no role"))
		}
		return c.Get(ctx, key, o, opts...)
	}})
	var notes strings.Builder
	if err := job(t, map[string]any{"numCpusPerPod": 400}).Check(t.Context(), c, &notes); !errors.Is(err, ErrNeverAdmitted) {
		t.Errorf("got %v", err)
	}
	if err := job(t, nil).Check(t.Context(), c, &notes); err != nil || strings.Count(notes.String(), "cannot look up namespace blue") != 1 {
		t.Errorf("got %v, and notes %s", err, &notes)
	}
}

func TestASecondJobOfTheSameNameIsRefused(t *testing.T) {
	c, out := cluster(t, interceptor.Funcs{}), &strings.Builder{}
	if err := job(t, nil).Create(t.Context(), c, out); err != nil || out.String() != "AppWrapper train was submitted in namespace blue\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	err := job(t, nil).Create(t.Context(), c, out)
	if err == nil || err.Error() != "namespace blue already has an AppWrapper train: delete it, or choose another jobName" {
		t.Errorf("got %v", err)
	}
}

// life runs the next step of a job's life after each line that follow prints.
type life struct {
	t     *testing.T
	steps []func()
	said  []string
}

func (l *life) Write(line []byte) (int, error) {
	_, what, _ := strings.Cut(strings.TrimSpace(string(line)), " ") // cut off the time
	l.said = append(l.said, what)
	if len(l.steps) > 0 {
		l.steps[0]()
		l.steps = l.steps[1:]
	}
	return len(line), nil
}

func TestAJobIsFollowedToItsEnd(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*testing.T, client.Client, *v1beta2.AppWrapper)
		says string
		want string
	}{
		"success": {end: phase(v1beta2.AppWrapperSucceeded, "", ""), says: "Succeeded"},
		"success that is deleted at once": {end: func(t *testing.T, c client.Client, aw *v1beta2.AppWrapper) {
			phase(v1beta2.AppWrapperSucceeded, "", "")(t, c, aw)
			if err := c.Delete(t.Context(), aw.DeepCopy()); err != nil {
				t.Error(err)
			}
		}, says: "Succeeded"},
		"failure": {end: phase(v1beta2.AppWrapperFailed, v1beta2.Unhealthy, "1 pod failed"), says: "Failed     1 pod failed", want: "AppWrapper train has failed: 1 pod failed"},
		"deletion": {end: func(t *testing.T, c client.Client, aw *v1beta2.AppWrapper) {
			if err := c.Delete(t.Context(), aw.DeepCopy()); err != nil {
				t.Error(err)
			}
		}, want: "AppWrapper train was deleted before it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			down := false
			l := &life{t: t}
			c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if down {
					down = false
					return apierrors.NewInternalError(errors.New("no leader"))
				}
				return c.Get(ctx, key, o, opts...)
			}})
			aw := submitted(t, c)
			l.steps = []func(){
				func() { waits(t, c, aw.UID) },
				func() { phase(v1beta2.AppWrapperRunning, v1beta2.PodsReady, "0 of 2 pods are ready")(t, c, aw) },
				func() {
					phase(v1beta2.AppWrapperRunning, v1beta2.PodsReady, "2 of 2 pods are ready")(t, c, aw)
					down = true
				},
				func() {},
				func() { row.end(t, c, aw) },
			}
			err := follow(t.Context(), c, aw, l, 0)
			if fmt.Sprint(err) != row.want && (err != nil || row.want != "") {
				t.Errorf("got %v, want %s", err, row.want)
			}
			want := []string{
				"Suspended", "Suspended  quota is short", "Running    0 of 2 pods are ready",
				"unknown    cannot read the job: Internal error occurred: no leader", "Running    2 of 2 pods are ready",
			}
			if row.says != "" {
				want = append(want, row.says)
			}
			if diff := cmp.Diff(want, l.said); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// submitted creates a job that waits for quota.
func submitted(t *testing.T, c client.Client) *v1beta2.AppWrapper {
	t.Helper()
	aw := job(t, nil).appWrapper
	aw.UID = "u"
	if err := c.Create(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	phase(v1beta2.AppWrapperSuspended, v1beta2.QuotaReserved, "")(t, c, aw)
	return aw
}

// phase returns a step that sets the job's phase and one condition.
func phase(p v1beta2.AppWrapperPhase, condition v1beta2.AppWrapperCondition, message string) func(*testing.T, client.Client, *v1beta2.AppWrapper) {
	return func(t *testing.T, c client.Client, aw *v1beta2.AppWrapper) {
		t.Helper()
		aw = aw.DeepCopy()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(aw), aw); err != nil {
			t.Error(err)
		}
		aw.Status.Phase = p
		aw.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: "True", Message: message}}
		if err := c.Status().Update(t.Context(), aw); err != nil {
			t.Error(err)
		}
	}
}

// waits creates the job's Workload, with Kueue's reason why it is not admitted.
func waits(t *testing.T, c client.Client, owner types.UID) {
	t.Helper()
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "w", Labels: map[string]string{"kueue.x-k8s.io/job-uid": string(owner)}, OwnerReferences: []metav1.OwnerReference{{UID: owner}}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: "False", Message: "quota is short"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Error(err)
	}
}

// Kueue's limits, and administrators, deactivate a Workload. Nothing starts it again, so nothing has to be waited for.
func TestNobodyWaitsForWorkThatNobodyStartsAgain(t *testing.T) {
	for reason, want := range map[string]string{
		"DeactivatedDueToMaximumExecutionTimeExceeded": "nobody starts AppWrapper train again: Kueue deactivated it: it ran for longer than it may: submit it again with more time: the label kueue.x-k8s.io/max-exec-time-seconds",
		"DeactivatedDueToRequeuingLimitExceeded":       "nobody starts AppWrapper train again: Kueue deactivated it: its pods were not ready in time too often: find out why its pods do not become ready, and submit it again",
		"Deactivated":                                  "nobody starts AppWrapper train again: the Workload was deactivated: set spec.active of the Workload to true, or submit it again",
	} {
		c := cluster(t, interceptor.Funcs{})
		aw := submitted(t, c)
		waits(t, c, aw.UID)
		l := &life{t: t, steps: []func(){func() { deactivate(t, c, reason, nil) }}}
		if err := follow(t.Context(), c, aw, l, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// Our controller deactivates a Workload for a moment, to get other nodes for it.
	c := cluster(t, interceptor.Funcs{})
	aw := submitted(t, c)
	waits(t, c, aw.UID)
	deactivate(t, c, "Deactivated", map[string]string{v1beta2.ReassignAnnotation: "x"})
	if abandoned, err := Abandoned(t.Context(), c, client.ObjectKeyFromObject(aw), string(aw.UID)); abandoned != nil || err != nil {
		t.Errorf("got %v, %v", abandoned, err)
	}
}

// deactivate does with the job's Workload what Kueue does.
func deactivate(t *testing.T, c client.Client, reason string, annotations map[string]string) {
	t.Helper()
	w := &kueue.Workload{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "w"}, w); err != nil {
		t.Error(err)
	}
	active := false
	w.Spec.Active, w.Annotations = &active, annotations
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: "True", Reason: reason})
	if err := c.Update(t.Context(), w); err != nil {
		t.Error(err)
	}
}

// In a namespace with thousands of jobs, each write of any would cause a request.
func TestOnlyWhatIsOfTheJobIsWatched(t *testing.T) {
	selected := func(options []client.ListOption) string {
		all := (&client.ListOptions{}).ApplyOptions(options)
		text := ""
		if all.LabelSelector != nil {
			text = all.LabelSelector.String()
		}
		if all.FieldSelector != nil {
			text += all.FieldSelector.String()
		}
		return text
	}
	got := map[string]bool{}
	c := cluster(t, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			got[fmt.Sprintf("watch %T %s", list, selected(options))] = true
			return c.Watch(ctx, list, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			got[fmt.Sprintf("list %T %s", list, selected(options))] = true
			return c.List(ctx, list, options...)
		},
	})
	aw := submitted(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	l := &life{t: t, steps: []func(){cancel}}
	if err := follow(ctx, c, aw, l, 0); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	want := map[string]bool{
		"watch *v1beta2.AppWrapperList metadata.name=" + aw.Name: true,
		"watch *v1beta2.WorkloadList kueue.x-k8s.io/job-uid=u":   true,
		"list *v1beta2.WorkloadList kueue.x-k8s.io/job-uid=u":    true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnInterruptedWaitSaysThatTheJobContinues(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := cluster(t, interceptor.Funcs{})
	aw := submitted(t, c)
	l := &life{t: t, steps: []func(){cancel}}
	if err := follow(ctx, c, aw, l, 0); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}

func TestAJobIsFollowedWithoutAccessToWorkloads(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		if _, is := list.(*kueue.WorkloadList); is {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "", errors.New("no role"))
		}
		return c.Watch(ctx, list, opts...)
	}})
	aw := submitted(t, c)
	l := &life{t: t, steps: []func(){func() { phase(v1beta2.AppWrapperSucceeded, "", "")(t, c, aw) }}}
	if err := follow(t.Context(), c, aw, l, 0); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"Suspended  the reason is unknown without the right to watch Workloads", "Succeeded"}, l.said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The status of the AppWrapper says it, too.
func TestAWaitWithoutAccessToWorkloadsEndsForDeactivatedWork(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		if _, is := list.(*kueue.WorkloadList); is {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "", errors.New("no role"))
		}
		return c.Watch(ctx, list, opts...)
	}})
	aw := submitted(t, c)
	l := &life{t: t, steps: []func(){func() {
		phase(v1beta2.AppWrapperSuspended, v1beta2.Deactivated, "Kueue has deactivated it")(t, c, aw)
	}}}
	err := follow(t.Context(), c, aw, l, 0)
	if err == nil || err.Error() != "nobody starts AppWrapper train again: Kueue has deactivated it" {
		t.Errorf("got %v", err)
	}
}

func TestFollowFailsWithoutAccessToAppWrappers(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "appwrappers"}, "train", errors.New("no role"))
	}})
	err := follow(t.Context(), c, job(t, nil).appWrapper, &life{t: t}, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot follow AppWrapper train, but the job continues: ") {
		t.Errorf("got %v", err)
	}
}
