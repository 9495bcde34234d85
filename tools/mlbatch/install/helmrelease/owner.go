// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// OwnerOf reads the release of an object from the annotations that Helm sets.
func OwnerOf(o client.Object) preflight.Owner {
	a := o.GetAnnotations()
	return preflight.Owner{Name: a["meta.helm.sh/release-name"], Namespace: a["meta.helm.sh/release-namespace"]}
}

// Owns reports whether the release owns an object.
func (r Release) Owns(object client.Object) bool {
	return OwnerOf(object) == preflight.Owner{Name: r.Name, Namespace: r.Namespace}
}

// Own makes the release the owner of an object, as Helm does.
func (r Release) Own(object client.Object) {
	labels, annotations := maps.Clone(object.GetLabels()), maps.Clone(object.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = r.Name, r.Namespace
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// NamespaceOf returns the release's namespace for namespaced objects that name none.
func (r Release) NamespaceOf(api access.API, o Object) string {
	if namespace := o.GetNamespace(); namespace != "" {
		return namespace
	}
	if namespaced, err := api.IsObjectNamespaced(o); err != nil || !namespaced {
		return ""
	}
	return r.Namespace
}
