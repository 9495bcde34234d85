// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// List returns the Runs of a namespace, or of all if it is empty.
func List(ctx context.Context, c client.Reader, namespace string) (*v1alpha1.RunList, error) {
	list := &v1alpha1.RunList{}
	items, err := clusterstate.List[v1alpha1.Run](ctx, c, list, client.InNamespace(namespace))
	if err != nil {
		return nil, failed(err, "cannot list the Runs%s", ofNamespace(namespace))
	}
	list.Items = items
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RunList"))
	for i := range list.Items {
		strip(&list.Items[i])
	}
	return list, nil
}

func ofNamespace(namespace string) string {
	if namespace == "" {
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

// strip makes a Run what its author knows of it.
func strip(run *v1alpha1.Run) {
	run.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RunKind))
	run.ManagedFields = nil
}

// WriteList prints Runs as a table with the columns of kubectl.
func WriteList(out io.Writer, list *v1alpha1.RunList, withNamespace bool, now time.Time) error {
	table := [][]string{{"NAMESPACE", "NAME", "APPLICATION", "STATUS", "SIZE", "WORKERS", "AGE"}}
	for _, run := range list.Items {
		size, workers := "", ""
		if r := run.Status.Resolved; r != nil {
			size, workers = r.Size, strconv.Itoa(int(r.Workers))
		}
		table = append(table, []string{run.Namespace, run.Name, run.Spec.Application.Name, string(run.Status.Phase), size, workers, age(run, now)})
	}
	if !withNamespace {
		for i := range table {
			table[i] = table[i][1:]
		}
	}
	return printing.Table(out, table)
}

func age(run v1alpha1.Run, now time.Time) string {
	return duration.HumanDuration(now.Sub(run.CreationTimestamp.Time))
}
