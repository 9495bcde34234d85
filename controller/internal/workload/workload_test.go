// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
)

var preemptedAt = time.Unix(1_800_000_000, 0)

// cluster has one Workload, which Kueue has preempted.
type cluster struct {
	*testing.T
	client.WithWatch
	*Reconciler
	recorder *events.FakeRecorder
	registry *prometheus.Registry
	pauses   *prometheus.CounterVec
	now      time.Time
}

var key = client.ObjectKey{Namespace: "red", Name: "w"}

func newCluster(t *testing.T, preemptions int32) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	pauses, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, now: preemptedAt, recorder: events.NewFakeRecorder(10), registry: registry, pauses: pauses}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kueue.Workload{}).WithReturnManagedFields().
		WithObjects(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}).Build()
	c.with(c.WithWatch, c.WithWatch)
	c.kueueWrites(func(s *kueue.WorkloadStatus) {
		s.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{
			{Reason: kueue.WorkloadEvictedByPreemption, Count: preemptions}}}
		s.Conditions = []metav1.Condition{
			{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption, LastTransitionTime: metav1.NewTime(preemptedAt)},
			{Type: kueue.WorkloadRequeued, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption, LastTransitionTime: metav1.NewTime(preemptedAt)},
			{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", LastTransitionTime: metav1.NewTime(preemptedAt)},
		}
	})
	return c
}

// with starts a controller, as after a restart.
func (c *cluster) with(cached client.Reader, writes client.Client) {
	c.Reconciler = &Reconciler{cached: cached, live: c.WithWatch, client: writes, recorder: c.recorder,
		pause: preemptionpause.Default(), pauses: c.pauses, now: func() time.Time { return c.now }}
}

// kueueWrites applies a whole status as Kueue does.
func (c *cluster) kueueWrites(change func(*kueue.WorkloadStatus)) {
	c.Helper()
	w := &kueue.Workload{TypeMeta: metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Workload"}}
	w.Name, w.Namespace, w.Status = key.Name, key.Namespace, c.stored().Status
	change(&w.Status)
	if err := c.Status().Patch(c.Context(), w, client.Apply, client.FieldOwner("kueue-admission"), client.ForceOwnership); err != nil { //nolint:staticcheck // as Kueue does
		c.Fatal(err)
	}
}

func (c *cluster) stored() *kueue.Workload {
	c.Helper()
	w := &kueue.Workload{}
	if err := c.Get(c.Context(), key, w); err != nil {
		c.Fatal(err)
	}
	return w
}

// reconcile returns when it looks again.
func (c *cluster) reconcile() time.Duration {
	c.Helper()
	result, err := c.Reconcile(c.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		c.Fatal(err)
	}
	return result.RequeueAfter
}

// mustWaitUntil checks status.requeueState.requeueAt; zero for none.
func (c *cluster) mustWaitUntil(want time.Duration) {
	c.Helper()
	var got time.Duration
	if s := c.stored().Status.RequeueState; s != nil && s.RequeueAt != nil {
		got = s.RequeueAt.Sub(preemptedAt)
	}
	if got != want {
		c.Errorf("it waits for %s, not %s", got, want)
	}
}

func TestAPauseBeginsAndEnds(t *testing.T) {
	c := newCluster(t, 4)
	if again := c.reconcile(); again != 2*time.Minute {
		t.Errorf("looks again after %s", again)
	}
	c.mustWaitUntil(2 * time.Minute)
	select {
	case e := <-c.recorder.Events:
		if want := "Normal PausedAfterPreemptions Preempted again and again: status.requeueState.requeueAt says when it is queued again at the latest"; e != want {
			t.Errorf("event %q", e)
		}
	default:
		t.Error("there is no event")
	}
	// Kueue takes the time over into what it applies, and cannot remove it alone.
	c.kueueWrites(func(*kueue.WorkloadStatus) {})
	c.with(c.WithWatch, c.WithWatch)
	c.now = preemptedAt.Add(30 * time.Second)
	if again := c.reconcile(); again != 90*time.Second {
		t.Errorf("a new controller looks again after %s", again)
	}
	c.now = preemptedAt.Add(2 * time.Minute)
	c.kueueWrites(func(s *kueue.WorkloadStatus) { s.RequeueState = nil })
	c.mustWaitUntil(2 * time.Minute)
	c.reconcile()
	c.mustWaitUntil(0)
	if got := meta.FindStatusCondition(c.stored().Status.Conditions, kueue.WorkloadRequeued); got.Reason != kueue.WorkloadBackoffFinished {
		t.Errorf("Requeued has the reason %s", got.Reason)
	}
	version := c.stored().ResourceVersion
	if c.reconcile() != 0 || c.stored().ResourceVersion != version || len(c.recorder.Events) > 0 {
		t.Error("something is written again")
	}
	c.mustHaveCounted(1, 0)
}

// mustHaveCounted checks the pauses that end after a time, and those that wait for other work.
func (c *cluster) mustHaveCounted(time, preemptor float64) {
	c.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.Fatal(err)
	}
	if got := families[0].GetName(); got != "mlbatch_preemption_pauses_total" {
		c.Errorf("the metric is %s; change the alert, too", got)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{untilTime: time, untilPreemptor: preemptor}, got); diff != "" {
		c.Errorf("pauses are counted by what they last until (-want +got)\n%s", diff)
	}
}

