// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

//go:embed stages/pod-complete-when-asked.yaml
var completeWhenAsked string

//go:embed stages/pod-delete.yaml
var deletePod string

func (c *Cluster) configFile(name string) string { return filepath.Join(c.Dir(), "config", name) }

func (c *Cluster) containerdSocket() string {
	return filepath.Join(c.Dir(), "containerd.sock")
}

// writePlan writes the keeper's plan and all files that its programs read.
func (c *Cluster) writePlan(bins components.Binaries, tools string) error {
	if err := c.writeCredentials(); err != nil {
		return err
	}
	p, err := c.plan(bins, tools)
	if err != nil {
		return err
	}
	return plan.Write(c.Dir(), plan.File, p)
}

// plan returns the keeper's plan. It also writes the files that the programs read, except
// credentials, which a cluster keeps until it is removed.
func (c *Cluster) plan(bins components.Binaries, tools string) (plan.Plan, error) {
	p := c.frame()
	p.Programs = c.programs(bins, tools)
	if err := os.MkdirAll(c.LogDir(), 0o755); err != nil {
		return p, fmt.Errorf("cannot create the cluster's folders: %w", err)
	}
	if c.config.Mode == Real {
		if err := c.writeNode(p, bins, tools); err != nil {
			return p, err
		}
	}
	if err := errors.Join(c.writeConfigs(), c.writeStages()); err != nil {
		return p, err
	}
	return p, c.identify(p.Programs)
}

// frame is the plan without its programs: what a keeper sets up only once.
func (c *Cluster) frame() plan.Plan {
	p := plan.Plan{
		Name: c.config.Name, Dir: c.Dir(), Forward: innerAddress,
		Network: plan.Network{Bridge: bridgeName, Address: nodeCIDR},
	}
	if c.config.Mode != Real {
		return p
	}
	p.Cgroup, p.Network.Services = c.cgroup(), serviceCIDR
	for _, target := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers"} {
		source := filepath.Join(c.Dir(), "node", filepath.Base(filepath.Dir(target))+"-"+filepath.Base(target))
		p.Binds = append(p.Binds, plan.Bind{Source: source, Target: target})
	}
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		p.Sysctls = append(p.Sysctls, plan.Bind{Source: c.sysctlFile(name), Target: filepath.Join("/proc/sys", name)})
	}
	return p
}

// writeNode writes the folders and files of a node that runs containers.
func (c *Cluster) writeNode(p plan.Plan, bins components.Binaries, tools string) error {
	for _, bind := range p.Binds {
		if err := os.MkdirAll(bind.Source, 0o755); err != nil {
			return fmt.Errorf("cannot create the node's folder: %w", err)
		}
	}
	if err := c.writeSysctls(); err != nil {
		return err
	}
	return c.writeContainerConfigs(bins, tools)
}

// writeConfigs writes what the programs of every cluster read.
func (c *Cluster) writeConfigs() error {
	return errors.Join(
		c.render(c.configFile("kube-scheduler.yaml"), "kube-scheduler.yaml", map[string]string{"Kubeconfig": c.kubeconfigOf("kube-scheduler")}),
		c.render(c.configFile("audit-policy.yaml"), "audit-policy.yaml", nil),
		c.render(c.configFile("kwok.yaml"), "kwok.yaml", nil),
	)
}

func (c *Cluster) writeContainerConfigs(bins components.Binaries, tools string) error {
	resolv := c.configFile("resolv.conf")
	return errors.Join(
		os.MkdirAll(c.configFile("cni"), 0o755),
		os.WriteFile(resolv, nil, 0o644), // pods cannot reach the outside
		c.render(c.configFile("containerd.toml"), "containerd.toml", map[string]string{
			"ContainerdSocket": c.containerdSocket(), "PauseImage": pauseImage,
			"Runc": filepath.Join(tools, "usr/sbin/runc"), "CNIBin": filepath.Dir(bins["bridge"]), "CNIConf": c.configFile("cni"),
		}),
		c.render(filepath.Join(c.configFile("cni"), "10-bridge.conflist"), "10-bridge.conflist", map[string]string{
			"Bridge": bridgeName, "PodCIDR": podCIDR, "NodeIP": nodeIP,
		}),
		c.render(c.configFile("kubelet.yaml"), "kubelet.yaml", map[string]string{
			"NodeIP": nodeIP, "PKI": c.pkiDir(), "Cgroup": c.cgroup(), "DNS": dnsIP,
			"ResolvConf": resolv, "ContainerdSocket": c.containerdSocket(), "VolumePlugins": volumePlugins,
		}),
		c.render(c.configFile("kube-proxy.yaml"), "kube-proxy.yaml", map[string]string{
			"Kubeconfig": c.kubeconfigOf("kube-proxy"), "PodCIDR": podCIDR, "Node": c.config.Name, "FeatureGates": proxyGates(c.config.Kubernetes),
		}),
	)
}

// proxyGates turns on nftables in versions that do not have it by default.
func proxyGates(minor string) string {
	if minor == "1.30" {
		return "{NFTablesProxyMode: true}"
	}
	return "{}"
}

// writeStages joins KWOK's stages for nodes and pods, from its module, with our stages
// that complete and delete pods. There is no heartbeat: leases show that nodes are alive, and KWOK
// sends one that is planned (after ten minutes) even when it no longer simulates the node, so that a
// dead node would be ready again.
func (c *Cluster) writeStages() error {
	cache, err := c.cache()
	if err != nil {
		return err
	}
	dir, err := components.Source(context.Background(), components.Module(cache.Checkout, "kueue"), "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	stages := []string{completeWhenAsked, deletePod}
	for _, file := range []string{"node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, "kustomize", "stage", file))
		if err != nil {
			return fmt.Errorf("cannot read KWOK's stages: %w", err)
		}
		stages = append(stages, string(data))
	}
	if err := os.WriteFile(c.configFile("stages.yaml"), []byte(strings.Join(stages, "\n---\n")), 0o644); err != nil {
		return fmt.Errorf("cannot write KWOK's stages: %w", err)
	}
	return nil
}
