// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// readyTimeout limits the start of one program. It usually takes less than five seconds,
// but more on a machine that is also compiling.
const readyTimeout = 90 * time.Second

// volumePlugins is a folder that two programs create. Their default is in /usr.
const volumePlugins = "/var/lib/kubelet/volume-plugins"

// programs are the processes of the node, in start order.
func (c *Cluster) programs(bins components.Binaries, tools string) []plan.Program {
	all := []plan.Program{c.etcd(bins), c.apiServer(bins), c.controllerManager(bins), c.scheduler(bins)}
	if c.config.Mode == Real {
		all = append([]plan.Program{c.containerd(bins)}, append(all, c.kubelet(bins), c.kubeProxy(bins, tools))...)
	} else {
		all = append(all, c.processNodes()...)
	}
	all = append(all, c.kwok(bins))
	// Only these programs have their tools in PATH: a new containerd must not restart the others.
	own := map[string]string{"containerd": filepath.Dir(bins["containerd"]), "kube-proxy": filepath.Join(tools, "usr/sbin")}
	for i := range all {
		all[i].Timeout = readyTimeout
		// The user's environment is not passed on. A proxy, for instance, is unreachable
		// from inside, and the API server would call webhooks through it.
		path := strings.TrimPrefix(own[all[i].Name]+":/usr/sbin:/usr/bin:/sbin:/bin", ":")
		all[i].Env = append(all[i].Env, "PATH="+path, "HOME="+c.Dir())
	}
	return all
}

func (c *Cluster) containerd(bins components.Binaries) plan.Program {
	return plan.Program{
		Name: "containerd", Path: bins["containerd"], Args: []string{"--config", c.configFile("containerd.toml")},
		Ready: plan.Probe{Socket: c.containerdSocket()},
	}
}

func (c *Cluster) etcd(bins components.Binaries) plan.Program {
	return plan.Program{
		Name: "etcd", Path: bins["server"],
		Args: []string{
			"--data-dir=" + filepath.Join(c.Dir(), "etcd"),
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			// A power cut may lose the data: it is as short-lived as the cluster.
			"--unsafe-no-fsync", "--log-level=warn",
		},
		Ready: plan.Probe{URL: "http://127.0.0.1:2379/readyz"},
	}
}

// admissionPlugins returns the admission plugins in addition to Kubernetes' defaults. The second
// one is enabled on OpenShift: to set an owner reference, a user needs the right to set the
// owner's finalizers. It shows whether our roles work there. A simulated cluster does not enable
// it, because it learns new kinds only every 30 seconds.
func (c *Cluster) admissionPlugins() string {
	if c.config.Mode == Simulated {
		return "NodeRestriction"
	}
	return "NodeRestriction,OwnerReferencesPermissionEnforcement"
}

