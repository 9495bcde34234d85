// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"context"
	"fmt"
	"testing"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/webhooks/jax"
	"github.com/kubeflow/training-operator/pkg/webhooks/paddlepaddle"
	"github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	"github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
	"github.com/kubeflow/training-operator/pkg/webhooks/xgboost"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type creation interface {
	ValidateCreate(ctx context.Context, object runtime.Object) (admission.Warnings, error)
}

// The webhooks of the training operator judge the same jobs.
func TestTheTrainingOperatorRefusesTheSame(t *testing.T) {
	for kind, its := range map[string]struct {
		webhook                creation
		job                    runtime.Object
		field, role, container string
	}{
		"PyTorchJob": {&pytorch.Webhook{}, &kubeflow.PyTorchJob{}, "pytorchReplicaSpecs", "Master", "pytorch"},
		"TFJob":      {&tensorflow.Webhook{}, &kubeflow.TFJob{}, "tfReplicaSpecs", "Worker", "tensorflow"},
		"XGBoostJob": {&xgboost.Webhook{}, &kubeflow.XGBoostJob{}, "xgbReplicaSpecs", "Master", "xgboost"},
		"PaddleJob":  {&paddlepaddle.Webhook{}, &kubeflow.PaddleJob{}, "paddleReplicaSpecs", "Worker", "paddle"},
		"JAXJob":     {&jax.Webhook{}, &kubeflow.JAXJob{}, "jaxReplicaSpecs", "Worker", "jax"},
	} {
		for _, row := range []struct {
			name, container string
			refused         bool
		}{{"j", its.container, false}, {"j", "main", true}, {"7b", its.container, true}, {"a.b", its.container, true}} {
			template := fmt.Sprintf("{apiVersion: kubeflow.org/v1, kind: %s, metadata: {name: %q}, spec: {%s: {%s: {replicas: 1, template: {spec: {containers: [{name: %s, image: i}]}}}}}}",
				kind, row.name, its.field, its.role, row.container)
			aw := appWrapper(t, component(template))
			job := its.job.DeepCopyObject()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(Decode(aw).Templates[0].Object, job); err != nil {
				t.Fatal(err)
			}
			_, theirs := its.webhook.ValidateCreate(t.Context(), job)
			ours := ValidateCreate(aw, DefaultLimits)
			if (theirs != nil) != row.refused || (len(ours) > 0) != row.refused {
				t.Errorf("%s\nthe operator: %v\nwe: %v", template, theirs, ours)
			}
		}
	}
}
