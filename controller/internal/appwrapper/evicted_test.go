// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/quotareason"
	"github.com/mlbatch/mlbatch/test/given"
)

// noEvictions is Kueue that evicts nothing, and says of all that waits that there is too little quota.
type noEvictions struct{}

func (noEvictions) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

func (noEvictions) Evicted(ctx context.Context, aw types.UID) (bool, error) {
	return notEvicted(ctx, aw)
}

func (noEvictions) Reclaimed(ctx context.Context, aw types.UID) (bool, error) {
	return notEvicted(ctx, aw)
}

func (noEvictions) Waits(context.Context, types.UID) (quotareason.Reason, error) {
	return quotareason.WaitingForQuota, nil
}

func (noEvictions) Says(ctx context.Context, aw types.UID) (quotareason.Word, error) {
	return saysNothing(ctx, aw)
}

func saysNothing(context.Context, types.UID) (quotareason.Word, error) {
	return quotareason.Word{Known: true}, nil
}

func notWaiting(context.Context, types.UID) (quotareason.Reason, error) { return "", nil }

func (noEvictions) ReservedSince(ctx context.Context, aw types.UID) (time.Time, error) {
	return neverReserved(ctx, aw)
}

func (noEvictions) GiveBack(ctx context.Context, aw types.UID, why string) error {
	return notGivenBack(ctx, aw, why)
}

func (noEvictions) Reassign(ctx context.Context, aw types.UID, nodes []v1beta2.AvoidedNode) error {
	return notReassigned(ctx, aw, nodes)
}

func notReassigned(context.Context, types.UID, []v1beta2.AvoidedNode) error { return nil }

func notGivenBack(context.Context, types.UID, string) error { return nil }

func neverReserved(context.Context, types.UID) (time.Time, error) { return time.Time{}, nil }

func notEvicted(context.Context, types.UID) (bool, error) { return false, nil }

// Kueue can start an AppWrapper after it has evicted it. It returns the quota then as soon as it sees
// an AppWrapper that does not run.
func TestNothingIsDeployedForAnEvictedAppWrapper(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	evicted := true
	w.reconciler.evicted = func(_ context.Context, aw types.UID) (bool, error) { return evicted && aw == w.get().UID, nil }
	w.settle()
	w.expectPhase(v1beta2.AppWrapperSuspended)
	if w.exists(jobKind, "j") {
		t.Error("its Job is created")
	}
	evicted = false
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	w.add(pod("j-1", corev1.PodRunning))
	w.settle()

	evicted = true
	w.settle()
	if w.exists(jobKind, "j") {
		t.Error("its Job is not deleted, although Kueue wants the quota back")
	}
}

func TestWithoutKnowingEvictionsNothingIsDecided(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.reconciler.evicted = func(context.Context, types.UID) (bool, error) { return false, errors.New("no cache") }
	if _, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.get())}); err == nil || len(w.writes) > 0 {
		t.Errorf("error %v, writes %q", err, w.writes)
	}
}

// Whoever lends quota does not wait for a day because the borrower's pods may take one to end.
func TestBorrowedQuotaComesBackInBoundedTime(t *testing.T) {
	yes := func(context.Context, types.UID) (bool, error) { return true, nil }
	for sentence, c := range map[string]struct {
		evicted, reclaimed func(context.Context, types.UID) (bool, error)
		annotation         string
		want               time.Duration
	}{
		"it has borrowed":                      {yes, yes, "3h", 10 * time.Minute},
		"it has borrowed, and hurries":         {yes, yes, "1m", time.Minute},
		"it is preempted within its own queue": {yes, notEvicted, "3h", 3 * time.Hour},
		"nobody wants it back":                 {notEvicted, yes, "3h", 3 * time.Hour},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			w.change(func(aw *v1beta2.AppWrapper) {
				aw.Annotations = map[string]string{v1beta2.ForcefulDeletionGracePeriodAnnotation: c.annotation}
			})
			w.reconciler.evicted, w.reconciler.reclaimed = c.evicted, c.reclaimed
			o, err := w.reconciler.observe(t.Context(), client.ObjectKeyFromObject(w.get()))
			if err != nil {
				t.Fatal(err)
			}
			if got := o.snapshot.Policy.ForcefulDeletionGrace; got != c.want {
				t.Errorf("its pods have %s to end, want %s", got, c.want)
			}
		})
	}
}
