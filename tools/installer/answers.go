// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// answersTimeout bounds the wait for certificates to be made and trusted.
const answersTimeout = 3 * time.Minute

// probe is an object that the API server can judge only when all is in place.
type probe struct {
	object string
	// user creates it; empty is the administrator.
	user string
}

// AwaitAnswers waits until the platform answers, with the parts that are off by
// default if they are wanted.
func AwaitAnswers(ctx context.Context, config *rest.Config, everyPart bool) error {
	all := slices.Clone(probes)
	if everyPart {
		all = append(all, optionalProbes...)
	}
	return awaitAnswers(ctx, config, all)
}

// probes ask every webhook, and then whether the API server knows the kinds
// that own others: where OwnerReferencesPermissionEnforcement is on, as on
// OpenShift, it learns them up to half a minute late, and the training operator
// does not try again what was refused in the meantime. That plugin lets
// administrators pass, so these probes are made by our controller.
var probes = []probe{
	{object: `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: probe}}`},
	{object: `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: probe, namespace: default}, spec: {components: []}}`},
	{object: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: probe, namespace: default}, spec: {pytorchReplicaSpecs: {}}}`},
	owned("workload.codeflare.dev/v1beta2", "AppWrapper"),
	owned("kubeflow.org/v1", "PyTorchJob"),
	owned("ray.io/v1", "RayCluster"),
}

// optionalProbes do so for the parts that are off by default.
var optionalProbes = []probe{
	{object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: probe, namespace: default}, spec: {}}`},
	{object: `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: probe, namespace: default}, spec: {}}`},
	owned("jobset.x-k8s.io/v1alpha2", "JobSet"),
	owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
}

// owned is a Pod that has an owner of some kind.
func owned(apiVersion, kind string) probe {
	return probe{
		user: "system:serviceaccount:" + Namespace + ":appwrapper-controller-manager",
		object: `{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default, ownerReferences: [{apiVersion: ` + apiVersion +
			`, kind: ` + kind + `, name: probe, uid: probe, blockOwnerDeletion: true}]}, spec: {containers: [{name: probe, image: probe}]}}`,
	}
}

// answered reports whether a probe has been let pass or refused for good. A
// server that cannot be reached, has trouble of its own, or does not know a kind
// yet, is no answer.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || refusal.Status().Code >= 500 {
		return false
	}
	return !strings.Contains(err.Error(), "cannot find RESTMapping")
}

// awaitAnswers waits until the API server judges every probe. Operators whose
// pods are ready are not enough: certificates are made and trusted, and kinds
// become known, a moment later. Nothing is stored: each probe is a dry run.
func awaitAnswers(ctx context.Context, config *rest.Config, all []probe) error {
	for _, p := range all {
		if err := awaitAnswer(ctx, config, p, answersTimeout); err != nil {
			return err
		}
	}
	return nil
}

func awaitAnswer(ctx context.Context, config *rest.Config, p probe, timeout time.Duration) error {
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = p.user
	as.WarningHandler = rest.NoWarnings{} // about objects that are not stored
	api, err := client.New(as, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot talk to the cluster: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(p.object), &object.Object); err != nil {
		return fmt.Errorf("cannot read a probe: %w", err)
	}
	var silence error
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		silence = api.Create(ctx, object.DeepCopy(), client.DryRunAll)
		return answered(silence), nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the platform did not answer in %s, a %s could not be judged: %w", timeout, object.GetKind(), silence)
	}
	return nil
}
