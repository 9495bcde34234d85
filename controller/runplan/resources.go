// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wrapped are the resources of all components that a Plan may have. The author of a Run must be
// allowed to create or wrap those of the Run's own.
var Wrapped = []schema.GroupVersionResource{
	{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
	{Group: "ray.io", Version: "v1", Resource: "rayjobs"},
	{Group: "ray.io", Version: "v1", Resource: "rayclusters"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "configmaps"},
	{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"},
}
