// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// webhooksTimeout bounds the wait for certificates to be made and trusted.
const webhooksTimeout = 3 * time.Minute

// probes are objects that only a webhook of each operator lets pass or refuse.
var probes = []string{
	`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: probe}}`,
	`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: probe, namespace: default}, spec: {components: []}}`,
	`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: probe, namespace: default}, spec: {pytorchReplicaSpecs: {}}}`,
}

// answered reports whether a webhook has let a probe pass or refused it. A
// server that cannot be reached, or does not know the kind yet, is no answer.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var refusal apierrors.APIStatus
	return errors.As(err, &refusal) && !apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "failed calling webhook")
}

// awaitWebhooks waits until the API server reaches every webhook. A pod that
// is ready is not enough: certificates are made, and trusted, a moment later.
// Nothing is stored: each probe is a dry run, and its refusal is an answer.
func awaitWebhooks(ctx context.Context, config *rest.Config) error {
	api, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot talk to the cluster: %w", err)
	}
	for _, probe := range probes {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(probe), &object.Object); err != nil {
			return fmt.Errorf("cannot read a probe: %w", err)
		}
		var silence error
		err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, webhooksTimeout, true, func(ctx context.Context) (bool, error) {
			silence = api.Create(ctx, object.DeepCopy(), client.DryRunAll)
			return answered(silence), nil
		})
		if err != nil {
			return fmt.Errorf("the webhook for %s did not answer in %s: %w", object.GetKind(), webhooksTimeout, silence)
		}
	}
	return nil
}
