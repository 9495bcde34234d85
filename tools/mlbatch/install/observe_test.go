// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

func TestANamespaceThatIsBeingDeletedIsSeen(t *testing.T) {
	namespace := func(leaves *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, DeletionTimestamp: leaves, Finalizers: []string{"x"}}}
	}
	for name, c := range map[string]struct {
		typed *fake.Clientset
		want  []preflight.Object
	}{
		"it is not there":     {fake.NewClientset(), nil},
		"it stays":            {fake.NewClientset(namespace(nil)), nil},
		"it is being deleted": {fake.NewClientset(namespace(&metav1.Time{Time: time.Unix(1, 0)})), []preflight.Object{{Kind: "Namespace", Name: Namespace}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{Release: Release{Name: "mlbatch", Namespace: Namespace}}
			err := d.observeNamespace(t.Context(), cluster(c.typed))
			if diff := cmp.Diff(c.want, d.seen.leaving); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
