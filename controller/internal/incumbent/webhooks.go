// SPDX-License-Identifier: Apache-2.0

package incumbent

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// webhooks finds a controller by the webhook that it serves. An operator that has an
// AppWrapper controller inside, such as OpenShift AI's codeflare-operator, may elect no
// leader, or under another name.
type webhooks struct {
	list func(context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error)
	// pod is a running pod of a Service; empty where there is none.
	pod func(context.Context, types.NamespacedName) (string, error)
	own types.NamespacedName
}

// server is who answers for AppWrappers, besides us and Kueue.
func (w *webhooks) server(ctx context.Context) (string, error) {
	all, err := w.list(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot list webhook configurations: %w", err)
	}
	for i := range all {
		if isKueues(&all[i]) {
			continue
		}
		for _, hook := range all[i].Webhooks {
			service := serviceOf(hook)
			if !has(hook, v1beta2.GroupVersion.Group, "appwrappers") || service == w.own || service.Name == "" {
				continue
			}
			if pod, err := w.pod(ctx, service); err != nil || pod != "" {
				return fmt.Sprintf("pod %s in namespace %s, which MutatingWebhookConfiguration %s calls", pod, service.Namespace, all[i].Name), err
			}
		}
	}
	return "", nil
}

// isKueues: Kueue has a webhook for AppWrappers, too, beside those for its own kinds.
func isKueues(c *admissionregistrationv1.MutatingWebhookConfiguration) bool {
	return slices.ContainsFunc(c.Webhooks, func(hook admissionregistrationv1.MutatingWebhook) bool {
		return has(hook, "kueue.x-k8s.io", "workloads")
	})
}

func has(hook admissionregistrationv1.MutatingWebhook, group, resource string) bool {
	return slices.ContainsFunc(hook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource)
	})
}

func serviceOf(hook admissionregistrationv1.MutatingWebhook) types.NamespacedName {
	if service := hook.ClientConfig.Service; service != nil {
		return types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	}
	return types.NamespacedName{}
}

func listConfigurations(reader client.Reader) func(context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return func(ctx context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error) {
		found := &admissionregistrationv1.MutatingWebhookConfigurationList{}
		err := reader.List(ctx, found)
		return found.Items, err
	}
}

// runningPod looks for one that a Service leads to: the Service alone outlives its pods.
func runningPod(reader client.Reader) func(context.Context, types.NamespacedName) (string, error) {
	return func(ctx context.Context, key types.NamespacedName) (string, error) {
		service := &corev1.Service{}
		if err := reader.Get(ctx, key, service); apierrors.IsNotFound(err) || err == nil && len(service.Spec.Selector) == 0 {
			return "", nil
		} else if err != nil {
			return "", fmt.Errorf("cannot get the Service %s: %w", key, err)
		}
		pods := &corev1.PodList{}
		if err := reader.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
			return "", fmt.Errorf("cannot list the pods of the Service %s: %w", key, err)
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				return pods.Items[i].Name, nil
			}
		}
		return "", nil
	}
}
