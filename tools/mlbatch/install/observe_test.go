// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

func TestANamespaceThatIsBeingDeletedIsSeen(t *testing.T) {
	namespace := func(leaves *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: helmrelease.DefaultNamespace, DeletionTimestamp: leaves, Finalizers: []string{"x"}}}
	}
	for name, c := range map[string]struct {
		typed *fake.Clientset
		want  []preflight.Object
	}{
		"it is not there":     {fake.NewClientset(), nil},
		"it stays":            {fake.NewClientset(namespace(nil)), nil},
		"it is being deleted": {fake.NewClientset(namespace(&metav1.Time{Time: time.Unix(1, 0)})), []preflight.Object{{Kind: "Namespace", Name: helmrelease.DefaultNamespace}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}}
			err := d.observeNamespace(t.Context(), fakecluster.API(c.typed))
			if diff := cmp.Diff(c.want, d.seen.leaving); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestAnObjectThatNobodyCanConvertIsThere(t *testing.T) {
	said := errors.New(`conversion webhook for kueue.x-k8s.io/v1beta1, Kind=ClusterQueue failed: service "kueue-webhook-service" not found`)
	if !needsConversion(said) {
		t.Errorf("%v keeps an installation from bringing Kueue back", said)
	}
	if needsConversion(errors.New("the server is away")) || needsConversion(nil) {
		t.Error("another error is taken for a webhook that is gone")
	}
}
