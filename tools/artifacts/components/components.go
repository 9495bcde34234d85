// SPDX-License-Identifier: Apache-2.0

// Package components builds the real components of a local cluster from the pinned modules
// under tools/artifacts/components, into a cache that all checkouts of a user share. It
// starts nothing, and does not know about clusters.
package components

import (
	"path"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Component is one set of binaries that one go build makes.
type Component struct {
	// Name is its name in progress lines and errors.
	Name string
	// Folder is the component's module, relative to tools/artifacts/components.
	Folder string
	// Packages are the import paths of the main packages to build.
	Packages []string
	// Binaries are the file names that the build writes, as go build names them.
	Binaries []string
	// Tags are build tags.
	Tags string
	// Ldflags are linker flags in addition to -s -w.
	Ldflags string
}

const (
	k8s  = "k8s.io/kubernetes/cmd/"
	cni  = "github.com/containernetworking/plugins/plugins/"
	ctrd = "github.com/containerd/containerd/v2/cmd/"
)

// ControlPlane returns the components of every local cluster, slowest first: later ones share
// most packages with the Kubernetes programs. One go build makes those, so that no
// processor idles while a program is linked.
func ControlPlane(v setup.Versions) []Component {
	return []Component{
		kubernetes("kubernetes", v, k8s+"kube-apiserver", k8s+"kube-controller-manager", k8s+"kube-scheduler", k8s+"kubectl"),
		{Name: "etcd", Folder: "etcd", Packages: []string{"go.etcd.io/etcd/server/v3"}, Binaries: []string{"server"}},
		{Name: "kwok", Folder: "kueue", Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"}, Binaries: []string{"kwok"}},
	}
}

// Node returns ControlPlane and the components that run containers on a node.
func Node(v setup.Versions) []Component {
	return append(ControlPlane(v),
		kubernetes("kubelet", v, k8s+"kubelet", k8s+"kube-proxy"),
		Component{
			Name: "containerd", Folder: "kubernetes", Tags: "no_btrfs no_zfs no_devmapper",
			Packages: []string{ctrd + "containerd", ctrd + "containerd-shim-runc-v2", ctrd + "ctr"},
			Binaries: []string{"containerd", "containerd-shim-runc-v2", "ctr"},
			Ldflags:  "-X github.com/containerd/containerd/v2/version.Version=" + v.LocalCluster.Containerd,
		},
		Component{
			Name: "cni", Folder: "kubernetes",
			Packages: []string{cni + "main/bridge", cni + "main/loopback", cni + "ipam/host-local"},
			Binaries: []string{"bridge", "loopback", "host-local"},
		},
		Component{Name: "coredns", Folder: "kueue", Packages: []string{"./coredns"}, Binaries: []string{"coredns"}},
	)
}

// Platform returns the operators that are installed together with our controller.
func Platform(v setup.Versions) []Component { return operators(v, false) }

// Optional returns the operators of the platform's parts that are disabled by default.
func Optional(v setup.Versions) []Component { return operators(v, true) }

func operators(v setup.Versions, optional bool) []Component {
	var all []Component
	for _, p := range parts.All {
		if p.Own || p.Optional != optional {
			continue
		}
		c := Component{Name: p.Name, Folder: p.Component.Module, Packages: p.Packages()}
		if p.Name == "coscheduler" {
			c.Folder = coschedulerFolder(v)
		}
		for _, program := range c.Packages {
			c.Binaries = append(c.Binaries, path.Base(program))
		}
		if p.Component.KubernetesVersion {
			c.Ldflags = kubernetesVersion(v.LocalCluster.Kubernetes)
		}
		all = append(all, c)
	}
	return all
}

// Helm returns both supported Helm clients. Both binaries are called helm: get one at a time.
func Helm() (three, four Component) {
	component := func(name, pkg string) Component {
		return Component{Name: name, Folder: name, Packages: []string{pkg}, Binaries: []string{"helm"}}
	}
	return component("helm3", "helm.sh/helm/v3/cmd/helm"), component("helm4", "helm.sh/helm/v4/cmd/helm")
}

// Kubectl returns the client of the cluster's Kubernetes alone.
func Kubectl(v setup.Versions) Component {
	return kubernetes("kubectl-"+setup.Minor(v.LocalCluster.Kubernetes), v, k8s+"kubectl")
}

// kubernetes is a component whose programs are stamped with the version of Kubernetes.
func kubernetes(name string, v setup.Versions, packages ...string) Component {
	component := Component{Name: name, Folder: kubernetesFolder(v), Packages: packages, Ldflags: kubernetesVersion(v.LocalCluster.Kubernetes)}
	for _, p := range packages {
		component.Binaries = append(component.Binaries, path.Base(p))
	}
	return component
}

// kubernetesFolder is the module with the programs of the cluster's Kubernetes.
func kubernetesFolder(v setup.Versions) string {
	if v.LocalCluster.Minor == "" {
		return "kubernetes"
	}
	return "kubernetes-" + v.LocalCluster.Minor
}

// coschedulerFolder is the module with a coscheduler for the cluster's Kubernetes.
func coschedulerFolder(v setup.Versions) string {
	other := v.LocalCluster.OtherKubernetes[v.LocalCluster.Minor]
	if other.Coscheduler == "" {
		return "kubernetes"
	}
	return "coscheduler-" + setup.Minor(other.Coscheduler)
}

// kubernetesVersion stamps a version such as v1.34.4: otherwise the server reports v0.0.0,
// and charts that check kubeVersion refuse it.
func kubernetesVersion(version string) string {
	const pkg = "-X k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return pkg + "gitVersion=" + version + " " + pkg + "gitMajor=" + parts[0] + " " + pkg + "gitMinor=" + parts[1] + " " + pkg + "gitTreeState=clean"
}
