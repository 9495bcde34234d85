// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// order is that in which objects are submitted: what Runs need is there before them.
var order = []string{v1alpha1.RunSizeConfigurationKind, v1alpha1.ApplicationKind, v1alpha1.DataSetKind, v1alpha1.RunKind}

// Submit creates the Runs, and applies all other objects. It changes nothing if the API server
// would refuse one of them. It writes a line to out for each object that it created or applied, and
// returns the Runs as stored.
func (m Manifests) Submit(ctx context.Context, c client.Client, out io.Writer) ([]client.Object, error) {
	objects := slices.Clone(m.objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(order, a.GetKind()) - slices.Index(order, b.GetKind())
	})
	for _, o := range objects {
		if err := write(ctx, client.NewDryRunClient(c), asWritten(o)); err != nil {
			return nil, err
		}
	}
	var created []client.Object
	for _, o := range objects {
		written := asWritten(o)
		if err := write(ctx, c, written); err != nil {
			return created, err
		}
		done := "applied"
		if o.GetKind() == v1alpha1.RunKind {
			done = "submitted"
			created = append(created, written)
		}
		fmt.Fprintf(out, "%s %s was %s%s\n", o.GetKind(), o.GetName(), done, inNamespace(o))
	}
	return created, nil
}

func inNamespace(o client.Object) string {
	if o.GetNamespace() == "" {
		return ""
	}
	return " in namespace " + o.GetNamespace()
}

// asWritten returns an object without what only an API server writes, which manifests have that were
// read from a cluster.
func asWritten(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, name := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(o.Object, "metadata", name)
	}
	delete(o.Object, "status")
	return o
}

// write creates a Run, and applies any other object.
func write(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	if o.GetKind() == v1alpha1.RunKind {
		return create(ctx, c, o)
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldManager)
	switch {
	case apierrors.IsConflict(err):
		return failed(err, "cannot apply %s %s, which was changed in another way: remove what differs from the file, or apply it with 'kubectl apply --server-side --force-conflicts'",
			o.GetKind(), o.GetName())
	case apierrors.IsForbidden(err) && o.GetKind() == v1alpha1.RunSizeConfigurationKind:
		return failed(err, "only an administrator may apply RunSizeConfiguration %s: leave it out of the files", o.GetName())
	case err != nil:
		return failed(err, "cannot apply %s %s", o.GetKind(), o.GetName())
	}
	return nil
}

func create(ctx context.Context, c client.Client, run client.Object) error {
	err := c.Create(ctx, run, fieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s already has a Run %s: choose another name, or repeat it with 'mlbatch retry run/%s'", run.GetNamespace(), run.GetName(), run.GetName())
	}
	if err != nil {
		return failed(err, "cannot create Run %s", run.GetName())
	}
	return nil
}
