// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package racks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// A label is all that says that a node is bad: it is Ready, and everybody else may use it. The gang needs a whole rack,
// so it moves to the one that is free meanwhile, and back. Of two racks that fit as well, Kueue would take the first.
// The other gang stays.
func (w *world) leavesABadRack() {
	w.Helper()
	w.remove("on-gpu-1")
	bystander := w.podsOf("second")
	w.labelNode("gpu-9", "EVICT")
	w.await("first", inRack(0))
	w.hasMoved("first", 1)
	w.labelNode("gpu-9", "PASS")
	w.labelNode("gpu-1", "EVICT")
	w.await("first", inRack(2))
	w.hasMoved("first", 2)
	if pods := w.podsOf("second"); !slices.EqualFunc(pods, bystander, func(x, y corev1.Pod) bool { return x.UID == y.UID }) {
		w.Errorf("pods of second were replaced: %v", names(pods))
	}
	w.labelNode("gpu-1", "PASS")
}

// Nothing but a pod says that a node is bad, and one node of the rack is spare. Kueue has to know the node by its name.
func (w *world) staysWithinItsRack() {
	w.Helper()
	w.occupy("gpu-14") // only the rack of gpu-0 to gpu-3 has three nodes that are free
	w.submit("third", func(job *batchv1.Job) {
		three, none := int32(3), int32(0)
		job.Spec.Parallelism, job.Spec.Completions, job.Spec.BackoffLimit = &three, &three, &none
	})
	w.await("third", on("gpu-0", "gpu-1", "gpu-2"))
	rejected := w.podsOf("third")[0]
	rejected.Status.Phase, rejected.Status.Reason, rejected.Status.ContainerStatuses = corev1.PodFailed, "UnexpectedAdmissionError", nil
	rejected.ResourceVersion = ""
	if err := w.admin.Status().Update(w.Context(), &rejected); err != nil {
		w.Fatal(err)
	}
	w.await("third", on("gpu-1", "gpu-2", "gpu-3"))
	w.hasMoved("third", 1)
	w.remove("third")
	w.remove("on-gpu-14")
}

// on: the pods run on these nodes.
func on(nodes ...string) func([]corev1.Pod) error {
	return func(pods []corev1.Pod) error {
		var found []string
		for _, p := range pods {
			found = append(found, p.Spec.NodeName)
		}
		if slices.Sort(found); !slices.Equal(found, nodes) {
			return fmt.Errorf("its pods are on %v, want %v", found, nodes)
		}
		return nil
	}
}

// podsOf are sorted by their nodes.
func (w *world) podsOf(name string) []corev1.Pod {
	w.Helper()
	pods := &corev1.PodList{}
	if err := w.admin.List(w.Context(), pods, client.InNamespace(team), client.MatchingLabels{batchv1.JobNameLabel: name}); err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(pods.Items, func(x, y corev1.Pod) int { return strings.Compare(x.Spec.NodeName, y.Spec.NodeName) })
	return pods.Items
}

func names(pods []corev1.Pod) []string {
	list := make([]string, len(pods))
	for i := range pods {
		list[i] = pods[i].Name
	}
	return list
}

func (w *world) labelNode(name, health string) {
	w.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {"autopilot.ibm.com/gpuhealth": %q}}}`, health)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.admin.Patch(w.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatal(err)
	}
}

// hasMoved: the node was to blame, and the work paid nothing.
func (w *world) hasMoved(name string, times int32) {
	w.Helper()
	aw := &workload.AppWrapper{}
	if err := w.admin.Get(w.Context(), client.ObjectKey{Namespace: team, Name: name}, aw); err != nil {
		w.Fatal(err)
	}
	if aw.Status.Migrations != times || aw.Status.Retries != 0 {
		w.Errorf("%s: %d migrations and %d retries, want %d and 0", name, aw.Status.Migrations, aw.Status.Retries, times)
	}
}

// hasItsQuota: Kueue counts as many devices for the team as its work has.
func (w *world) hasItsQuota(devices string) {
	w.Helper()
	err := sandbox.Within(w.Context(), limit, func() error {
		queue := &kueue.ClusterQueue{}
		if err := w.admin.Get(w.Context(), client.ObjectKey{Name: team + "-cluster-queue"}, queue); err != nil {
			return err
		}
		for _, flavor := range queue.Status.FlavorsUsage {
			for _, used := range flavor.Resources {
				if used.Name == "nvidia.com/gpu" && used.Total.String() == devices {
					return nil
				}
			}
		}
		return errors.New(fmt.Sprint(queue.Status.FlavorsUsage))
	})
	if err != nil {
		w.Errorf("the team does not use %s devices: %v", devices, err)
	}
}
