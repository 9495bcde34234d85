// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// +kubebuilder:rbac:groups=ray.io,resources=rayjobs,verbs=get;list;watch;create;delete

// rayJob is a RayJob: the pods of its cluster. The pod that submits the job is not
// among them, because Kueue's copy of this rule does not count it.
var rayJob = Kind{
	GVK: schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"},
	podSets: func(object map[string]any) ([]v1beta2.AppWrapperPodSet, error) {
		return rayPodSets(object, "template.spec.rayClusterSpec", "spec", "rayClusterSpec")
	},
}
