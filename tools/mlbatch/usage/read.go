// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// Read lists the AppWrappers and Workloads of a namespace, or of all if it is empty. Who may not list those of all
// namespaces gets those of the own one.
func Read(ctx context.Context, c client.Reader, namespace, own string) (Objects, error) {
	o := Objects{Namespace: namespace}
	err := o.readAppWrappers(ctx, c)
	if namespace == "" && apierrors.IsForbidden(err) {
		o = Objects{Namespace: own, Unread: []string{o.failed(err, "appwrappers").Error() + "; these are those of namespace " + own}}
		err = o.readAppWrappers(ctx, c)
	}
	if err != nil {
		return Objects{}, o.failed(err, "appwrappers")
	}
	workloads := []kueue.Workload{}
	add := func(page *kueue.WorkloadList) { workloads = append(workloads, page.Items...) }
	if err := reading.Pages(ctx, c, add, client.InNamespace(o.Namespace)); err != nil {
		o.Unread = append(o.Unread, o.failed(err, "workloads").Error()+"; the comparison with Kueue is missing")
		return o, nil
	}
	o.Workloads = workloads
	return o, nil
}

func (o *Objects) readAppWrappers(ctx context.Context, c client.Reader) error {
	add := func(page *v1beta2.AppWrapperList) { o.AppWrappers = append(o.AppWrappers, page.Items...) }
	return reading.Pages(ctx, c, add, client.InNamespace(o.Namespace))
}

func (o *Objects) failed(err error, resource string) error {
	if o.Namespace == "" {
		resource += " in all namespaces"
	}
	return reading.Failed(err, reading.Deed{Verb: "list", Resource: resource, Namespace: o.Namespace})
}
