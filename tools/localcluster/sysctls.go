// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sysctls are kernel settings that the kubelet would change for the whole machine. The
// node sees these files with the expected values instead, and the host keeps its own.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// sysctlFile is the file that is mounted over one of the kernel's.
func (c *Cluster) sysctlFile(name string) string {
	return filepath.Join(c.configFile("sysctls"), strings.ReplaceAll(name, "/", "."))
}

func (c *Cluster) writeSysctls() error {
	if err := os.MkdirAll(c.configFile("sysctls"), 0o755); err != nil {
		return fmt.Errorf("cannot create the cluster's folders: %w", err)
	}
	for name, value := range sysctls {
		file := c.sysctlFile(name)
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", file, err)
		}
	}
	return nil
}
