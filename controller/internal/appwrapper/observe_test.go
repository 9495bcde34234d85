// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/echoes"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestANamesakeInTheCacheDoesNotHideOurOwn(t *testing.T) {
	w := runningWorld(t)
	w.reconciler.cached = outdated(w, job("j", "an earlier one"))
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// outdated is a cache with an old version of every component.
func outdated(w *world, old *unstructured.Unstructured) client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if component, ok := object.(*unstructured.Unstructured); ok {
				old.DeepCopyInto(component)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

// The component of the previous attempt had the same name and owner.
func TestAComponentThatOnlyTheCacheStillHasIsCreated(t *testing.T) {
	for sentence, refusal := range map[string]error{
		"at the first attempt":      nil,
		"after it was refused once": errors.New("connection refused"),
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			if refusal != nil {
				w.refuse = func(client.Object) error { return refusal }
				expectRefusal(t, w, v1beta2.ReasonComponentCreationErrored, "")
				w.refuse, w.now = nil, w.now.Add(time.Minute/2)
			}
			w.reconciler.cached = outdated(w, job("j", "a"))
			w.settle()
			if !w.exists(jobKind, "j") {
				t.Error("it was never created")
			}
			w.expectPhase(v1beta2.AppWrapperRunning)
			w.reconciler.cached = w.api
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
		})
	}
}

// A stale cache still has the component of the previous attempt.
func TestHowTheAttemptBeforeEndedIsNotBelievedOfThisOne(t *testing.T) {
	ended := func(condition string) *unstructured.Unstructured {
		old := job("j", "a")
		old.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
		return old
	}
	going := job("j", "a")
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	for sentence, old := range map[string]*unstructured.Unstructured{
		"it failed": ended("Failed"), "it succeeded": ended("Complete"), "it is going": going,
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			w.reconciler.cached = outdated(w, old)
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
			if succeeded(w.get().Status, 0) {
				t.Error("the component counts as succeeded")
			}
		})
	}
}

// Only what is read after a removal was saved proves that nothing is left: before, an earlier
// decision may still create something.
func TestWhatWasReadBeforeASaveIsReadAgain(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.ConfigMap("c")).Unsuspended().Build())
	w.settle()
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	gone := &unstructured.Unstructured{}
	gone.SetGroupVersionKind(configMapKind)
	gone.SetNamespace(given.Namespace)
	gone.SetName("c")
	if err := w.api.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.liveReads = nil
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperSuspended)
	if !slices.Equal(w.liveReads, []string{"get c", "get c", "list"}) {
		t.Errorf("live reads %q", w.liveReads)
	}
}

// Attempts are named by the second in which they began, and a retry may begin in the second in
// which the last was removed.
func TestTheCacheIsBelievedOnlyOfAnAttemptWithANameOfItsOwn(t *testing.T) {
	for sentence, tc := range map[string]struct {
		removed  time.Duration // before this attempt began
		believed bool
	}{
		"the last was removed a second before": {time.Second, true},
		"the last was removed just before":     {0, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := runningWorld(t)
			w.followsOne(tc.removed)
			w.reconciler.cached, w.reconciler.echoes = outdated(w, endedJob(t, "Complete", attempt(w.get()))), echoes.Pending{}
			w.reconcile()
			if succeeded(w.get().Status, 0) != tc.believed {
				t.Errorf("that the component has succeeded is believed: %t", !tc.believed)
			}
		})
	}
}

// followsOne says that another attempt was removed such a time ago.
func (w *world) followsOne(removed time.Duration) {
	w.Helper()
	aw := w.get()
	aw.Status.Conditions = append(aw.Status.Conditions, metav1.Condition{
		Type: string(v1beta2.DeletingResources), Status: metav1.ConditionFalse, Reason: v1beta2.ReasonDeletionComplete,
		LastTransitionTime: metav1.Time{Time: w.now.Add(-removed)},
	})
	if err := w.api.Status().Update(w.Context(), aw); err != nil {
		w.Fatal(err)
	}
}

