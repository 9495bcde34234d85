// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// Cancel ends a Run, and keeps its record. It changes nothing if the Run has ended, or was cancelled.
func Cancel(ctx context.Context, c client.Client, key client.ObjectKey, out io.Writer) error {
	run, err := get(ctx, c, key)
	if err != nil {
		return err
	}
	switch phase := run.Status.Phase; {
	case phase == v1alpha1.RunCancelled:
		fmt.Fprintf(out, "Run %s was cancelled before\n", run.Name)
		return nil
	case phase.Terminal():
		fmt.Fprintf(out, "Run %s has already ended: it is %s\n", run.Name, phase)
		return nil
	case run.Spec.Cancel:
		fmt.Fprintf(out, "Run %s is being cancelled: it is still %s\n", run.Name, phaseOf(run))
		return nil
	}
	err = c.Patch(ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`)), fieldManager)
	if apierrors.IsNotFound(err) {
		return notRead(err, key)
	}
	if err != nil {
		return failed(err, "cannot cancel Run %s", key.Name)
	}
	fmt.Fprintf(out, "Run %s is cancelled in namespace %s\n", key.Name, key.Namespace)
	return nil
}
