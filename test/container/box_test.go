// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package container_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inside is the checkout in a container.
const inside = "/root/mlbatch"

// box is a container that runs. Its first process reaps no other.
type box struct {
	*testing.T
	name string
	id   string // empty until it is there
}

// limits are what podman would raise, which needs CAP_SYS_RESOURCE. Root of this machine may
// lack that.
var limits = []string{"--ulimit=nofile=16384:16384", "--ulimit=nproc=16384:16384"}

// start starts a plain Debian 13 with more flags. Caches are overlays: the container cannot
// change those of this machine. Its network is its own, and leaves nothing behind.
func start(t *testing.T, name string, flags ...string) *box {
	t.Helper()
	b := &box{T: t, name: "mlbatch-" + name}
	args := append([]string{"run", "--detach", "--name=" + b.name, "--network=slirp4netns"}, limits...)
	for here, there := range map[string]string{
		checkout: inside, cache: "/root/.cache/mlbatch", compiled: "/root/.cache/go-build", modules: "/root/go/pkg/mod", goRoot: "/usr/local/go",
	} {
		args = append(args, fmt.Sprintf("--volume=%s:%s:O", here, there))
	}
	args = append(args, "--workdir="+inside, "--env=PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	args = append(args, flags...)
	t.Cleanup(b.end)
	out, err := podman(t.Context(), append(args, "--rootfs", debian+":O", "sleep", "infinity")...)
	if err != nil {
		t.Fatal(err)
	}
	b.id = strings.TrimSpace(out)
	b.says("sh", "-c", "chown 1000 . .git && make bin/localcluster") // a mounted checkout often belongs to another user
	return b
}

// end ends the container with all that runs in it.
func (b *box) end() {
	if b.Failed() {
		logs, _ := podman(context.Background(), "exec", b.name, "sh", "-c", "tail -n 20 /root/.local/state/mlbatch/clusters/*/log/*.log /home/*/.local/state/mlbatch/clusters/*/log/*.log")
		b.Log(logs)
	}
	if _, err := podman(context.Background(), "rm", "--force", "--ignore", "--time=0", b.name); err != nil {
		b.Error(err)
	}
	b.clearCgroups()
}

// clearCgroups removes what podman keeps, and finds what a container has left.
func (b *box) clearCgroups() {
	for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		parent := filepath.Join(hierarchy, "libpod_parent")
		if left, _ := filepath.Glob(filepath.Join(parent, "libpod-"+b.id)); len(left) > 0 {
			b.Errorf("cgroups are left: %v", left)
		}
		for _, dir := range []string{filepath.Join(parent, "conmon"), parent} {
			empty, _ := filepath.Glob(dir)
			for _, cgroup := range empty {
				_ = os.Remove(cgroup) // unless there are other containers
			}
		}
	}
}

// run runs a command in the container and returns its output.
func (b *box) run(command ...string) (string, error) {
	b.Helper()
	out, err := podman(b.Context(), append([]string{"exec", b.name}, command...)...)
	b.Logf("$ %s\n%s", strings.Join(command, " "), out)
	return out, err
}

// says runs a command that must succeed.
func (b *box) says(command ...string) string {
	b.Helper()
	out, err := b.run(command...)
	if err != nil {
		b.Fatalf("%s: %v", strings.Join(command, " "), err)
	}
	return out
}

// refuses runs a command that must fail with one sentence that has these words.
func (b *box) refuses(words []string, command ...string) {
	b.Helper()
	out, err := b.run(command...)
	if err == nil {
		b.Errorf("%s does not fail", strings.Join(command, " "))
	}
	if strings.Count(out, "\n") != 1 {
		b.Errorf("it is not one sentence: %q", out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			b.Errorf("%q lacks %q", out, word)
		}
	}
}

// podman runs podman, with folders of its own beside those of this machine's administrator.
func podman(ctx context.Context, args ...string) (string, error) {
	own := []string{"--root=" + filepath.Join(scratch, "store"), "--runroot=" + filepath.Join(scratch, "run"), "--cgroup-manager=cgroupfs", "--runtime=runc"}
	cmd := exec.CommandContext(ctx, "podman", append(own, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("podman %s: %w\n%s", args[0], err, out.String())
	}
	return out.String(), nil
}
