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

	"github.com/mlbatch/mlbatch/tools/images/archive"
	"github.com/mlbatch/mlbatch/tools/localcluster/build"
)

// Images that exist in local clusters only.
const (
	pauseImage   = "images.local/mlbatch/pause:1"
	coreDNSImage = "images.local/mlbatch/coredns:1"
	// WorkloadImage is a program that ends as a test tells it to: see test/workload.
	WorkloadImage = "images.local/mlbatch/workload:1"
)

// buildOwn builds the programs of this repository that a cluster needs, and
// the archive of the images that it starts with.
func (c *Cluster) buildOwn(ctx context.Context, cache build.Cache, dir, coredns string) (ownPrograms, error) {
	keeper, err := cache.Own(ctx, "tools/localcluster/keeper", dir)
	if err != nil {
		return ownPrograms{}, err
	}
	workload, err := cache.Own(ctx, "test/workload", dir)
	if err != nil {
		return ownPrograms{}, err
	}
	path := filepath.Join(c.Dir(), "images.tar")
	err = archive.Write(path,
		image(pauseImage, workload, "/workload", "/workload", "pause"),
		image(WorkloadImage, workload, "/workload", "/workload"),
		image(coreDNSImage, coredns, "/coredns", "/coredns"),
	)
	return ownPrograms{keeper: keeper, archive: path}, err
}

func image(reference, binary, path string, entrypoint ...string) archive.Image {
	return archive.Image{
		Reference:  reference,
		Platforms:  []archive.Platform{archive.Program(runtime.GOARCH, binary, path)},
		Entrypoint: entrypoint,
	}
}

// LoadImages puts the images of OCI or Docker archives where the cluster's
// pods find them. Pods that use them need imagePullPolicy Never or
// IfNotPresent: there is no registry to pull from.
func (c *Cluster) LoadImages(ctx context.Context, archives ...string) error {
	if !c.Running() {
		return fmt.Errorf("cluster %q is not running; start it with: mlbatch cluster up --name=%s", c.config.Name, c.config.Name)
	}
	for _, path := range archives {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("cannot load the image archive %s: %w", path, err)
		}
		begin := time.Now()
		cmd := exec.CommandContext(ctx, filepath.Join(c.Dir(), "bin", "ctr"),
			"--address", c.containerdSocket(), "--namespace", "k8s.io", "images", "import", "--local", path)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot load the image archive %s: %w\n%s", path, err, strings.TrimSpace(string(out)))
		}
		fmt.Fprintf(c.progress, "loaded %s in %s\n", filepath.Base(path), time.Since(begin).Round(100*time.Millisecond))
	}
	return nil
}
