// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roomy is the size of a disk that is large enough for a cluster. It is a tmpfs, which uses
// only as much memory as is written.
const roomy = "4g"

// mountDisk mounts a disk at a folder.
func mountDisk(dir, size string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	}
	if err != nil {
		return fmt.Errorf("cannot mount a disk in memory: %w", err)
	}
	return nil
}

// resize changes the size of a mounted disk.
func resize(dir, size string) error {
	return unix.Mount("", dir, "", unix.MS_REMOUNT, "size="+size)
}

// fill shrinks a disk until it has no space left.
func fill(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the disk is full", func(context.Context) error {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return err
		}
		used := (fs.Blocks - fs.Bfree) * uint64(fs.Bsize)
		return resize(dir, strconv.FormatUint(max(used, 4096), 10)) // fails if more is used by now
	})
}

func TestADiskThatIsTooSmallIsNamed(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		small := filepath.Join(root, "small")
		if err := mountDisk(small, "64m"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unix.Unmount(small, 0); err != nil {
				t.Error(err)
			}
		}()
		c := m.second()
		c.state = small
		t.Run("before anything is done", func(t *testing.T) {
			c.wantRefusal(t, "the disk of "+filepath.Dir(c.dir())+" has 0.1 GiB free", c.upFlags()...)
			c.wantNothingRunning(t)
		})
		t.Run("when it fills while the cluster is made", func(t *testing.T) {
			if err := resize(small, roomy); err != nil {
				t.Fatal(err)
			}
			w := c.start(t, c.upFlags()...)
			w.reaches(t, c, point{name: "the folder is filled", file: inNew("bin")})
			fill(t, small)
			said, err := w.ends()
			if want := "the disk of " + filepath.Dir(c.dir()) + " is full; free some space"; err == nil || !strings.Contains(said, want) {
				t.Errorf("it says\n%s\nwithout %q", said, want)
			}
			c.wantNothingRunning(t)
		})
	})
}

func TestAClusterOutlivesAFullDisk(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		wantKept := c.keepObject(t)
		defer func() {
			if err := resize(m.disk(), roomy); err != nil {
				t.Error(err)
			}
		}()
		api := c.api(t)
		eventually(t, "etcd cannot write any more", func(ctx context.Context) error {
			fill(t, m.disk()) // repeatedly: the kubelet frees what it can
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "large-", Namespace: "default"},
				Data:       map[string]string{"word": strings.Repeat("x", 1_000_000)},
			}
			if api.Create(ctx, object) == nil {
				return errors.New("it still can")
			}
			return nil
		})
		eventually(t, "the status names etcd", func(context.Context) error {
			fill(t, m.disk())
			if said, err := c.run("status"); err == nil || !strings.Contains(said, "etcd") {
				return fmt.Errorf("it says %s", said)
			}
			return nil
		})
		fill(t, m.disk())
		c.wantRefusal(t, "the disk of "+filepath.Dir(c.dir())+" is full; free some space", "up")
		if err := resize(m.disk(), roomy); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the status is saved again", func(context.Context) error {
			if s := c.status(t); s.Restarts["etcd"] == 0 {
				return fmt.Errorf("it is %+v", s)
			}
			return nil
		})
		c.wantHealthy(t) // the images still exist: the kubelet would have removed them to free space
		wantKept(t)
	})
}
