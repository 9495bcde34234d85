// SPDX-License-Identifier: Apache-2.0

package othercontroller

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// path is that of the mutating webhook of upstream's AppWrapper controller, and of any operator
// that embeds it: it follows from the kind. Policy engines and the like have other paths.
const path = "/mutate-workload-codeflare-dev-v1beta2-appwrapper"

// away is how long to wait for a controller that has a webhook and no running pod: it may be
// moving to another node.
const away = time.Minute

// webhooks finds a controller by the webhook that it serves. An operator that embeds an
// AppWrapper controller, such as OpenShift AI's codeflare-operator, may elect no leader, or
// use another name.
type webhooks struct {
	list func(context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error)
	// pod is a running pod of a Service; empty if there is none.
	pod func(context.Context, types.NamespacedName) (string, error)
	own types.NamespacedName
	now func() time.Time
	// quiet is since when there has been a webhook and no pod.
	quiet time.Time
}

// server is another controller that serves the webhook, or may soon do so. Kueue is none, nor
// are those of ours that wait, whose namespaces are in waiting.
func (w *webhooks) server(ctx context.Context, waiting map[string]bool) (string, error) {
	all, err := w.list(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot list webhook configurations: %w", err)
	}
	known, absent := kueues(all), ""
	known[w.own] = true
	for i := range all {
		for _, service := range services(&all[i]) {
			if known[service] || waiting[service.Namespace] {
				continue
			}
			if pod, err := w.pod(ctx, service); err != nil || pod != "" {
				w.quiet = time.Time{}
				return fmt.Sprintf("pod %s in namespace %s, which MutatingWebhookConfiguration %s calls", pod, service.Namespace, all[i].Name), err
			}
			absent = fmt.Sprintf("a pod behind the Service %s, which MutatingWebhookConfiguration %s calls: it may come back within a minute", service, all[i].Name)
		}
	}
	return w.unlessQuiet(absent), nil
}

func (w *webhooks) unlessQuiet(absent string) string {
	if w.quiet.IsZero() {
		w.quiet = w.now()
	}
	if w.now().Sub(w.quiet) >= away {
		return ""
	}
	return absent
}

// kueues are the Services of Kueue. Its webhook for AppWrappers has the same path; it is known
// by its webhooks for its own kinds, which may be in another configuration.
func kueues(all []admissionregistrationv1.MutatingWebhookConfiguration) map[types.NamespacedName]bool {
	found := map[types.NamespacedName]bool{}
	for i := range all {
		for _, hook := range all[i].Webhooks {
			for _, rule := range hook.Rules {
				if slices.Contains(rule.APIGroups, "kueue.x-k8s.io") {
					found[serviceOf(hook)] = true
				}
			}
		}
	}
	return found
}

// services are those with a webhook at the path of an AppWrapper controller.
func services(c *admissionregistrationv1.MutatingWebhookConfiguration) []types.NamespacedName {
	var all []types.NamespacedName
	for _, hook := range c.Webhooks {
		if service := hook.ClientConfig.Service; service != nil && ptr.Deref(service.Path, "") == path {
			all = append(all, serviceOf(hook))
		}
	}
	return all
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

// runningPod finds a running pod of a Service. The Service alone proves nothing.
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
