// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package container_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// The programs and the training image of Debian 13 are made in the container.
func TestTheDemoRunsInAContainer(t *testing.T) {
	state := filepath.Join(scratch, "state")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	b := start(t, "demo", "--privileged", "--volume="+state+":/root/.local/state")
	b.says("sh", "-c", "rm -r /root/.cache/mlbatch/images /root/.cache/mlbatch/host-tools-*")
	if out := b.says("make", "demo"); strings.Contains(out, "goroutine ") {
		t.Errorf("the demo prints a stack:\n%s", out)
	}
	b.says("bin/localcluster", "status")
	b.says("make", "demo-down")
	b.says("bin/localcluster", "leaks")
}

func TestASimulatedClusterNeedsNoVolume(t *testing.T) {
	b := start(t, "simulated", "--privileged")
	b.refuses([]string{"on an overlay file system", "--volume mlbatch:/root/.local/state", "--mode=simulated"}, "bin/localcluster", "up")
	b.story()
}

// story runs work on a simulated cluster, and leaves nothing of it.
func (b *box) story(as ...string) {
	b.Helper()
	does := func(command ...string) { b.says(slices.Concat(as, command)...) }
	does("bin/localcluster", "up", "--mode=simulated", "--platform")
	const kubectl = `kubectl="$(dirname "$(bin/localcluster kubeconfig)")/bin/kubectl --kubeconfig $(bin/localcluster kubeconfig) --as=alice --namespace=blue" && `
	does("sh", "-c", kubectl+"$kubectl create -f test/container/testdata/job.yaml && "+
		"$kubectl wait appwrapper/job --for=jsonpath='{.status.phase}'=Succeeded --timeout="+patience.For(3*time.Minute).String())
	does("bin/localcluster", "down")
	does("bin/localcluster", "leaks")
}

// someone is a user without an entry in /etc/passwd. The capability is for root's caches: it
// does not allow namespaces, and does not exist inside a user namespace.
var someone = []string{
	"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override",
	"env", "HOME=/home/someone", "XDG_CACHE_HOME=/root/.cache", "GOCACHE=/root/.cache/go-build", "GOMODCACHE=/root/go/pkg/mod",
}

// newHome gives someone a home, and a way to root's caches for programs without the capability.
func (b *box) newHome() {
	b.Helper()
	b.says("chmod", "a+x", "/root")
	b.says("install", "--directory", "--owner=1000", "/home/someone")
}

func TestASimulatedClusterNeedsNoPrivileges(t *testing.T) {
	b := start(t, "user", "--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL")
	b.newHome()
	b.story(someone...)
}

func TestAContainerWithoutPrivilegesSaysSo(t *testing.T) {
	b := start(t, "plain")
	b.newHome()
	refused := []string{"may not create", "namespaces and mount in them", "start that container with --privileged"}
	b.refuses(append(refused, "root"), "bin/localcluster", "up")
	b.refuses(append(refused, "root"), "bin/localcluster", "up", "--mode=simulated")
	b.refuses(append(refused, "user 1000"), slices.Concat(someone, []string{"bin/localcluster", "up", "--mode=simulated"})...)
	b.refuses([]string{"needs root", "--mode=simulated"}, slices.Concat(someone, []string{"bin/localcluster", "up"})...)
	mayMount := start(t, "mount", "--cap-add=SYS_ADMIN")
	mayMount.refuses([]string{"cannot create cgroups in /sys/fs/cgroup", "read-only file system", "--privileged"}, "bin/localcluster", "up")
}
