// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

func TestAPodFitsNoNodeIfItIsTooLargeInEachFlavor(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	queue := kueue.ClusterQueue{}
	queue.Spec.ResourceGroups = []kueue.ResourceGroup{
		{CoveredResources: []corev1.ResourceName{"cpu", gpu}, Flavors: []kueue.FlavorQuotas{{Name: "a100"}, {Name: "h100"}}},
		{CoveredResources: []corev1.ResourceName{"example.com/license"}, Flavors: []kueue.FlavorQuotas{{Name: "licenses"}}},
	}
	flavor := func(name, largest string) kueue.ResourceFlavor {
		return kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1beta2.LargestNodeAnnotation: largest}}}
	}
	pods := func(cpu, gpus string) quota.PodSet {
		return quota.PodSet{Count: 2, Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), gpu: resource.MustParse(gpus), "example.com/license": resource.MustParse("1")}}
	}
	for name, row := range map[string]struct {
		flavors []kueue.ResourceFlavor
		podSets []quota.PodSet
		want    []string
	}{
		"too large for both": {[]kueue.ResourceFlavor{flavor("h100", `{"nvidia.com/gpu":"8"}`), flavor("a100", `{"nvidia.com/gpu":"4"}`)}, []quota.PodSet{pods("1", "1"), pods("1", "9"), pods("1", "9")},
			[]string{"a pod of the job fits no node: it requests 9 of nvidia.com/gpu, and no node of flavor a100 has more than 4; it requests 9 of nvidia.com/gpu, and no node of flavor h100 has more than 8"}},
		"one flavor is large enough":     {[]kueue.ResourceFlavor{flavor("h100", `{"nvidia.com/gpu":"8"}`), flavor("a100", `{"nvidia.com/gpu":"16"}`)}, []quota.PodSet{pods("1", "9")}, nil},
		"of one flavor nothing is known": {[]kueue.ResourceFlavor{flavor("h100", `{"nvidia.com/gpu":"8"}`), flavor("a100", ``)}, []quota.PodSet{pods("1", "9")}, nil},
		"one flavor does not exist":      {[]kueue.ResourceFlavor{flavor("h100", `{"nvidia.com/gpu":"8"}`)}, []quota.PodSet{pods("1", "9")}, nil},
		"for different reasons":          {[]kueue.ResourceFlavor{flavor("h100", `{"nvidia.com/gpu":"8"}`), flavor("a100", `{"cpu":"500m","nvidia.com/gpu":"16"}`)}, []quota.PodSet{pods("1", "9")}, []string{"a pod of the job fits no node: it requests 1 of cpu, and no node of flavor a100 has more than 500m; it requests 9 of nvidia.com/gpu, and no node of flavor h100 has more than 8"}},
		"what the group does not cover":  {[]kueue.ResourceFlavor{flavor("h100", `{"example.com/license":"0"}`), flavor("a100", `{"example.com/license":"0"}`)}, []quota.PodSet{pods("1", "1")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quota.FitsNoNode(row.podSets, queue, row.flavors); !slices.Equal(got, row.want) {
				t.Errorf("it says %q", got)
			}
		})
	}
}
