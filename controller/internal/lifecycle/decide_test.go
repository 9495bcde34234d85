// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestAnUnknownPhaseIsLeftAlone(t *testing.T) {
	base := func() lifecycle.Snapshot { return deployed("Levitating") }
	checkRows(t, base, map[string]row{
		"while it is not deleted": {given: []change{suspend, absent}, want: outcome{Phase: "Levitating"}},
		"until it is deleted":     {given: []change{deleted}, want: endsIn(v1beta2.AppWrapperTerminating, "", map[string]string{"DeletingResources": "True DeletionInitiated"})},
	})
}
