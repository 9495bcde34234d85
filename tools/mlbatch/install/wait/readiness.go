// SPDX-License-Identifier: Apache-2.0

// Package wait waits until the pods of a release are ready and its webhooks answer, and
// shows the progress.
package wait

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// Ready waits until CRDs are served and the pods of Deployments are ready.
func Ready(ctx context.Context, api access.API, objects []helmrelease.Object, timeout time.Duration, progress helmrelease.Progress) error {
	var waitsFor []string
	report := newReporter(progress)
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if waitsFor, err = Unready(ctx, api, objects); err != nil {
			waitsFor = []string{err.Error()} // the API server may be unavailable for a moment: retry
		}
		report.waitsFor(waitsFor...)
		return len(waitsFor) == 0, nil
	})
	if err == nil || ctx.Err() != nil || len(waitsFor) == 0 {
		return err
	}
	why := explain(ctx, api, namespaceOfDeployments(objects))
	return fmt.Errorf("the platform is not ready after %s; what is installed is kept: %s%s", timeout, strings.Join(waitsFor, "; "), why)
}

// Unready returns a reason for each object that is not ready.
func Unready(ctx context.Context, api access.API, objects []helmrelease.Object) ([]string, error) {
	var all []string
	for _, o := range objects {
		var why string
		var err error
		switch o.GetKind() {
		case helmrelease.CustomResourceDefinition:
			why, err = notEstablished(ctx, api, o)
		case "Deployment":
			why, err = notAvailable(ctx, api, o)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if why != "" {
			all = append(all, why)
		}
	}
	return all, nil
}

func notEstablished(ctx context.Context, api access.API, o helmrelease.Object) (string, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(o.GroupVersionKind())
	if err := api.Get(ctx, client.ObjectKeyFromObject(o), there); client.IgnoreNotFound(err) != nil {
		return "", err
	}
	conditions, _, _ := unstructured.NestedSlice(there.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return "", nil
		}
	}
	return "the kind " + o.GetName() + " is not served yet", nil
}

func notAvailable(ctx context.Context, api access.API, o helmrelease.Object) (string, error) {
	d, err := api.AppsV1().Deployments(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "the Deployment " + o.GetName() + " is not there", nil
	}
	if err != nil {
		return "", err
	}
	wanted, ready := Pods(*d)
	if ready >= wanted && d.Status.ObservedGeneration >= d.Generation {
		return "", nil
	}
	why := fmt.Sprintf("%s: %d of %d pods ready", d.Name, ready, wanted)
	if refused := podsRefused(*d); refused != "" {
		return why + ", " + refused, nil
	}
	selected, err := api.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set(d.Spec.Selector.MatchLabels).String()})
	if err != nil {
		return why, nil //nolint:nilerr // the pods only explain why
	}
	for _, p := range selected.Items {
		if obstacle := keeps(p); obstacle != "" {
			return why + ", " + p.Name + " " + obstacle, nil
		}
	}
	return why, nil
}

// Pods returns how many pods a Deployment wants, and how many are ready and have its current
// template.
func Pods(d appsv1.Deployment) (wanted, ready int32) {
	wanted = 1
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	old := d.Status.Replicas - d.Status.UpdatedReplicas
	return wanted, max(0, min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas-old))
}

// podsRefused returns why the API server refuses the pods of a Deployment, as a quota or Pod Security does.
func podsRefused(d appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "its pods are refused: " + c.Message
		}
	}
	return ""
}

// keeps returns why a pod is not ready, if its status has a reason.
func keeps(p corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "is not scheduled: " + c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return strings.TrimSpace("waits: " + w.Reason + " " + w.Message)
		}
	}
	return ""
}

func namespaceOfDeployments(objects []helmrelease.Object) string {
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			return o.GetNamespace()
		}
	}
	return ""
}
