// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestWhatAnOlderReleaseCountedMayGoOn(t *testing.T) {
	for name, tc := range map[string]struct {
		template string
		counted  []int32
		want     bool
	}{
		"as it is counted today":         {pyTorchJob, []int32{1, 3}, false},
		"with fewer pods":                {pyTorchJob, []int32{1, 1}, true},
		"with a role that is refused":    {strings.Replace(pyTorchJob, "replicas: 3", "replicas: 0", 1), []int32{1, 0}, true},
		"of a kind that is not inferred": {custom, []int32{2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, component(tc.template))
			status := v1beta2.AppWrapperComponentStatus{}
			for _, n := range tc.counted {
				status.PodSets = append(status.PodSets, v1beta2.AppWrapperPodSet{Replicas: ptr.To(n)})
			}
			aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{status}
			if got := Decode(aw).Undercounted(); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
