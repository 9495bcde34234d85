// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// core has objects of the parts that every story needs. The API server calls their webhooks
// about each, in a dry run.
var core = []string{
	`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: probe, namespace: default}, spec: {components: []}}`,
	`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: probe}}`,
}

// Platform returns an error that says why no story can run on a cluster: the user is not an
// administrator, or the platform is missing or does not answer.
func Platform(ctx context.Context, api client.Client) error {
	if err := administrator(ctx, api); err != nil {
		return err
	}
	var missing []string
	for _, text := range core {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return fmt.Errorf("cannot read a probe: %w", err)
		}
		err := api.Create(ctx, object, client.DryRunAll)
		switch {
		case meta.IsNoMatchError(err):
			missing = append(missing, "kind "+object.GetKind())
		case silent(err):
			return fmt.Errorf("the cluster knows the kind %s and cannot judge one, so see whether its controller runs: %w", object.GetKind(), err)
		}
	}
	err := api.Get(ctx, client.ObjectKey{Name: "mlbatch-edit"}, &rbacv1.ClusterRole{})
	if apierrors.IsNotFound(err) {
		missing = append(missing, "ClusterRole mlbatch-edit")
	} else if err != nil {
		return fmt.Errorf("cannot ask for the ClusterRole mlbatch-edit: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("the platform is not installed there, for it has no %s; install it first (docs/install.md)", strings.Join(missing, ", no "))
	}
	return nil
}

// silent reports whether an error is no answer to a probe. Any refusal is an answer.
func silent(err error) bool {
	var refusal apierrors.APIStatus
	return err != nil && (!errors.As(err, &refusal) || refusal.Status().Code >= 500)
}

// administrator returns an error unless the user may do everything: stories impersonate members
// of teams, change queues, and read the logs of operators.
func administrator(ctx context.Context, api client.Client) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	if err := api.Create(ctx, review); err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	if !review.Status.Allowed {
		return errors.New("the kubeconfig is of a user who may not do everything, and stories need a cluster administrator's")
	}
	return nil
}
