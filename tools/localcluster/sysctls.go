// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// sysctls are settings of the whole kernel that the kubelet would change to these
// values. They are the host's to choose: the node sees files of ours instead.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// writeSysctls writes the files that cover the kernel's.
func (c *Cluster) writeSysctls() ([]plan.Bind, error) {
	dir := c.configFile("sysctls")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the cluster's folders: %w", err)
	}
	var binds []plan.Bind
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(sysctls[name]+"\n"), 0o644); err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", file, err)
		}
		binds = append(binds, plan.Bind{Source: file, Target: filepath.Join("/proc/sys", name)})
	}
	return binds, nil
}
