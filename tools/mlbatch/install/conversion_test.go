// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// converted is a kind of ours as the cluster has it.
func converted(stored ...string) object {
	crd := definitions("kueue.x-k8s.io/Cohort")[0]
	crd.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": Namespace, "helm.sh/resource-policy": "keep"})
	_ = unstructured.SetNestedField(crd.Object, "Webhook", "spec", "conversion", "strategy")
	_ = unstructured.SetNestedStringMap(crd.Object, map[string]string{"namespace": Namespace, "name": "kueue-webhook-service"}, "spec", "conversion", "webhook", "clientConfig", "service")
	_ = unstructured.SetNestedSlice(crd.Object, []any{
		map[string]any{"name": "v1beta1", "storage": false}, map[string]any{"name": "v1beta2", "storage": true},
	}, "spec", "versions")
	_ = unstructured.SetNestedStringSlice(crd.Object, stored, "status", "storedVersions")
	return crd
}

func conversionOf(t *testing.T, api api, kind object) string {
	t.Helper()
	got := kind.DeepCopy()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	strategy, _, _ := unstructured.NestedString(got.Object, "spec", "conversion", "strategy")
	return strategy
}

func TestKindsThatStayNeedNoWebhookToBeRead(t *testing.T) {
	theirs := converted("v1beta2")
	theirs.SetAnnotations(nil)
	for name, c := range map[string]struct {
		there    object
		services *fake.Clientset
		stay     []object
		want     string
		warns    bool
	}{
		"all is stored as it is read":       {converted("v1beta2"), fake.NewClientset(), nil, "None", false},
		"some may be stored as it was":      {converted("v1beta1", "v1beta2"), fake.NewClientset(), nil, "Webhook", true},
		"the kind is somebody else's":       {theirs, fake.NewClientset(), nil, "Webhook", false},
		"its part stays":                    {converted("v1beta2"), fake.NewClientset(), definitions("kueue.x-k8s.io/Cohort"), "Webhook", false},
		"another part stays":                {converted("v1beta2"), fake.NewClientset(), definitions("ray.io/RayJob"), "None", false},
		"somebody is there who converts it": {converted("v1beta2"), fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "kueue-webhook-service"}}), nil, "Webhook", false},
	} {
		t.Run(name, func(t *testing.T) {
			api := cluster(c.services, c.there.DeepCopy())
			var progress strings.Builder
			if err := (Release{Name: "mlbatch", Namespace: Namespace}).dropConversions(t.Context(), api, c.stay, &progress); err != nil {
				t.Fatal(err)
			}
			if got := conversionOf(t, api, c.there); got != c.want {
				t.Errorf("its conversion is %s", got)
			}
			if warned := strings.Contains(progress.String(), "warning: "); warned != c.warns {
				t.Errorf("it says %q", progress.String())
			}
		})
	}
}

func TestAnUninstallDropsConversions(t *testing.T) {
	api := cluster(fake.NewClientset(), converted("v1beta2"))
	if err := goes(t, release.StatusDeployed, nil).remove(t.Context(), api, time.Minute, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := conversionOf(t, api, converted()); got != "None" {
		t.Errorf("its conversion is %s", got)
	}
}

// A run that was killed just before has left nothing to be done but this.
func TestAnUpgradeDropsConversionsOfPartsThatAreOff(t *testing.T) {
	api := cluster(fake.NewClientset(), converted("v1beta2"))
	platform := &delivery{Release: Release{Name: "mlbatch", Namespace: Namespace}, move: stay}
	j := &job{Installer: Installer{Progress: io.Discard}, api: api, all: []*delivery{platform}}
	if err := j.deliverPlatform(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := conversionOf(t, api, converted()); got != "None" {
		t.Errorf("its conversion is %s", got)
	}
}
