// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// List returns the Runs of a namespace, or of all if it is empty.
func List(ctx context.Context, c client.Reader, namespace string) ([]v1alpha1.Run, error) {
	items, err := clusterstate.List[v1alpha1.Run](ctx, c, &v1alpha1.RunList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, failed(err, "cannot list the Runs%s", ofNamespace(namespace))
	}
	return items, nil
}

func ofNamespace(namespace string) string {
	if namespace == "" {
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

// Size is that of a Run, with its workers and what each requests; empty until the Run is accepted.
func Size(run *v1alpha1.Run) string {
	resolved := run.Status.Resolved
	if resolved == nil {
		return ""
	}
	return resolved.Size + ": " + runplan.Size{Workers: resolved.Workers, PerWorker: resolved.PerWorker}.String()
}
