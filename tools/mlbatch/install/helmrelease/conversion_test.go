// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
)

func TestKindsThatStayNeedNoWebhookToBeRead(t *testing.T) {
	theirs := fakecluster.ConvertedCRD(DefaultNamespace, "v1beta2")
	theirs.SetAnnotations(nil)
	for name, c := range map[string]struct {
		there    *unstructured.Unstructured
		services *fake.Clientset
		stay     []Object
		want     string
		warns    bool
	}{
		"all is stored as it is read":       {fakecluster.ConvertedCRD(DefaultNamespace, "v1beta2"), fake.NewClientset(), nil, "None", false},
		"some may be stored as it was":      {fakecluster.ConvertedCRD(DefaultNamespace, "v1beta1", "v1beta2"), fake.NewClientset(), nil, "Webhook", true},
		"the kind is somebody else's":       {theirs, fake.NewClientset(), nil, "Webhook", false},
		"its part stays":                    {fakecluster.ConvertedCRD(DefaultNamespace, "v1beta2"), fake.NewClientset(), objects("kueue.x-k8s.io/Cohort"), "Webhook", false},
		"another part stays":                {fakecluster.ConvertedCRD(DefaultNamespace, "v1beta2"), fake.NewClientset(), objects("ray.io/RayJob"), "None", false},
		"somebody is there who converts it": {fakecluster.ConvertedCRD(DefaultNamespace, "v1beta2"), fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: "kueue-webhook-service"}}), nil, "Webhook", false},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakecluster.API(c.services, c.there.DeepCopy())
			var progress strings.Builder
			if err := (Release{Name: "mlbatch", Namespace: DefaultNamespace}).DropConversions(t.Context(), api, c.stay, &progress); err != nil {
				t.Fatal(err)
			}
			if got := fakecluster.Conversion(t, api, c.there); got != c.want {
				t.Errorf("its conversion is %s", got)
			}
			if warned := strings.Contains(progress.String(), "warning: "); warned != c.warns {
				t.Errorf("it says %q", progress.String())
			}
		})
	}
}

func objects(kinds ...string) []Object {
	var all []Object
	for _, crd := range fakecluster.CRDs(kinds...) {
		all = append(all, Object{Unstructured: crd})
	}
	return all
}