// Success releases the quota, so a pod that is only in the API server counts.
func TestQuotaIsNotGivenBackWhileTheCacheMissesAPod(t *testing.T) {
	w := runningWorld(t)
	w.setPodPhase("j-1", corev1.PodSucceeded)
	w.add(pod("j-2", corev1.PodRunning))
	w.reconciler.cached = withoutPod(w, "j-2")
	w.setJobCondition("j", "Complete")
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.setPodPhase("j-2", corev1.PodSucceeded)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSucceeded)
}

// withoutPod is a cache that does not have a pod yet.
func withoutPod(w *world, name string) client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			pods := list.(*corev1.PodList)
			pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == name })
			return err
		},
	})
}

// The API server answers a create with the component, and a save with the AppWrapper. Nothing else
// has to be read.
func TestNothingIsReadUntilAllComponentsExist(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1), given.ConfigMap("c")).Unsuspended().Build())
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
	if len(w.liveReads) > 0 {
		t.Errorf("live reads %q", w.liveReads)
	}
}

// Admission, if enabled, refuses all of these.
func TestWhatMakesNoSenseIsSaidAtTheFirstLook(t *testing.T) {
	nameless := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}}
	for name, tc := range map[string]struct {
		component *given.ComponentBuilder
		message   string
	}{
		"a path that leads nowhere":   {given.Job("j", 1).Declaring("template.spec.tmplate", 1), `"template.spec.tmplate"`},
		"a negative number of pods":   {given.Job("j", -1), "-1 pods"},
		"a resource without any name": {given.Component(nameless), "neither a name nor a generateName"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(tc.component).Unsuspended().Build())
			w.settle()
			w.expectPhase(v1beta2.AppWrapperFailed)
			unhealthy := meta.FindStatusCondition(w.get().Status.Conditions, string(v1beta2.Unhealthy))
			if unhealthy == nil || unhealthy.Reason != v1beta2.ReasonCreateFailed || !strings.Contains(unhealthy.Message, tc.message) {
				t.Errorf("Unhealthy is %+v", unhealthy)
			}
		})
	}
}

// Without webhooks, the controller is the first to see an invalid AppWrapper. The API server
// does not list pods by an invalid label value.
func TestWhatAdmissionWouldRefuseFailsWhereItIsNotAsked(t *testing.T) {
	misspelt := given.AppWrapper("a").With(given.Job("j", 1)).Build()
	misspelt.Annotations = map[string]string{v1beta2.RetryLimitAnnotation: "many"}
	for name, tc := range map[string]struct {
		aw   *v1beta2.AppWrapper
		says string
	}{
		"no pod set":               {given.AppWrapper("a").With(given.ConfigMap("c")).Build(), "at least one pod set"},
		"more pod sets than Kueue": {given.AppWrapper("a").With(given.Job("j", 1), given.Job("k", 1), given.Job("l", 1)).Build(), "at most 2 pod sets"},
		"two objects of one name":  {given.AppWrapper("a").With(given.Job("j", 1), given.Job("j", 1)).Build(), "Duplicate"},
		"an unreadable annotation": {misspelt, v1beta2.RetryLimitAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.aw)
			w.reconciler.problem = unadmitted(admissionrules.Limits{Components: 9, PodSets: 2})
			w.settle()
			w.expectPhase(v1beta2.AppWrapperFailed)
			condition := meta.FindStatusCondition(w.get().Status.Conditions, string(v1beta2.Unhealthy))
			if condition == nil || condition.Reason != v1beta2.ReasonCreateFailed || !strings.Contains(condition.Message, tc.says) {
				t.Errorf("Unhealthy is %+v, want %q in it", condition, tc.says)
			}
		})
	}
}

func TestWhatWasSeenBeforeIsNotJudgedAgain(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Build())
	w.settle()
	w.reconciler.problem = unadmitted(admissionrules.Limits{Components: 9})
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspended)
}

