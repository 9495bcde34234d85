// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lock makes this process the only one that changes the cluster. The kernel
// drops the lock when the process ends, however it ends.
func (c *Cluster) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.config.StateDir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", c.config.StateDir, err)
	}
	for {
		f, err := c.tryLock()
		if err != nil {
			return nil, err
		}
		if !sameFile(f, c.lockFile()) { // a Down removed it between our opening and locking it
			f.Close()
			continue
		}
		if err := f.Truncate(0); err == nil {
			_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // for the message below only
		}
		return func() { f.Close() }, nil
	}
}

func (c *Cluster) lockFile() string { return filepath.Join(c.config.StateDir, c.config.Name+".lock") }

func (c *Cluster) tryLock() (*os.File, error) {
	f, err := os.OpenFile(c.lockFile(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the cluster: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another command%s is changing cluster %q; wait until it has ended", holder(f), c.config.Name)
	}
	return nil, fmt.Errorf("cannot lock the cluster: %w", err)
}

func sameFile(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	present, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, present)
}

func holder(f *os.File) string {
	data := make([]byte, 16)
	n, _ := f.ReadAt(data, 0)
	pid := strings.TrimSpace(string(data[:n]))
	if pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}
