// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// placedByKueue is work on one node, which Kueue has assigned.
func placedByKueue(t *testing.T) (*world, *corev1.Node) {
	t.Helper()
	w, node := onOneNode(t)
	w.change(func(aw *v1beta2.AppWrapper) {
		gates := []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
		aw.Spec.Components[0].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{SchedulingGates: gates}}
	})
	w.settle()
	return w, node
}

// podsEnd: the pods that the Job had are gone.
func (w *world) podsEnd() {
	w.Helper()
	for _, name := range []string{"train-0", "train-1"} {
		if err := w.api.Delete(w.Context(), pod(name, "")); err != nil {
			w.Fatal(err)
		}
	}
}

// The story of one move: the node turns bad, the pods leave, Kueue takes the quota back and gives it again.
func TestWorkThatKueueHasPlacedLeavesABadNode(t *testing.T) {
	for cause, avoided := range map[string][]string{
		"NodeLabel autopilot.ibm.com/gpuhealth=EVICT": nil, // Kueue is told of the label
		"NodeCondition GpuUnhealthy=True":             {"n"},
	} {
		t.Run(cause, func(t *testing.T) {
			w, node := placedByKueue(t)
			var asked [][]string
			w.reconciler.reassign = func(_ context.Context, aw types.UID, nodes []v1beta2.AvoidedNode) error {
				if aw != w.get().UID || !w.get().Spec.Suspend && w.exists(jobKind, "train") {
					t.Error("Kueue is asked for another, or too early")
				}
				var names []string
				for _, n := range nodes {
					names = append(names, n.Name)
				}
				asked = append(asked, names)
				return nil
			}
			nodeTroubles[cause](node)
			w.becomes(node)
			w.settle()
			if len(asked) > 0 {
				t.Error("Kueue is asked while pods run")
			}
			w.podsEnd()
			w.settle()
			if len(asked) == 0 || !cmp.Equal(asked[0], avoided) {
				t.Fatalf("Kueue is asked with %v, want %v", asked, avoided)
			}
			if again := w.reconcile(); again.RequeueAfter <= 0 || again.RequeueAfter > 90*time.Second {
				t.Errorf("it looks again after %s, and nobody may answer", again.RequeueAfter)
			}
			w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend, aw.Spec.Components[0].PodSetInfos = true, nil })
			w.settle()
			w.expectPhase(v1beta2.AppWrapperSuspended)
			status := w.get().Status
			if condition(status, v1beta2.QuotaReserved).Status != "False" || status.Migrations != 1 || status.Retries != 0 {
				t.Errorf("it is %+v", status)
			}
			done := len(asked)
			w.change(func(aw *v1beta2.AppWrapper) { aw.Spec.Suspend = false })
			w.settle()
			w.expectPhase(v1beta2.AppWrapperRunning)
			if len(asked) != done || !w.exists(jobKind, "train") {
				t.Error("it does not run again, or asks again")
			}
		})
	}
}

// An AppWrapper for which Kueue cannot be asked runs again where it was, which migrationLimit bounds.
func TestWorkRunsAgainThoughKueueCannotBeAsked(t *testing.T) {
	w, node := placedByKueue(t)
	w.reconciler.reassign = func(context.Context, types.UID, []v1beta2.AvoidedNode) error {
		return errors.New("no right to patch Workloads")
	}
	nodeTroubles["NodeCondition GpuUnhealthy=True"](node)
	w.becomes(node)
	w.settle()
	w.podsEnd()
	_, err := w.reconciler.Reconcile(t.Context(), theRequest)
	for range 5 {
		if err == nil {
			_, err = w.reconciler.Reconcile(t.Context(), theRequest)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no right") {
		t.Errorf("the log has %v", err)
	}
	w.now = w.now.Add(90 * time.Second)
	w.settle()
	w.expectPhase(v1beta2.AppWrapperRunning)
	if !w.exists(jobKind, "train") {
		t.Error("its Job is not there")
	}
}
