// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// Disk space of a cluster: measured with all 11 components, and rounded up.
const (
	mib = uint64(1) << 20
	gib = uint64(1) << 30
	// stateSpace is for the cluster's images, data and logs. A simulated cluster has no
	// images and shorter logs.
	stateSpace          = 3 * gib
	simulatedStateSpace = 1 * gib
	// For each component that is not built yet: Go's build cache and module cache. An
	// interrupted build has already taken a part of it.
	compiledSpace = 640 * mib
	sourceSpace   = 384 * mib
	// If any component is not built yet: finished builds, the training image, and the
	// temporary files of both.
	cacheSpace = 5 * gib
)

// need is the space that a cluster will take in a folder.
type need struct {
	dir   string
	bytes uint64
}

// checkSpace returns an error if a disk has too little free space.
func (c *Cluster) checkSpace(others []components.Component) error {
	needs := []need{{c.config.StateDir, stateSpace}}
	if c.config.Mode == Simulated {
		needs[0].bytes = simulatedStateSpace
	}
	missing, err := c.missing(others)
	if err != nil {
		return err
	}
	if missing > 0 {
		building, err := c.buildNeeds(missing)
		if err != nil {
			return err
		}
		needs = append(needs, building...)
	}
	return c.checkDisks(needs)
}

// missing counts the components that are not built yet.
func (c *Cluster) missing(others []components.Component) (count uint64, err error) {
	cache, err := c.cache()
	if err != nil {
		return 0, err
	}
	versions, err := c.Versions()
	if err != nil {
		return 0, err
	}
	for _, component := range append(c.Components(versions), others...) {
		lacks, err := cache.Lacks(component)
		if err != nil {
			return 0, err
		}
		if lacks {
			count++
		}
	}
	return count, nil
}

func (c *Cluster) buildNeeds(components uint64) ([]need, error) {
	dirs, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask go for its caches: %w", err)
	}
	compiled, source, _ := strings.Cut(strings.TrimSpace(string(dirs)), "\n")
	return []need{
		{c.config.CacheDir, cacheSpace}, {compiled, components * compiledSpace}, {source, components * sourceSpace},
	}, nil
}

// checkDisks compares the free space of each disk with the sum of its folders' needs.
func (c *Cluster) checkDisks(needs []need) error {
	total := map[uint64]uint64{} // by disk
	for _, n := range needs {
		d, err := c.host.disk(n.dir)
		if err != nil {
			return err
		}
		total[d.id] += n.bytes
	}
	for _, n := range needs {
		d, err := c.host.disk(n.dir)
		if err != nil {
			return err
		}
		if d.free < total[d.id] {
			return fmt.Errorf("the disk of %s has %.1f GiB free, and a local cluster may need %.1f GiB there; "+
				"free some space, or choose other disks with XDG_STATE_HOME, XDG_CACHE_HOME, GOCACHE and GOMODCACHE",
				n.dir, inGiB(d.free), inGiB(total[d.id]))
		}
	}
	return nil
}

// fullDisk adds to an error that a full disk is the likely cause.
func (c *Cluster) fullDisk(err error) error {
	if err == nil {
		return nil
	}
	for _, dir := range []string{c.config.StateDir, c.config.CacheDir} {
		if d, unknown := c.host.disk(dir); unknown == nil && d.free < 16*mib {
			return fmt.Errorf("the disk of %s is full; free some space and run the command again (%w)", dir, err)
		}
	}
	return err
}

func inGiB(bytes uint64) float64 { return float64(bytes) / float64(gib) }
