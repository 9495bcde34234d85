// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// errNoPlatform is one of the two answers of members and administrators alike.
var errNoPlatform = errors.New("the cluster has no part of MLBatch that you can see: ask an administrator whether the platform is installed")

// Version is that of the platform's controller or, for users who may not list Deployments, of the chart that made the
// queues of the namespace.
func Version(ctx context.Context, c client.Reader, namespace string) (string, error) {
	var versions []string
	ours := client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch"}
	controller := client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch", "app.kubernetes.io/name": "appwrapper"}
	err := Each(ctx, c, &appsv1.DeploymentList{}, func(d *appsv1.Deployment) { versions = append(versions, ofChart(d)) }, controller)
	if apierrors.IsForbidden(err) {
		err = Each(ctx, c, &kueue.LocalQueueList{}, func(q *kueue.LocalQueue) { versions = append(versions, ofChart(q)) }, ours, client.InNamespace(namespace))
		if err != nil {
			return "", Failed(err, Request{Verb: "list", Resource: "localqueues", Namespace: namespace})
		}
	}
	if err != nil {
		return "", Failed(err, Request{Verb: "list", Resource: "deployments"})
	}
	for _, version := range versions {
		if version != "" {
			return version, nil
		}
	}
	return "", errNoPlatform
}

// ofChart is the version of the chart that made an object, or empty.
func ofChart(o metav1.Object) string {
	_, version, _ := strings.Cut(o.GetLabels()["helm.sh/chart"], "-")
	return version
}
