// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlbatch/mlbatch/tools/localcluster/pki"
)

// Addresses inside the cluster's network namespace. Clusters may use the same ones,
// because each has its own namespace.
const (
	nodeIP       = "10.200.0.1"
	nodeCIDR     = "10.200.0.1/24"
	podCIDR      = "10.200.0.0/24"
	serviceCIDR  = "10.96.0.0/16"
	kubernetesIP = "10.96.0.1"
	dnsIP        = "10.96.0.10"
	innerAddress = "127.0.0.1:6443"
	bridgeName   = "cni0"
)

// users are the identities of programs and administrators.
func (c *Cluster) users() []pki.Leaf {
	all := []pki.Leaf{
		{File: "admin", CommonName: "admin", Organization: "system:masters"},
		{File: "kube-controller-manager", CommonName: "system:kube-controller-manager"},
		{File: "kube-scheduler", CommonName: "system:kube-scheduler"},
		{File: "kube-proxy", CommonName: "system:kube-proxy"},
		{File: "kwok", CommonName: "kwok", Organization: "system:masters"},
		{File: "apiserver-kubelet-client", CommonName: "kube-apiserver-kubelet-client", Organization: "system:masters"},
	}
	for i, file := range c.kubelets() {
		all = append(all, pki.Leaf{File: file, CommonName: "system:node:" + numbered(c.config.Name, i+1), Organization: "system:nodes"})
	}
	return all
}

// kubelets are the users of the nodes that are not KWOK's.
func (c *Cluster) kubelets() (all []string) {
	for node := 1; node <= c.config.PlatformNodes; node++ {
		all = append(all, numbered("kubelet", node))
	}
	return all
}

func (c *Cluster) pkiDir() string             { return filepath.Join(c.Dir(), "pki") }
func (c *Cluster) pkiFile(name string) string { return filepath.Join(c.pkiDir(), name) }

// writeCredentials creates all certificates, keys and kubeconfigs.
func (c *Cluster) writeCredentials() error {
	if err := os.MkdirAll(c.pkiDir(), 0o700); err != nil {
		return fmt.Errorf("cannot create the folder for certificates: %w", err)
	}
	ca, err := pki.NewAuthority(c.pkiDir(), "ca")
	if err != nil {
		return err
	}
	frontProxy, err := pki.NewAuthority(c.pkiDir(), "front-proxy-ca")
	if err != nil {
		return err
	}
	servers := []pki.Leaf{
		{File: "apiserver", CommonName: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"localhost", "127.0.0.1", kubernetesIP, nodeIP,
		}},
		{File: "localhost-serving", CommonName: "localhost", Hosts: []string{"localhost", "127.0.0.1"}},
		{File: "kubelet-serving", CommonName: c.config.Name, Hosts: []string{c.config.Name, nodeIP}},
	}
	for _, leaf := range append(servers, c.users()...) {
		if err := ca.Issue(leaf); err != nil {
			return err
		}
	}
	if err := frontProxy.Issue(pki.Leaf{File: "front-proxy-client", CommonName: "front-proxy-client"}); err != nil {
		return err
	}
	if err := pki.ServiceAccountKeys(c.pkiDir()); err != nil {
		return err
	}
	for _, user := range append([]string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kwok"}, c.kubelets()...) {
		if err := c.writeKubeconfig(c.kubeconfigOf(user), user, "https://"+innerAddress); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) kubeconfigOf(user string) string {
	return filepath.Join(c.Dir(), "config", user+".kubeconfig")
}

// writeKubeconfig writes a kubeconfig with embedded certificates.
func (c *Cluster) writeKubeconfig(path, user, server string) error {
	pem := map[string]string{}
	for _, file := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(c.pkiFile(file))
		if err != nil {
			return fmt.Errorf("cannot read the certificate of %s: %w", user, err)
		}
		pem[file] = base64.StdEncoding.EncodeToString(data)
	}
	return c.render(path, "kubeconfig.yaml", map[string]string{
		"Cluster": c.config.Name, "User": user, "Server": server,
		"CA": pem["ca.crt"], "Cert": pem[user+".crt"], "Key": pem[user+".key"],
	})
}