// From the ninth preemption on, it also waits until the work that preempted it has ended.
func TestWorkWaitsForWhatPreemptedIt(t *testing.T) {
	for name, end := range map[string]func(*cluster, *kueue.Workload) error{
		"it has finished": func(c *cluster, other *kueue.Workload) error {
			other.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: "Succeeded", LastTransitionTime: metav1.NewTime(preemptedAt)}}
			return c.Status().Update(c.Context(), other)
		},
		"it is deactivated": func(c *cluster, other *kueue.Workload) error {
			other.Spec.Active = ptr.To(false)
			return c.Update(c.Context(), other)
		},
		"it is gone": func(c *cluster, other *kueue.Workload) error { return c.Delete(c.Context(), other) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 9)
			other := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "blue", UID: "4-2"}}
			if err := c.Create(c.Context(), other); err != nil {
				c.Fatal(err)
			}
			c.kueueWrites(func(s *kueue.WorkloadStatus) {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: kueue.WorkloadPreempted, Status: metav1.ConditionTrue,
					Reason: kueue.InCohortReclamationReason, LastTransitionTime: metav1.NewTime(preemptedAt),
					Message: "Preempted to accommodate a workload (UID: 4-2, JobUID: 7) due to reclamation within the cohort"})
			})
			if again := c.reconcile(); again != time.Hour {
				t.Errorf("looks again after %s", again)
			}
			c.mustWaitUntil(preemptionpause.MostHeld)
			c.mustHaveCounted(0, 1)
			c.now = preemptedAt.Add(5 * time.Hour)
			if again := c.reconcile(); again != time.Minute {
				t.Errorf("later, looks again after %s", again)
			}
			c.mustWaitUntil(preemptionpause.MostHeld)
			if err := end(c, other); err != nil {
				c.Fatal(err)
			}
			c.reconcile()
			c.mustWaitUntil(0)
			c.mustHaveCounted(0, 1)
		})
	}
}

// A list that fails must not look like a cluster in which all work has ended.
func TestWorkIsNotQueuedAgainWithoutALook(t *testing.T) {
	c := newCluster(t, 9)
	c.with(blind{c.WithWatch}, c.WithWatch)
	version := c.stored().ResourceVersion
	_, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || err.Error() != "cannot list Workloads: no" || c.stored().ResourceVersion != version {
		t.Error(err)
	}
}

// blind is a cache that cannot list.
type blind struct{ client.Reader }

func (blind) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no")
}

func TestFewPreemptionsAreIgnored(t *testing.T) {
	c := newCluster(t, 2)
	version := c.stored().ResourceVersion
	if c.reconcile() != 0 || c.stored().ResourceVersion != version {
		t.Error("something is written")
	}
}

// Kueue has given it quota again, or more than that, but our cache does not know.
func TestAnOldCacheWritesNothing(t *testing.T) {
	for name, change := range map[string]func(c *cluster){
		"it runs again": func(c *cluster) {
			c.kueueWrites(func(s *kueue.WorkloadStatus) { s.Conditions[0].Status = metav1.ConditionFalse })
		},
		"it is gone": func(c *cluster) {
			if err := c.Delete(c.Context(), c.stored()); err != nil {
				c.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4)
			old := c.stored()
			change(c)
			c.with(stale{old}, c.WithWatch)
			if again := c.reconcile(); again != 0 {
				t.Errorf("looks again after %s", again)
			}
			if len(c.recorder.Events) > 0 {
				t.Error("there is an event")
			}
		})
	}
}

