// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// identify adds to each program its version and the digest of its files, which tell it
// from the program of another checkout.
func (c *Cluster) identify(programs []plan.Program) error {
	versions, err := c.Versions()
	if err != nil {
		return err
	}
	known := map[string]string{
		"containerd": versions.LocalCluster.Containerd, "etcd": versions.LocalCluster.Etcd, "kwok": versions.LocalCluster.KWOK,
	}
	for _, node := range c.processNodes() {
		known[node.Name] = versions.Version
	}
	for i := range programs {
		programs[i].Version = cmp.Or(known[programs[i].Name], versions.LocalCluster.Kubernetes)
		if programs[i].Files, err = c.digest(programs[i]); err != nil {
			return err
		}
	}
	return nil
}

// digest hashes the files in the cluster's folder that a program consists of or reads. It
// leaves out kubeconfigs, which never change, and data, which always does.
func (c *Cluster) digest(program plan.Program) (string, error) {
	hash := sha256.New()
	for _, word := range append([]string{program.Path}, program.Args...) {
		file := word[strings.Index(word, "=")+1:]
		switch {
		case strings.HasSuffix(file, ".kubeconfig"):
			continue
		case filepath.Dir(file) != filepath.Join(c.Dir(), "bin") && filepath.Dir(file) != c.configFile(""):
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("cannot read a file of %s: %w", program.Name, err)
		}
		fmt.Fprintln(hash, file, len(data))
		hash.Write(data)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
