// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// datashims are the groups of Datashim's Datasets: the second is that of older versions. A chart grants
// the right to list them if the setting is on.
var datashims = []schema.GroupVersion{{Group: "datashim.io", Version: "v1alpha1"}, {Group: "com.ie.ibm.hpsys", Version: "v1alpha1"}}

func inputNotFound(p runplan.Problem) bool { return p.Reason == runplan.InputNotFound }

// withDatashim plans again with Datashim's Datasets if an input is missing.
func (r *Reconciler) withDatashim(ctx context.Context, in runplan.Input, plan runlife.Plan) (runlife.Plan, error) {
	if !r.settings.Datashim || !slices.ContainsFunc(plan.Problems, inputNotFound) {
		return plan, nil
	}
	var err error
	if in.Datashim, err = r.datasets(ctx, in.Run.Namespace); err != nil {
		return plan, err
	}
	plan.Planned, plan.Problems = runplan.Plans(in)
	return plan, nil
}

// datasets are the names of Datashim's Datasets in a namespace. They are not watched: Datashim may not
// be installed, and a Run needs them once.
func (r *Reconciler) datasets(ctx context.Context, namespace string) ([]string, error) {
	var names []string
	for _, group := range datashims {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(group.WithKind("DatasetList"))
		err := r.live.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the Datasets of Datashim: %w", err)
		}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
	}
	return names, nil
}
