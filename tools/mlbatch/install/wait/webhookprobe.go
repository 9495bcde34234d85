// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Probe is a request to create an object that the API server can validate only when the platform
// works. If there is a user, it impersonates the user.
type Probe struct {
	object *unstructured.Unstructured
	user   string
}

// controllersKind is the kind whose CRD our controller's chart installs.
var controllersKind = schema.GroupKind{Group: "workload.codeflare.dev", Kind: "AppWrapper"}

// ProbesFor returns the probes of the kinds whose CRDs a release defines: of every webhook, and then
// of whether the API server knows the kinds of owners. With the admission plugin
// OwnerReferencesPermissionEnforcement, as on OpenShift, the API server learns new kinds up to half a
// minute late, and the training operator does not retry what was rejected in the meantime. The plugin
// ignores administrators, so these probes impersonate our controller.
func ProbesFor(objects []helmrelease.Object, namespace string) ([]Probe, error) {
	defined := helmrelease.DefinedKinds(objects)
	var webhooks, owners []Probe
	for _, kind := range parts.Kinds() {
		if !defined[schema.GroupKind{Group: kind.Group, Kind: kind.Name}] {
			continue
		}
		if kind.Probe != "" {
			probe, err := judged(kind)
			if err != nil {
				return nil, err
			}
			webhooks = append(webhooks, probe)
		}
		if kind.Owns && defined[controllersKind] { // there is a controller to impersonate
			owners = append(owners, owned(kind, "system:serviceaccount:"+namespace+":appwrapper-controller-manager"))
		}
	}
	return append(webhooks, owners...), nil
}

// judged returns the probe of a kind's webhook.
func judged(kind parts.Kind) (Probe, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{"+kind.Probe+"}"), &object.Object); err != nil {
		return Probe{}, fmt.Errorf("cannot read the probe of kind %s: %w", kind.Name, err)
	}
	object.SetAPIVersion(kind.APIVersion())
	object.SetKind(kind.Name)
	return Probe{object: object}, nil
}

// owned returns the probe of a Pod whose owner is of a kind.
func owned(kind parts.Kind, user string) Probe {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"spec": map[string]any{"containers": []any{map[string]any{"name": "probe", "image": "probe"}}},
	}}
	object.SetName("probe")
	object.SetNamespace("default")
	object.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: kind.APIVersion(), Kind: kind.Name, Name: "probe", UID: "probe", BlockOwnerDeletion: ptr.To(true)},
	})
	return Probe{object: object, user: user}
}

// answered reports whether a probe was admitted or denied. A server error, or a kind that the
// API server does not know yet, is no answer.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || refusal.Status().Code >= 500 {
		return false
	}
	return !strings.Contains(err.Error(), "cannot find RESTMapping") && !unasked(err)
}

// unasked reports whether the API server rejected a probe for lack of rights, before any
// webhook saw it.
func unasked(err error) bool {
	if apierrors.IsUnauthorized(err) {
		return true
	}
	return apierrors.IsForbidden(err) &&
		(strings.Contains(err.Error(), "cannot create resource") || strings.Contains(err.Error(), "cannot impersonate resource"))
}

// Webhooks waits until the API server validates every probe. Ready pods are not enough:
// certificates are issued and trusted, and kinds become known, a moment later. Each probe is
// a dry run: nothing is stored.
func Webhooks(ctx context.Context, config *rest.Config, all []Probe, timeout time.Duration, progress helmrelease.Progress) error {
	for _, q := range all {
		if err := webhook(ctx, config, q, timeout, progress); err != nil {
			return err
		}
	}
	return nil
}

func webhook(ctx context.Context, config *rest.Config, q Probe, timeout time.Duration, progress helmrelease.Progress) error {
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = q.user
	as.WarningHandler = rest.NoWarnings{} // the object is not stored
	as.QPS = -1                           // the poll below limits the rate
	api, err := client.New(as, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	var silence error
	report := newReporter(progress)
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		answer := api.Create(ctx, q.object.DeepCopy(), client.DryRunAll)
		if ctx.Err() != nil && silence != nil {
			return false, nil // keep the last error, which says more than a timeout
		}
		silence = answer
		if answered(silence) || unasked(silence) {
			return true, nil
		}
		report.waitsFor(fmt.Sprintf("a %s cannot be validated yet: %v", q.object.GetKind(), silence))
		return false, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the platform's webhooks did not answer within %s, a %s could not be validated: %w", timeout, q.object.GetKind(), silence)
	}
	if unasked(silence) {
		fmt.Fprintf(progress, "warning: could not check whether the webhook for %s answers: %v\n", q.object.GetKind(), silence)
	}
	return nil
}
