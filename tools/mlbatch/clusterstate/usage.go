// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
)

// Usage lists the AppWrappers and Workloads of a namespace, or of all if it is empty. A user who may not list those of
// all namespaces gets those of the own one.
func Usage(ctx context.Context, c client.Reader, namespace, own string) (o usage.Objects, err error) {
	o.Namespace = namespace
	err = Each(ctx, c, &v1beta2.AppWrapperList{}, o.Add, client.InNamespace(namespace))
	if namespace == "" && apierrors.IsForbidden(err) {
		o.Namespace, o.Unread = own, []string{failedIn("", err, "appwrappers").Error() + "; these are those of namespace " + own}
		err = Each(ctx, c, &v1beta2.AppWrapperList{}, o.Add, client.InNamespace(own))
	}
	if err != nil {
		return usage.Objects{}, failedIn(o.Namespace, err, "appwrappers")
	}
	o.Workloads = []kueue.Workload{}
	if err = Each(ctx, c, &kueue.WorkloadList{}, o.AddWorkload, client.InNamespace(o.Namespace)); err != nil {
		o.Workloads = nil
		o.Unread = append(o.Unread, failedIn(o.Namespace, err, "workloads").Error()+"; the comparison with Kueue is missing")
	}
	return o, nil
}

// failedIn names all namespaces if that is what could not be listed.
func failedIn(namespace string, err error, resource string) error {
	if namespace == "" {
		resource += " in all namespaces"
	}
	return Failed(err, Request{Verb: "list", Resource: resource, Namespace: namespace})
}