func TestANameThatNoLabelCanHave(t *testing.T) {
	const name = "a-name-of-more-than-sixty-three-characters-that-no-label-value-can-be"
	key := client.ObjectKey{Namespace: given.Namespace, Name: name}
	for sentence, aw := range map[string]*given.AppWrapperBuilder{
		"is said at the first look": given.AppWrapper(name),
		"does not keep what failed": given.AppWrapper(name).WithFinalizer().InPhase(v1beta2.AppWrapperFailed),
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, aw.With(given.Job("j", 1)).Unsuspended().Build())
			w.reconciler.live = interceptor.NewClient(w.api, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return apierrors.NewBadRequest("unable to parse requirement")
				},
			})
			aw := &v1beta2.AppWrapper{}
			for range 5 {
				if err := w.api.Get(t.Context(), key, aw); err != nil {
					t.Fatal(err)
				}
				if aw.Status.Phase == v1beta2.AppWrapperFailed {
					meta.SetStatusCondition(&aw.Status.Conditions, metav1.Condition{
						Type: string(v1beta2.ResourcesDeployed), Status: metav1.ConditionTrue, Reason: "Resuming"})
					if err := w.api.Status().Update(t.Context(), aw); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			if aw.Status.Phase != v1beta2.AppWrapperFailed {
				t.Errorf("the phase is %q", aw.Status.Phase)
			}
		})
	}
}

// Other AppWrapper controllers do not label pods with their component.
func TestWhosePodItIs(t *testing.T) {
	first, second, labelled, owned, foreign := job("i", "a"), job("j", "a"), pod("p", ""), pod("p", ""), pod("p", "")
	first.SetUID("uid-of-the-first")
	delete(owned.Labels, v1beta2.AppWrapperComponentLabel)
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(second, jobKind)}
	delete(foreign.Labels, v1beta2.AppWrapperComponentLabel)
	o := &observation{components: []component{{object: first}, {}, {object: second}, {object: labelled}}}
	itself := labelled.DeepCopy()
	delete(itself.Labels, v1beta2.AppWrapperComponentLabel)
	foreign.UID = "another"
	for sentence, tc := range map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"the label says it":                          {labelled, 0},
		"without it, who controls the pod":           {owned, 2},
		"or the pod is the component":                {itself, 3},
		"a pod of something in between is anybody's": {foreign, lifecycle.UnknownComponent},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := o.componentOf(tc.pod); got != tc.want {
				t.Errorf("it is of component %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhichPodSetItIsOf(t *testing.T) {
	labelled := func(podSet string) *corev1.Pod {
		p := pod("p", "")
		p.Labels[v1beta2.AppWrapperPodSetLabel] = podSet
		return p
	}
	for label, want := range map[string]int{"0": 0, "12": 12, "": lifecycle.UnknownPodSet, "x": lifecycle.UnknownPodSet} {
		if got := podSetOf(labelled(label)); got != want {
			t.Errorf("with %q it is of pod set %d, want %d", label, got, want)
		}
	}
}

// Others may keep pods that have ended, and the next AppWrapper has the same name.
func TestPodsOfAnEarlierAppWrapper(t *testing.T) {
	w := newWorld(t)
	o := &observation{aw: given.AppWrapper("a").Build()}
	made := func(name string, uid types.UID, phase corev1.PodPhase) corev1.Pod {
		p := pod(name, phase)
		p.Labels[v1beta2.AttemptLabel] = string(uid) + ".1767323045"
		return *p
	}
	pods := []corev1.Pod{
		made("own", o.aw.UID, corev1.PodSucceeded), made("old", "earlier", corev1.PodSucceeded),
		made("old-failed", "earlier", corev1.PodFailed), made("old-runs", "earlier", corev1.PodRunning), *pod("unlabelled", corev1.PodSucceeded),
	}
	if err := w.reconciler.seePods(t.Context(), o, pods); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range o.snapshot.Pods {
		got[p.Name] = p.Foreign
	}
	if diff := cmp.Diff(map[string]bool{"own": false, "old-runs": true, "unlabelled": false}, got); diff != "" {
		t.Errorf("the pods, and whether they are foreign (-want +got):\n%s", diff)
	}
}

// The cache of Jobs may see the end before the cache of pods does.
func TestExitCodesAreReadLiveWhenTheyDecide(t *testing.T) {
	w := runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) {
		aw.Annotations = map[string]string{v1beta2.TerminalExitCodesAnnotation: "13"}
	})
	old := &corev1.PodList{Items: []corev1.Pod{*pod("j-1", corev1.PodRunning)}}
	w.reconciler.cached = interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			old.DeepCopyInto(list.(*corev1.PodList))
			return nil
		},
	})
	ended := pod("j-1", corev1.PodFailed)
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 13}}}}
	if err := w.api.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	w.setJobCondition("j", "Failed")
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperFailed)
}

