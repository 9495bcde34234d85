// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// template is an object that the API server can validate only when the platform works.
type template struct {
	object string
	// byController is set if our controller creates it, instead of the administrator.
	byController bool
}

// templates probe every webhook, and then whether the API server knows the kinds of owners.
// With the admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift, the API
// server learns new kinds up to half a minute late, and the training operator does not retry
// what was rejected in the meantime. The plugin ignores administrators, so these probes
// impersonate our controller.
var templates = []template{
	{object: `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: probe}}`},
	{object: `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: probe, namespace: default}, spec: {components: []}}`},
	{object: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: probe, namespace: default}, spec: {pytorchReplicaSpecs: {}}}`},
	{object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: probe, namespace: default}, spec: {}}`},
	{object: `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: probe, namespace: default}, spec: {}}`},
	{object: `{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: probe, namespace: default}, spec: {application: {name: probe}}}`},
	owned("workload.codeflare.dev/v1beta2", "AppWrapper"),
	owned("kubeflow.org/v1", "PyTorchJob"),
	owned("ray.io/v1", "RayCluster"),
	owned("jobset.x-k8s.io/v1alpha2", "JobSet"),
	owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
}

// owned returns a Pod whose owner has the given kind.
func owned(apiVersion, kind string) template {
	return template{
		byController: true,
		object: `{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default, ownerReferences: [{apiVersion: ` + apiVersion +
			`, kind: ` + kind + `, name: probe, uid: probe, blockOwnerDeletion: true}]}, spec: {containers: [{name: probe, image: probe}]}}`,
	}
}

// controllersKind is the kind whose CRD our controller's chart installs.
var controllersKind = schema.GroupKind{Group: "workload.codeflare.dev", Kind: "AppWrapper"}

// Probe is one request to the API server, which impersonates a user.
type Probe struct {
	object *unstructured.Unstructured
	user   string
}

// ProbesFor returns the probes of the kinds whose CRDs a release defines.
func ProbesFor(objects []helmrelease.Object, namespace string) ([]Probe, error) {
	kinds := helmrelease.DefinedKinds(objects)
	var all []Probe
	for _, p := range templates {
		q := Probe{object: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal([]byte(p.object), &q.object.Object); err != nil {
			return nil, fmt.Errorf("cannot read a probe: %w", err)
		}
		kind := q.object.GroupVersionKind().GroupKind()
		if p.byController {
			if !kinds[controllersKind] {
				continue // there is no controller to impersonate
			}
			q.user = "system:serviceaccount:" + namespace + ":appwrapper-controller-manager"
			owner := q.object.GetOwnerReferences()[0]
			kind = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		}
		if kinds[kind] {
			all = append(all, q)
		}
	}
	return all, nil
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
