// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// A Run that is still to be planned keeps all that a plan depends on, and who may have it.
func TestTheCacheKeepsWhatIsRead(t *testing.T) {
	for name, planned := range map[string]bool{"planned": true, "waiting": false} {
		run := storedRun(1)
		run.Spec.Env = map[string]v1alpha1.Text{"A": "a"}
		if !planned {
			run.Status = v1alpha1.RunStatus{}
		}
		want := run.DeepCopy()
		delete(want.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
		if planned {
			want.Annotations, want.Labels, want.Spec.Variables, want.Status.Resolved.PerWorker = nil, nil, v1alpha1.Variables{}, nil
		}
		got, err := slimRun(run)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	want := storedAppWrapper(1)
	want.Labels = map[string]string{v1alpha1.RunLabel: "digits-1"}
	want.Status.Conditions = conditions("PodsReady", "Unhealthy", "Deactivated")
	stored := storedAppWrapper(1)
	stored.Status.Conditions = append(stored.Status.Conditions, conditions("Deactivated")...)
	got, err := slimAppWrapper(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
