// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mlbatch/mlbatch/tools/images/archive"
)

// A cached file has its digest beside it, written last: without a digest, or with
// another one than the file has, it is not there. Full disks and killed copies
// leave such files behind.

func intact(path string) bool {
	want, err := os.ReadFile(sealOf(path))
	if err != nil {
		return false
	}
	got, err := digest(path)
	return err == nil && got == strings.TrimSpace(string(want))
}

func seal(path string) error {
	sum, err := digest(path)
	if err != nil {
		return fmt.Errorf("cannot seal %s: %w", path, err)
	}
	return os.WriteFile(sealOf(path), []byte(sum+"\n"), 0o644)
}

func sealOf(path string) string { return path + ".sha256" }

func digest(path string) (string, error) {
	h, err := archive.Tar(path).Digest()
	return h.Hex, err
}

// lock keeps other processes from making the same image at the same time; they wait.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the image cache: %w", err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock the image cache: %w", err)
	}
	return func() { f.Close() }, nil
}
