// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/artifacts/filelock"
)

// lock makes this process the only one that changes the cluster.
func (c *Cluster) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.config.StateDir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the folder %s (%w); choose another with XDG_STATE_HOME", c.config.StateDir, err)
	}
	unlock, err = filelock.TryLock(c.lockFile())
	var held *filelock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("cluster %q is being changed by %s; wait until that command ends", c.config.Name, held.Holder())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock cluster %q: %w", c.config.Name, err)
	}
	return unlock, nil
}

func (c *Cluster) lockFile() string { return filepath.Join(c.config.StateDir, c.config.Name+".lock") }
