// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWrappedClaimIsAWarningOnCreate(t *testing.T) {
	claim := component("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: checkpoints}}")
	aw := appWrapper(t, component(job), claim, component(service))
	want := []string{"spec.components[1].template is a PersistentVolumeClaim, which is deleted with every retry, migration and suspension: " +
		"keep checkpoints on a claim that is not wrapped"}
	if diff := cmp.Diff(want, WarningsOnCreate(aw)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
