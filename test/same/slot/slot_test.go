// SPDX-License-Identifier: Apache-2.0

package slot_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/test/same/slot"
)

func TestPodsHaveTheSlotOfThePodsThatTheyReplace(t *testing.T) {
	for name, row := range map[string]struct {
		labels map[string]string
		owner  string
		want   string
		number int
	}{
		"a pod of an indexed Job":     {map[string]string{"batch.kubernetes.io/job-name": "train", "batch.kubernetes.io/job-completion-index": "3"}, "Job", "train/3", 3},
		"a pod of a Job":              {map[string]string{"batch.kubernetes.io/job-name": "train"}, "Job", "train", 0},
		"a pod of a JobSet":           {map[string]string{"batch.kubernetes.io/job-name": "set-a-1", "jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "1", "batch.kubernetes.io/job-completion-index": "2"}, "Job", "a/1.2", 2},
		"a pod of a PyTorchJob":       {map[string]string{"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1"}, "PyTorchJob", "worker/1", 1},
		"a worker of Ray":             {map[string]string{"ray.io/group": "small"}, "RayCluster", "small", 0},
		"a leader":                    {map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "0", "leaderworkerset.sigs.k8s.io/group-index": "1"}, "StatefulSet", "leader/1", 1},
		"a worker of a leader":        {map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "2", "leaderworkerset.sigs.k8s.io/group-index": "1"}, "StatefulSet", "worker/1.2", 2},
		"a pod of a StatefulSet":      {map[string]string{"apps.kubernetes.io/pod-index": "2"}, "StatefulSet", "statefulset/2", 2},
		"a pod of a Deployment":       {nil, "ReplicaSet", "replicaset", 0},
		"a pod that nothing controls": {nil, "", "alone", 0},
		"the same, wrapped":           {nil, "AppWrapper", "alone", 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone", Labels: row.labels}}
			if row.owner != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: row.owner, Controller: new(true)}}
			}
			got := slot.Of(pod)
			if got.String() != row.want || got.Number() != row.number {
				t.Errorf("the slot is %q with the number %d, not %q with %d", got, got.Number(), row.want, row.number)
			}
		})
	}
}
