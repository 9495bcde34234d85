// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// sysctlFile is the file that covers one of the kernel's.
func (c *Cluster) sysctlFile(name string) string {
	return filepath.Join(c.configFile("sysctls"), strings.ReplaceAll(name, "/", "."))
}

func (c *Cluster) writeSysctls() error {
	if err := os.MkdirAll(c.configFile("sysctls"), 0o755); err != nil {
		return fmt.Errorf("cannot make the cluster's folders: %w", err)
	}
	for name, value := range sysctls {
		file := c.sysctlFile(name)
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", file, err)
		}
	}
	return nil
}
