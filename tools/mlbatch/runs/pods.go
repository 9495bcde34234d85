// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
)

// podsOf are the pods of a Run in the order of their steps and workers. Of two with the same number, the newer
// is the first.
func podsOf(ctx context.Context, c client.Reader, run *v1alpha1.Run) ([]podlogs.Pod, error) {
	pods, err := clusterstate.List[corev1.Pod](ctx, c, &corev1.PodList{}, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.RunLabel: run.Name})
	if err != nil {
		return nil, failed(err, "cannot list the pods of Run %s", run.Name)
	}
	var steps []string
	for _, step := range run.Status.Steps {
		steps = append(steps, step.Name)
	}
	return podlogs.Sorted(pods, steps...), nil
}
