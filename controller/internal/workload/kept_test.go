// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// What becomes of a Workload of AppWrapper train, after it was orphaned or deleted before its owner.
func TestAWorkloadEndsWithTheLastPod(t *testing.T) {
	const gone, stays = true, false
	for sentence, c := range map[string]struct {
		change func(*kueue.Workload)
		others []client.Object
		ends   bool
		look   time.Duration
	}{
		"orphaned, without pods":                {orphan, nil, gone, 0},
		"orphaned, with a pod":                  {orphan, objects(podOf("train-0", "")), stays, lookAgain},
		"orphaned, with a pod that names it":    {orphan, objects(podOf("", key.Name)), stays, lookAgain},
		"orphaned, with a pod that has ended":   {orphan, objects(ended(podOf("train-0", key.Name))), gone, 0},
		"orphaned, with a pod of another":       {orphan, objects(podOf("train-0", "a later one")), gone, 0},
		"orphaned, with its AppWrapper":         {orphan, objects(train("of-train", true, false)), stays, lookAgain},
		"orphaned, with another of its name":    {orphan, objects(train("of-another", true, false)), gone, 0},
		"orphaned, and it has ended":            {func(w *kueue.Workload) { orphan(w); finish(w) }, nil, stays, 0},
		"never owned by a job":                  {func(w *kueue.Workload) { orphan(w); w.Labels = nil }, nil, stays, 0},
		"for a job of another cluster":          {func(w *kueue.Workload) { orphan(w); w.Labels[kueue.MultiKueueOriginLabel] = "here" }, nil, stays, 0},
		"with its AppWrapper":                   {func(*kueue.Workload) {}, objects(train("of-train", true, false)), stays, 0},
		"kept, and its AppWrapper is deleted":   {keep, objects(train("of-train", true, true)), stays, 0},
		"kept, and its AppWrapper has let go":   {keep, objects(train("of-train", false, true)), gone, 0},
		"kept, and its AppWrapper is gone":      {keep, nil, gone, 0},
		"kept, and a pod is left":               {keep, objects(podOf("train-0", "")), stays, lookAgain},
		"kept for a deletion that did not come": {func(w *kueue.Workload) { controllerutil.AddFinalizer(w, v1beta2.AppWrapperFinalizer) }, objects(train("of-train", true, false)), stays, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ownedByTrain()
			c.change(w)
			k, stored := newKeeper(t, append(c.others, w)...)
			result, err := k.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter != c.look {
				t.Errorf("looks again after %s, %v", result.RequeueAfter, err)
			}
			err = stored.Get(t.Context(), key, &kueue.Workload{})
			if apierrors.IsNotFound(err) != c.ends || client.IgnoreNotFound(err) != nil {
				t.Errorf("gone: %t, %v", apierrors.IsNotFound(err), err)
			}
		})
	}
}

func newKeeper(t *testing.T, existing ...client.Object) (*keeper, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, corev1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).Build()
	return &keeper{cached: stored, live: &editor{reader: stored, client: stored}}, stored
}

func ownedByTrain() *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, Labels: map[string]string{jobUIDLabel: "of-train"}}}
	w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(train("of-train", true, false), v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind))}
	w.Spec.PodSets = []kueue.PodSet{{Name: "train-0", Count: 2}}
	return w
}

func orphan(w *kueue.Workload) { w.OwnerReferences = nil }

func finish(w *kueue.Workload) {
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
}

// keep is what the webhook does, and the garbage collector then.
func keep(w *kueue.Workload) {
	controllerutil.AddFinalizer(w, v1beta2.AppWrapperFinalizer)
	w.DeletionTimestamp = ptr.To(metav1.Now())
}

func train(uid string, finalizer, deleted bool) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: key.Namespace}}
	aw.SetUID(types.UID(uid))
	if finalizer {
		aw.Finalizers = append(aw.Finalizers, v1beta2.AppWrapperFinalizer)
	}
	if deleted {
		aw.Finalizers = append(aw.Finalizers, metav1.FinalizerDeleteDependents)
		aw.DeletionTimestamp = ptr.To(metav1.Now())
	}
	return aw
}

// podOf names its pod set, and its Workload if Kueue knows topologies.
func podOf(podSet, workload string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: key.Namespace,
		Labels: map[string]string{podSetLabel: podSet}}}
	if workload != "" {
		p.Annotations = map[string]string{kueue.WorkloadAnnotation: workload}
	}
	return p
}

func ended(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodSucceeded
	return p
}

func objects(all ...client.Object) []client.Object { return all }

// Only such Workloads are read from the API server, and the cache has what tells them apart.
func TestOnlyWorkloadsWithoutAnOwnerThatEndsThemAreLookedAt(t *testing.T) {
	pods := func(w *kueue.Workload) { w.OwnerReferences[0].Controller = nil } // as of a group of pods
	for sentence, c := range map[string]struct {
		change func(*kueue.Workload)
		looks  bool
	}{
		"one of an AppWrapper": {func(*kueue.Workload) {}, false},
		"one of several pods":  {pods, false},
		"an orphan":            {orphan, true},
		"one that is kept":     {keep, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ownedByTrain()
			c.change(w)
			cached, err := slim(w)
			if err != nil {
				t.Fatal(err)
			}
			if looks := notEnded().Update(event.UpdateEvent{ObjectOld: cached.(client.Object), ObjectNew: cached.(client.Object)}); looks != c.looks {
				t.Errorf("is looked at: %t", looks)
			}
		})
	}
}
