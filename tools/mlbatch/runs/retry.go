// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

const (
	// RetryOf is the annotation that names the first Run, or AppWrapper, with this spec.
	RetryOf = "codeflare.dev/retry-of"
	// longestName is the most characters of a Run's name.
	longestName = 63
)

// Retry creates another Run with the spec of this one, after a change. Its name is NAME-2, or has the next number that
// is free.
func Retry(ctx context.Context, c client.Client, key client.ObjectKey, change func(client.Object), out io.Writer) error {
	old, err := get(ctx, c, key)
	if err != nil {
		return err
	}
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RunList"))
	taken := map[string]bool{}
	keep := func(run *metav1.PartialObjectMetadata) { taken[run.Name] = true }
	if err := clusterstate.Each(ctx, c, &all, keep, client.InNamespace(key.Namespace)); err != nil {
		return failed(err, "cannot list the Runs of namespace %s", key.Namespace)
	}
	run := again(old, taken)
	change(run)
	err = c.Create(ctx, run, fieldManager)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another Run %s was created at this moment: run the command again", run.Name)
	}
	if err != nil {
		return failed(err, "cannot create Run %s", run.Name)
	}
	fmt.Fprintf(out, "Run %s was submitted in namespace %s\n", run.Name, run.Namespace)
	if !old.Status.Phase.Terminal() {
		fmt.Fprintf(out, "Run %s has not ended: end it with 'mlbatch cancel run/%s'\n", old.Name, old.Name)
	}
	return nil
}

// again is a new Run with the spec of an old one, and a name that is not taken.
func again(old *v1alpha1.Run, taken map[string]bool) *v1alpha1.Run {
	base := cmp.Or(old.Annotations[RetryOf], old.Name)
	run := &v1alpha1.Run{Spec: *old.Spec.DeepCopy()}
	run.Namespace, run.Labels = old.Namespace, Untracked(old.Labels)
	run.Name = NextName(base, old.Name, longestName, taken)
	run.Annotations = map[string]string{RetryOf: base}
	for name, value := range Untracked(old.Annotations) {
		// Those of the group are written at admission.
		if name != corev1.LastAppliedConfigAnnotation && !strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") {
			run.Annotations[name] = value
		}
	}
	run.Spec.Cancel = false
	return run
}

// NextName is base with the first free number above that of the old name, in at most so many characters.
func NextName(base, old string, longest int, taken map[string]bool) string {
	number := 2
	if own, err := strconv.Atoi(strings.TrimPrefix(old, base+"-")); err == nil && own > 1 {
		number = own + 1
	}
	for ; ; number++ {
		suffix := "-" + strconv.Itoa(number)
		room := min(len(base), longest-len(suffix))
		if name := strings.TrimRight(base[:room], "-") + suffix; !taken[name] {
			return name
		}
	}
}