// Between our last look and our write, Kueue writes.
func TestAWriteMeetsAnother(t *testing.T) {
	c := newCluster(t, 4)
	c.with(c.WithWatch, interceptor.NewClient(c.WithWatch, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		c.kueueWrites(func(s *kueue.WorkloadStatus) { s.Conditions[0].Status = metav1.ConditionFalse })
		return c.Status().Patch(ctx, o, p, opts...)
	}}))
	c.reconcile()
	c.mustWaitUntil(0)
	if len(c.recorder.Events) > 0 {
		t.Error("there is an event, although nothing was written")
	}
}

func TestARefusedWriteIsAnError(t *testing.T) {
	c := newCluster(t, 4)
	c.with(c.WithWatch, interceptor.NewClient(c.WithWatch, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return errors.New("no")
	}}))
	_, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || err.Error() != "cannot write the pause of Workload red/w: no" {
		t.Error(err)
	}
}

// stale is a cache with an old Workload.
type stale struct{ w *kueue.Workload }

func (s stale) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.w.DeepCopyInto(into.(*kueue.Workload))
	return nil
}

func (stale) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestOnlyPreemptedWorkIsLookedAt(t *testing.T) {
	never, preempted := &kueue.Workload{}, newCluster(t, 1).stored()
	p := changed()
	for name, row := range map[string]struct{ got, want bool }{
		"work that waits for the first time": {p.Create(event.CreateEvent{Object: never}), false},
		"its changes":                        {p.Update(event.UpdateEvent{ObjectOld: never, ObjectNew: never}), false},
		"its first preemption":               {p.Update(event.UpdateEvent{ObjectOld: never, ObjectNew: preempted}), true},
		"what was preempted before we came":  {p.Create(event.CreateEvent{Object: preempted}), true},
		"what is gone":                       {p.Delete(event.DeleteEvent{Object: preempted}), false},
	} {
		if row.got != row.want {
			t.Errorf("%s: %t", name, row.got)
		}
	}
}

func TestTheCacheKeepsWhatIsRead(t *testing.T) {
	w := newCluster(t, 4).stored()
	w.Spec.Active = ptr.To(true)
	w.Spec.PodSets = []kueue.PodSet{{Name: "main"}}
	kept, err := slim(w)
	if err != nil || kept.(*kueue.Workload).Spec.PodSets != nil || preemptionpause.Preemptions(kept.(*kueue.Workload)) != 4 {
		t.Errorf("%+v, %v", kept, err)
	}
}

func TestTheMetricHasTheMostPreemptionsOfWorkThatGoesOn(t *testing.T) {
	c := newCluster(t, 4)
	for name, w := range map[string]struct {
		preemptions int32
		finished    metav1.ConditionStatus
		active      bool
		namespace   string
	}{
		"fewer":        {3, metav1.ConditionFalse, true, key.Namespace},
		"finished":     {9, metav1.ConditionTrue, true, key.Namespace},
		"deactivated":  {9, metav1.ConditionFalse, false, key.Namespace},
		"another-team": {7, metav1.ConditionFalse, true, "blue"},
		"calm":         {0, metav1.ConditionFalse, true, "green"},
	} {
		made := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: kueue.WorkloadSpec{Active: &w.active}}
		if err := c.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		made.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, Count: w.preemptions}}}
		made.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: w.finished, Reason: "Succeeded", LastTransitionTime: metav1.NewTime(preemptedAt)}}
		if err := c.Status().Update(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]float64{"blue": 7, key.Namespace: 4}, mostOf(t, c.WithWatch)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := mostOf(t, blind{c.WithWatch}); len(got) > 0 {
		t.Errorf("a cache that is not filled yet has %v", got)
	}
}

// mostOf is the metric by namespace, as it is registered.
func mostOf(t *testing.T, cached client.Reader) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(mostPreempted{cached})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]float64{}
	for _, family := range families {
		if got := family.GetName(); got != "mlbatch_most_preemptions" {
			t.Errorf("the metric is %s; change the alert, too", got)
		}
		for _, metric := range family.GetMetric() {
			most[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return most
}
