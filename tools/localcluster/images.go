// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/workload"
)

// Images that exist in local clusters only.
const (
	pauseImage   = "images.local/mlbatch/pause:1"
	coreDNSImage = "images.local/mlbatch/coredns:1"
	// WorkloadImage is the program of test/workload, which exits as its test says.
	WorkloadImage = workload.Image
)

// buildOwn fills the folder of a new cluster: programs of this repository, userTools,
// and the archive of the images that the cluster starts with.
func (c *Cluster) buildOwn(ctx context.Context, cache components.Cache, dir string, bins components.Binaries) error {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("cannot create the cluster's folder: %w", err)
	}
	for _, tool := range append([]string{"coredns"}, userTools...) {
		if bins[tool] == "" {
			continue // this mode does not have the component
		}
		if err := os.Symlink(bins[tool], filepath.Join(bin, tool)); err != nil {
			return fmt.Errorf("cannot fill the cluster's folder: %w", err)
		}
	}
	if _, err := cache.Own(ctx, c.progress, "tools/localcluster/keeper", bin); err != nil {
		return err
	}
	if c.config.Mode == Simulated {
		if _, err := cache.Own(ctx, c.progress, "tools/localcluster/processnode", bin); err != nil {
			return err
		}
		return c.linkProcessNodes(bin)
	}
	program, err := cache.Own(ctx, c.progress, "test/workload", bin)
	if err != nil {
		return err
	}
	return archive.Write(filepath.Join(dir, ownImagesFile),
		image(pauseImage, program, "/workload", "/workload", "pause"),
		image(WorkloadImage, program, "/workload", "/workload"),
		image(coreDNSImage, bins["coredns"], "/coredns", "/coredns"),
	)
}

// userTools are components that users run, not the cluster.
var userTools = []string{"ctr", "kubectl"}

// ownImages is the archive of the pause container, CoreDNS and the test workload.
func (c *Cluster) ownImages() string { return filepath.Join(c.Dir(), ownImagesFile) }

const ownImagesFile = "images.tar"

func image(reference, binary, path string, entrypoint ...string) archive.Image {
	return archive.Image{
		Reference:  reference,
		Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, binary, path)},
		Entrypoint: entrypoint,
	}
}

// pinned keeps the kubelet from removing an image when the disk is full: there is no
// registry to pull it from again.
const pinned = "io.cri-containerd.pinned=pinned"

// LoadImages loads the images of OCI or Docker archives into containerd. Pods that use
// them need imagePullPolicy Never or IfNotPresent: there is no registry to pull from.
func (c *Cluster) LoadImages(ctx context.Context, archives ...string) error {
	if !c.Running() {
		return c.notRunning()
	}
	if c.Mode() == Simulated {
		return fmt.Errorf("cluster %q is simulated and runs no images; start one with --mode=%s", c.config.Name, Real)
	}
	for _, path := range archives {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("cannot load the image archive %s: %w", path, err)
		}
		begin := time.Now()
		cmd := exec.CommandContext(ctx, filepath.Join(c.Dir(), "bin", "ctr"),
			"--address", c.containerdSocket(), "--namespace", "k8s.io", "images", "import", "--local", "--label", pinned, path)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot load the image archive %s: %w\n%s", path, err, strings.TrimSpace(string(out)))
		}
		fmt.Fprintf(c.progress, "loaded %s in %s\n", filepath.Base(path), time.Since(begin).Round(100*time.Millisecond))
	}
	return nil
}
