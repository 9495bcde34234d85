// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lock makes this process the only one that makes the entry. The kernel drops
// the lock when the process ends, however it ends. The file stays: removing it
// would let two hold a lock of that name.
func (e Entry) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(e.Path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, e.cannot("lock", err)
	}
	if err := e.await(ctx, progress, f); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // for the line below only
	}
	return func() { f.Close() }, nil
}

// await asks again and again: a lock that blocks could not be interrupted.
func (e Entry) await(ctx context.Context, progress io.Writer, f *os.File) error {
	for told := false; ; told = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return e.cannot("lock", err)
		}
		if !told {
			fmt.Fprintf(progress, "waiting for %s, which makes %s\n", holder(f), e.Title)
		}
		select {
		case <-ctx.Done():
			return e.cannot("wait for", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func holder(f *os.File) string {
	data := make([]byte, 16)
	n, _ := f.ReadAt(data, 0)
	pid := strings.TrimSpace(string(data[:n]))
	if pid == "" {
		return "another process"
	}
	return "process " + pid
}
