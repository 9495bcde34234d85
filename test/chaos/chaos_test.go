// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// TestTheAPIServerFails lets every fourth request fail and cuts watches short.
func TestTheAPIServerFails(t *testing.T) {
	way := newProxy(t)
	keepController(t, way)
	awaitLeader(t, "")
	way.rage(0.25)
	live(t, "fails", func() {})
	way.expectStorm(t)
}

// TestOthersWriteWithoutEnd has another client write to all AppWrappers and Jobs as fast as the
// API server allows.
func TestOthersWriteWithoutEnd(t *testing.T) {
	keepController(t, newProxy(t))
	awaitLeader(t, "")
	over, stop := context.WithCancel(t.Context())
	writes := make(chan int, 1)
	go func() { writes <- writeToAll(over, "conflicts") }()
	live(t, "conflicts", func() {})
	stop()
	if n := <-writes; n < fewest {
		t.Errorf("the other client wrote only %d times, want at least %d", n, fewest)
	} else {
		t.Logf("others wrote %d times", n)
	}
}

// fewest is the minimum number of writes by the other client; a busy machine reached 80.
const fewest = 20

func writeToAll(ctx context.Context, namespace string) (writes int) {
	for ctx.Err() == nil {
		aws, jobs := &workload.AppWrapperList{}, &batchv1.JobList{}
		_ = admin.List(ctx, aws, client.InNamespace(namespace)) // an error is retried in the next round
		_ = admin.List(ctx, jobs, client.InNamespace(namespace))
		var all []client.Object
		for i := range aws.Items {
			all = append(all, &aws.Items[i])
		}
		for i := range jobs.Items {
			all = append(all, &jobs.Items[i])
		}
		for _, object := range all {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"storm":"%d"},"annotations":{"storm":"%d"}}}`, writes, writes)
			if err := admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err == nil { // else it was deleted
				writes++
			}
		}
	}
	return writes
}

// TestAnotherControllerTakesOver stops one leader with SIGTERM, which releases the lease, and
// kills another, whose lease must expire.
func TestAnotherControllerTakesOver(t *testing.T) {
	way := newProxy(t)
	awaitNoLeader(t)
	first := startController(t, "first", way)
	one := awaitLeader(t, "")
	second := startController(t, "second", way)
	live(t, "handover", func() {
		awaitPhase(t, client.ObjectKey{Namespace: "handover", Name: "runs-0"}, workload.AppWrapperRunning)
		first.tell(syscall.SIGTERM)
		if first.err != nil {
			t.Errorf("the controller that got SIGTERM failed: %v", first.err)
		}
		if holder, err := leader(t.Context()); err != nil || holder == one {
			t.Errorf("the controller has ended but still holds the lease: %q (%v)", holder, err)
		}
		two := awaitLeader(t, one)
		startController(t, "third", way)
		second.kill()
		awaitLeader(t, two)
	})
}