// A list from the cache shares objects with it, and decoding into a list that is not empty
// overwrites its items.
func TestALiveListIsNotReadIntoWhatTheCacheOwns(t *testing.T) {
	w := runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) {
		aw.Annotations = map[string]string{v1beta2.TerminalExitCodesAnnotation: "13"}
	})
	asked := false
	w.reconciler.live = interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked = true
			if items := list.(*corev1.PodList).Items; items != nil {
				t.Errorf("it is read into %d items of the cache", len(items))
			}
			return c.List(ctx, list, options...)
		},
	})
	w.setJobCondition("j", "Failed")
	w.reconcile()
	if !asked {
		t.Error("nothing was listed")
	}
}

// Pod sets are recorded once. A component that another controller has deployed exists even if
// we would not find its pod sets today.
func TestWhatIsDeployedIsFoundWhateverItsPodSets(t *testing.T) {
	w := runningWorld(t)
	w.change(func(aw *v1beta2.AppWrapper) {
		aw.Spec.Components[0] = given.Job("j", 1).Declaring("template.spec.tmplate", 1).Build()
	})
	w.reconcile()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

func TestAWatchThatIsBeginningIsAwaitedBesideAKindThatNobodyWatches(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1), given.ConfigMap("c")).Unsuspended().Build())
	w.settle()
	w.add(pod("j-1", corev1.PodRunning))
	w.settle()
	w.reconciler.watch = func(_ context.Context, kind kinds.Kind) (coverage, error) {
		if kind.HasVerdict() {
			return beginning, nil
		}
		return uncovered, nil
	}
	if result := w.reconcile(); result.RequeueAfter != pollInterval {
		t.Errorf("looks again after %s, want %s", result.RequeueAfter, pollInterval)
	}
}

func TestNobodyPollsForPodsThatOutliveTheirComponents(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1), given.ConfigMap("c")).Unsuspended().Build())
	w.settle()
	w.add(pod("j-1", corev1.PodRunning))
	w.settle()
	w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = true })
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspending)
	if result := w.reconcile(); result.RequeueAfter <= pollInterval {
		t.Errorf("looks again after %s though the pod's end would wake it", result.RequeueAfter)
	}
}

// Other AppWrapper controllers record a component's name when they create it. If one stops
// halfway, the status lacks some components.
func TestAnAppWrapperIsTakenOverWhileItsComponentsAreCreated(t *testing.T) {
	aw := given.AppWrapper("a").With(given.ConfigMap("c"), given.ConfigMap("d")).
		WithFinalizer().Unsuspended().InPhase(v1beta2.AppWrapperResuming).Build()
	w := newWorld(t, aw)
	aw = w.get()
	for _, condition := range []v1beta2.AppWrapperCondition{v1beta2.QuotaReserved, v1beta2.ResourcesDeployed} {
		meta.SetStatusCondition(&aw.Status.Conditions, metav1.Condition{
			Type: string(condition), Status: metav1.ConditionTrue, Reason: "Resuming", LastTransitionTime: metav1.NewTime(w.now)})
	}
	if err := w.api.Status().Update(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
}

// A kubelet says by its own clock when it began with a pod. If that is behind, a surplus of pods would have no grace.
func TestAPodDoesNotStartBeforeItExists(t *testing.T) {
	created := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		startTime *metav1.Time
		want      time.Time
	}{
		"not yet":                      {nil, time.Time{}},
		"later":                        {&metav1.Time{Time: created.Add(time.Minute)}, created.Add(time.Minute)},
		"by a clock that is behind":    {&metav1.Time{Time: created.Add(-time.Hour)}, created},
		"by one that is ahead, it may": {&metav1.Time{Time: created.Add(time.Hour)}, created.Add(time.Hour)},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, Status: corev1.PodStatus{StartTime: row.startTime}}
		if got := (&observation{}).podOf(pod).Started; !got.Equal(row.want) {
			t.Errorf("%s: it has started at %s, want %s", name, got, row.want)
		}
	}
}
