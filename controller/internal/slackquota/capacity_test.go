// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestWhatKueueIsToldOfFlavors(t *testing.T) {
	told := func(flavor kueue.ResourceFlavorReference, name corev1.ResourceName, amount string) FlavorCapacity {
		return FlavorCapacity{flavor, corev1.ResourceList{name: resource.MustParse(amount)}}
	}
	supplies := Supplies{
		"a100": {"nvidia.com/gpu": {Total: resource.MustParse("16"), Usable: resource.MustParse("12")}, "cpu": {Usable: resource.MustParse("1500m")}},
		"h100": {"nvidia.com/gpu": {Total: resource.MustParse("8")}},
		"own":  {"nvidia.com/gpu": {Usable: resource.MustParse("8")}},
	}
	for what, row := range map[string]struct {
		flavors []kueue.ResourceFlavorReference
		told    []FlavorCapacity
		want    string
	}{
		"what is usable, of these flavors only": {
			[]kueue.ResourceFlavorReference{"h100", "a100"}, nil,
			`[{"name":"h100","resources":{"nvidia.com/gpu":"0"}},{"name":"a100","resources":{"cpu":"1500m","nvidia.com/gpu":"12"}}]`,
		},
		"a flavor without a node has never had anything": {[]kueue.ResourceFlavorReference{"gone"}, nil, `null`},
		"a flavor whose last node is gone": {
			[]kueue.ResourceFlavorReference{"gone"}, []FlavorCapacity{told("gone", "memory", "8Gi")},
			`[{"name":"gone","resources":{"memory":"0"}}]`,
		},
		"a resource that no node has any more": {
			[]kueue.ResourceFlavorReference{"h100"}, []FlavorCapacity{told("h100", "example.com/nic", "4")},
			`[{"name":"h100","resources":{"example.com/nic":"0","nvidia.com/gpu":"0"}}]`,
		},
		"a flavor that is not the provider's any more": {
			[]kueue.ResourceFlavorReference{"h100"}, []FlavorCapacity{told("a100", "cpu", "1")},
			`[{"name":"h100","resources":{"nvidia.com/gpu":"0"}}]`,
		},
	} {
		got, err := json.Marshal(Capacity(row.flavors, supplies, row.told))
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", what, err, got, row.want)
		}
	}
}
