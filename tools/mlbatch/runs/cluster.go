// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// fieldManager is whose the fields are that this package sets.
const fieldManager = client.FieldOwner("mlbatch")

// ErrNoRuns is returned if a cluster does not serve the kinds of codeflare.dev.
var ErrNoRuns = errors.New("the cluster does not know Runs: an administrator sets codeflare.enabled in the values of the chart mlbatch")

// Scheme returns a scheme with all kinds that this package reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme, err := submit.Scheme()
	if err != nil {
		return nil, err
	}
	return scheme, v1alpha1.AddToScheme(scheme)
}

// failed says what could not be done on the cluster, and why, in one line.
func failed(err error, format string, args ...any) error {
	if notServed(err) {
		return ErrNoRuns
	}
	return fmt.Errorf(format+": %w", append(args, printing.OneLineError(err))...)
}

// notServed reports whether an error says that the cluster has no kinds of codeflare.dev.
func notServed(err error) bool {
	var unknown *meta.NoKindMatchError
	if errors.As(err, &unknown) {
		return unknown.GroupKind.Group == v1alpha1.GroupVersion.Group
	}
	// What the API server answers if the definition was deleted after the client had found it.
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// get reads a Run.
func get(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{}
	if err := c.Get(ctx, key, run); err != nil {
		return nil, notRead(err, key)
	}
	return run, nil
}

func notRead(err error, key client.ObjectKey) error {
	if apierrors.IsNotFound(err) && !notServed(err) {
		return fmt.Errorf("there is no Run %s in namespace %s: see 'mlbatch list --namespace %s'", key.Name, key.Namespace, key.Namespace)
	}
	return failed(err, "cannot read Run %s", key.Name)
}
