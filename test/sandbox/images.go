// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// TagImage gives an image in a real cluster a second name.
func TagImage(t *testing.T, cluster *localcluster.Cluster, image, name string) {
	t.Helper()
	ctr := filepath.Join(cluster.Dir(), "bin", "ctr")
	tag := exec.CommandContext(t.Context(), ctr, "--address", filepath.Join(cluster.Dir(), "containerd.sock"), "--namespace", "k8s.io", "images", "tag", image, name)
	if out, err := tag.CombinedOutput(); err != nil {
		t.Fatalf("cannot call %s also %s: %v\n%s", image, name, err, out)
	}
}
