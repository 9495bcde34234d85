// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// There is no registry: an image that the kubelet removes to free space cannot be pulled again.
func TestNoImageIsRemovedForSpace(t *testing.T) {
	c := running(t, modes[0].main())
	list := exec.Command(filepath.Join(c.dir(), "bin", "ctr"),
		"--address", filepath.Join(c.dir(), "containerd.sock"), "--namespace", "k8s.io", "images", "list")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	images := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "images.local/") {
			continue
		}
		images++
		if !strings.Contains(line, "io.cri-containerd.pinned=pinned") {
			t.Errorf("the kubelet may remove it: %s", line)
		}
	}
	if images != 3 { // pause, CoreDNS, the workload
		t.Errorf("there are %d images:\n%s", images, out)
	}
}
