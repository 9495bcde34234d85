// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// updateRetained updates objects that were retained when the release was uninstalled, or when a
// team left it, and those of others that the release may take. It runs before Helm, because Helm 3
// adopts them without changing them: of custom resources it changes only what differs from the
// previous revision, which did not have them. Of webhooks, it keeps those that the release does not
// have, and changes them last: those of an operator that is gone would refuse its successor.
func (d *delivery) updateRetained(ctx context.Context) error {
	var before []helmrelease.Object
	if d.Last != nil {
		var err error
		if before, err = helmrelease.Decode(d.Last.Manifest); err != nil {
			return err
		}
	}
	return d.updateThose(ctx, d.api.Client, before, d.objects)
}

// builtIn returns a scheme with the kinds of Kubernetes. It is not the shared scheme, because
// other packages add kinds to that one.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(kinds))
	return kinds
})

// retainedByUs reports whether the release updates this object if an earlier release retained it.
func retainedByUs(o helmrelease.Object) bool {
	return o.GetAnnotations()["helm.sh/resource-policy"] == "keep" &&
		o.GetKind() != helmrelease.CustomResourceDefinition && !builtIn().Recognizes(o.GroupVersionKind())
}

// field is the part of an object that is set before Helm, if there is one: of webhooks, and of what an
// earlier release may have retained.
func field(o helmrelease.Object) string {
	switch {
	case isWebhooks(o):
		return "webhooks"
	case retainedByUs(o):
		return "spec"
	}
	return ""
}

func isWebhooks(o helmrelease.Object) bool {
	kind := o.GroupVersionKind().GroupKind()
	return kind.Group == "admissionregistration.k8s.io" && strings.HasSuffix(kind.Kind, "WebhookConfiguration")
}

// updateThose updates the objects that the release has now but did not have before, and those that it takes.
func (d *delivery) updateThose(ctx context.Context, api client.Client, before, now []helmrelease.Object) error {
	had := map[string]bool{}
	for _, object := range before {
		had[identity(object)] = true
	}
	for _, object := range now {
		if field(object) == "" {
			continue
		}
		isOurs := func(is client.Object) bool {
			if d.Owns(is) { // otherwise Helm sees to it
				return retainedByUs(object) && !had[identity(object)]
			}
			return d.takeOwnership
		}
		if err := setAsIfNew(ctx, d.Release, api, object, isOurs); err != nil {
			return fmt.Errorf("cannot update %s, which was there before this release: %w", identity(object), err)
		}
	}
	return nil
}

// setAsIfNew sets that field of an object as if the release had just created it, if the object is ours to set.
func setAsIfNew(ctx context.Context, r helmrelease.Release, api client.Client, wanted helmrelease.Object, isOurs func(client.Object) bool) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(wanted.GroupVersionKind())
		err := api.Get(ctx, client.ObjectKeyFromObject(wanted), is)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && !isOurs(is) {
			return nil
		}
		if err != nil {
			return err
		}
		set := is.DeepCopy()
		set.SetLabels(joined(is.GetLabels(), wanted.GetLabels()))
		set.SetAnnotations(joined(is.GetAnnotations(), wanted.GetAnnotations()))
		r.Own(set)
		delete(set.Object, field(wanted))
		if content, has := wanted.Object[field(wanted)]; has {
			set.Object[field(wanted)] = content
		}
		if equality.Semantic.DeepEqual(is.Object, set.Object) {
			return nil
		}
		return api.Update(ctx, set)
	})
}

func joined(all, more map[string]string) map[string]string {
	both := maps.Clone(all)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, more)
	return both
}

func identity(object helmrelease.Object) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
