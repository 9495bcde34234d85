// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

func TestWhatOthersStoreInTheNamespaceIsForgotten(t *testing.T) {
	for name, want := range map[string]bool{DeclaredName: true, DevicesName: true, "other": false} {
		kept, err := Slim(nodehealth.Rules{})(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", ResourceVersion: "1"}, Data: map[string]string{"a": "b"}})
		if c := kept.(*corev1.ConfigMap); err != nil || c.Name != name || c.ResourceVersion != "1" || (len(c.Data) > 0) != want {
			t.Errorf("%s: %+v, %v", name, kept, err)
		}
	}
}