func (c *Cluster) apiServer(bins components.Binaries) plan.Program {
	return plan.Program{
		Name: "kube-apiserver", Path: bins["kube-apiserver"],
		Args: []string{
			"--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443", "--bind-address=0.0.0.0", "--advertise-address=" + nodeIP,
			"--service-cluster-ip-range=" + serviceCIDR, "--allow-privileged=true", "--event-ttl=6h",
			"--client-ca-file=" + c.pkiFile("ca.crt"), "--tls-cert-file=" + c.pkiFile("apiserver.crt"), "--tls-private-key-file=" + c.pkiFile("apiserver.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + c.pkiFile("sa.pub"), "--service-account-signing-key-file=" + c.pkiFile("sa.key"),
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=" + c.admissionPlugins(),
			"--requestheader-client-ca-file=" + c.pkiFile("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.pkiFile("front-proxy-client.crt"), "--proxy-client-key-file=" + c.pkiFile("front-proxy-client.key"),
			"--enable-aggregator-routing=true",
			"--kubelet-client-certificate=" + c.pkiFile("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + c.pkiFile("apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--audit-policy-file=" + c.configFile("audit-policy.yaml"), "--audit-log-path=" + filepath.Join(c.LogDir(), "audit.log"),
			"--audit-log-maxsize=200", "--audit-log-maxbackup=4",
		},
		Ready: plan.Probe{URL: "https://" + innerAddress + "/readyz", CA: c.pkiFile("ca.crt"), Cert: c.pkiFile("admin.crt"), Key: c.pkiFile("admin.key")},
	}
}

func (c *Cluster) controllerManager(bins components.Binaries) plan.Program {
	kubeconfig := c.kubeconfigOf("kube-controller-manager")
	modal := []string{"--flex-volume-plugin-dir=" + volumePlugins}
	if c.config.Mode == Simulated {
		// The node controller checks a thousand nodes one by one.
		modal = []string{
			"--flex-volume-plugin-dir=" + filepath.Join(c.Dir(), "volume-plugins"), "--kube-api-qps=1000", "--kube-api-burst=1000",
		}
	}
	if c.losesNodesSlowly() { // heartbeats may be late
		modal = append(modal, "--node-monitor-grace-period=180s")
	}
	return plan.Program{
		Name: "kube-controller-manager", Path: bins["kube-controller-manager"],
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", "--tls-cert-file=" + c.pkiFile("localhost-serving.crt"), "--tls-private-key-file=" + c.pkiFile("localhost-serving.key"),
			"--leader-elect=false", "--use-service-account-credentials=true",
			"--service-account-private-key-file=" + c.pkiFile("sa.key"), "--root-ca-file=" + c.pkiFile("ca.crt"),
			"--cluster-signing-cert-file=" + c.pkiFile("ca.crt"), "--cluster-signing-key-file=" + c.pkiFile("ca.key"),
			"--requestheader-client-ca-file=" + c.pkiFile("front-proxy-ca.crt"),
			// The one node already has its pod addresses.
			"--controllers=*,-node-ipam-controller",
		}, modal...),
		Ready: plan.Probe{URL: "https://127.0.0.1:10257/healthz", CA: c.pkiFile("ca.crt")},
	}
}

func (c *Cluster) scheduler(bins components.Binaries) plan.Program {
	kubeconfig := c.kubeconfigOf("kube-scheduler")
	return plan.Program{
		Name: "kube-scheduler", Path: bins["kube-scheduler"],
		Args: []string{
			"--config=" + c.configFile("kube-scheduler.yaml"), "--bind-address=127.0.0.1",
			"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--tls-cert-file=" + c.pkiFile("localhost-serving.crt"), "--tls-private-key-file=" + c.pkiFile("localhost-serving.key"),
		},
		Ready: plan.Probe{URL: "https://127.0.0.1:10259/healthz", CA: c.pkiFile("ca.crt")},
	}
}

func (c *Cluster) kubelet(bins components.Binaries) plan.Program {
	return plan.Program{
		Name: "kubelet", Path: bins["kubelet"],
		Args: []string{
			"--config=" + c.configFile("kubelet.yaml"), "--kubeconfig=" + c.kubeconfigOf("kubelet"),
			"--hostname-override=" + c.config.Name, "--node-ip=" + nodeIP, "--node-labels=" + realNodeLabel + "=true",
		},
		Ready: plan.Probe{URL: "http://127.0.0.1:10248/healthz"},
	}
}

func (c *Cluster) kubeProxy(bins components.Binaries, tools string) plan.Program {
	libraries := filepath.Join(tools, "usr/lib", debianTriplet()) + ":" + filepath.Join(tools, "lib", debianTriplet())
	return plan.Program{
		Name: "kube-proxy", Path: bins["kube-proxy"], Args: []string{"--config=" + c.configFile("kube-proxy.yaml")},
		Env:   []string{"LD_LIBRARY_PATH=" + libraries},
		Ready: plan.Probe{URL: "http://127.0.0.1:10256/healthz"},
	}
}

// nodeLease is the duration of a node lease in seconds. Each node renews its lease four
// times in it: with a real cluster's 40, a thousand nodes would send 100 requests a second.
func (c *Cluster) nodeLease() string {
	if c.losesNodesSlowly() {
		return "160"
	}
	return "40"
}

func (c *Cluster) kwok(bins components.Binaries) plan.Program {
	return plan.Program{
		Name: "kwok", Path: bins["kwok"],
		Args: []string{
			"--kubeconfig=" + c.kubeconfigOf("kwok"), "--config=" + c.configFile("kwok.yaml"), "--config=" + c.configFile("stages.yaml"),
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--server-address=127.0.0.1:10247", "--node-lease-duration-seconds=" + c.nodeLease(),
		},
		// A killed kwok leaves its leases behind. The next one has another identity, and
		// would not manage their nodes until the leases expire.
		Before: plan.Probe{
			Method: "DELETE",
			URL: "https://" + innerAddress + "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?fieldSelector=metadata.name!=" +
				c.config.Name,
			CA: c.pkiFile("ca.crt"), Cert: c.pkiFile("kwok.crt"), Key: c.pkiFile("kwok.key"),
		},
		Ready: plan.Probe{URL: "http://127.0.0.1:10247/healthz"},
	}
}
