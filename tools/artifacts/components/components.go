// SPDX-License-Identifier: Apache-2.0

// Package components answers: where is the binary of this component? It builds the
// real components of a local cluster from the pinned modules under
// tools/artifacts/components into a cache that all checkouts of a user share. It starts
// nothing and knows nothing of clusters.
package components

import (
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

// Component is one set of binaries that one go build makes.
type Component struct {
	// Name is what progress lines and error messages call it.
	Name string
	// Folder is the component's module, relative to tools/artifacts/components.
	Folder string
	// Packages are the main packages to build, each named as in its module.
	Packages []string
	// Binaries are the file names that the build writes, as go build names them.
	Binaries []string
	// Tags are build tags.
	Tags string
	// Ldflags are linker flags beside -s -w.
	Ldflags string
}

const (
	k8s  = "k8s.io/kubernetes/cmd/"
	cni  = "github.com/containernetworking/plugins/plugins/"
	ctrd = "github.com/containerd/containerd/v2/cmd/"
)

// ControlPlane returns what every local cluster is made of, slowest first: what
// comes later shares most of its packages with kube-apiserver.
func ControlPlane(v setup.Versions) []Component {
	version := kubernetesVersion(v.LocalCluster.Kubernetes)
	return []Component{
		kubernetes("kube-apiserver", version),
		kubernetes("kube-controller-manager", version),
		kubernetes("kube-scheduler", version),
		kubernetes("kubectl", version),
		{Name: "etcd", Folder: "etcd", Packages: []string{"go.etcd.io/etcd/server/v3"}, Binaries: []string{"server"}},
		{Name: "kwok", Folder: "kueue", Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"}, Binaries: []string{"kwok"}},
	}
}

// Node returns ControlPlane and what runs containers on a node.
func Node(v setup.Versions) []Component {
	version := kubernetesVersion(v.LocalCluster.Kubernetes)
	return append(ControlPlane(v),
		kubernetes("kubelet", version),
		kubernetes("kube-proxy", version),
		Component{
			Name: "containerd", Folder: "containerd", Tags: "no_btrfs no_zfs no_devmapper",
			Packages: []string{ctrd + "containerd", ctrd + "containerd-shim-runc-v2", ctrd + "ctr"},
			Binaries: []string{"containerd", "containerd-shim-runc-v2", "ctr"},
			Ldflags:  "-X github.com/containerd/containerd/v2/version.Version=" + v.LocalCluster.Containerd,
		},
		Component{
			Name: "cni", Folder: "cni",
			Packages: []string{cni + "main/bridge", cni + "main/loopback", cni + "ipam/host-local"},
			Binaries: []string{"bridge", "loopback", "host-local"},
		},
		Component{Name: "coredns", Folder: "coredns", Packages: []string{"."}, Binaries: []string{"coredns"}},
	)
}

// Platform returns the operators that run as pods beside our controller.
func Platform(v setup.Versions) []Component {
	// A scheduler compares its version with the API server's: it has to name the
	// Kubernetes that it is built from, not the version of the plugins.
	version := kubernetesVersion(v.LocalCluster.Kubernetes)
	return []Component{
		{Name: "coscheduler", Folder: "kubernetes", Packages: []string{"sigs.k8s.io/scheduler-plugins/cmd/scheduler"}, Binaries: []string{"scheduler"}, Ldflags: version},
		{Name: "podgroup-controller", Folder: "kubernetes", Packages: []string{"sigs.k8s.io/scheduler-plugins/cmd/controller"}, Binaries: []string{"controller"}, Ldflags: version},
		{Name: "kueue", Folder: "kueue", Packages: []string{"sigs.k8s.io/kueue/cmd/kueue"}, Binaries: []string{"kueue"}},
		{Name: "training-operator", Folder: "training-operator", Packages: []string{"github.com/kubeflow/training-operator/cmd/training-operator.v1"}, Binaries: []string{"training-operator.v1"}},
		{Name: "kuberay-operator", Folder: "kuberay", Packages: []string{"github.com/ray-project/kuberay/ray-operator"}, Binaries: []string{"ray-operator"}},
	}
}

// Optional returns the operators of the platform's parts that are off by default.
func Optional() []Component {
	return []Component{
		{Name: "jobset", Folder: "jobset", Packages: []string{"sigs.k8s.io/jobset"}, Binaries: []string{"jobset"}},
		{Name: "lws", Folder: "lws", Packages: []string{"sigs.k8s.io/lws/cmd"}, Binaries: []string{"cmd"}},
	}
}

// Helm returns the clients that users of the charts have. Both are called helm: get one at a time.
func Helm() (three, four Component) {
	component := func(name, pkg string) Component {
		return Component{Name: name, Folder: name, Packages: []string{pkg}, Binaries: []string{"helm"}}
	}
	return component("helm3", "helm.sh/helm/v3/cmd/helm"), component("helm4", "helm.sh/helm/v4/cmd/helm")
}

func kubernetes(name, ldflags string) Component {
	return Component{Name: name, Folder: "kubernetes", Packages: []string{k8s + name}, Binaries: []string{name}, Ldflags: ldflags}
}

// kubernetesVersion stamps a version such as v1.34.4: without it the server
// reports v0.0.0 and charts that check kubeVersion refuse it.
func kubernetesVersion(version string) string {
	const pkg = "-X k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return pkg + "gitVersion=" + version + " " + pkg + "gitMajor=" + parts[0] + " " + pkg + "gitMinor=" + parts[1] + " " + pkg + "gitTreeState=clean"
}
