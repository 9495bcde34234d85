// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"strings"
	"testing"
)

// TestALargeRepositoryIsRefused: it would fill the disk of the node, once packed or once written.
func TestALargeRepositoryIsRefused(t *testing.T) {
	s := serve(t)
	for name, limit := range map[string]int64{"packed": 100, "written": 1 << 20} {
		tree := s.tree("main")
		tree.Limit = limit
		_, err := tree.Fetch(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "put large files into a DataSet") {
			t.Errorf("%s: fetched with %v", name, err)
		}
	}
}
