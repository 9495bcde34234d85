// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// checkout returns a checkout that contains KWOK's module, so that the test needs no network.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "setup", "versions.yaml"), "")
	modules := components.Module(root, "")
	for _, folder := range []string{"kubernetes", "etcd"} {
		write(t, filepath.Join(modules, folder, "go.mod"), "module "+folder+"\n")
	}
	write(t, filepath.Join(modules, "kueue", "go.mod"),
		"module kueue\n\ngo 1.24\n\nrequire sigs.k8s.io/kwok v0.0.0\n\nreplace sigs.k8s.io/kwok => ../kwok\n")
	write(t, filepath.Join(modules, "kueue", "coredns", "main.go"), "package main\n")
	write(t, filepath.Join(modules, "kwok", "go.mod"), "module sigs.k8s.io/kwok\n\ngo 1.24\n")
	for _, stage := range []string{
		"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-delete",
	} {
		write(t, filepath.Join(modules, "kwok", "kustomize", "stage", stage+".yaml"), "kind: Stage\nmetadata: {name: "+filepath.Base(stage)+"}\n")
	}
	return root
}

// fakeBinaries returns a path for every binary of every component.
func fakeBinaries(t *testing.T) components.Binaries {
	t.Helper()
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	bins := components.Binaries{}
	for _, component := range components.Node(versions) {
		for _, b := range component.Binaries {
			bins[b] = filepath.Join("/cache", component.Name, b)
		}
	}
	return bins
}

// planned writes a plan and reads it back.
func planned(t *testing.T) (*Cluster, plan.Plan) {
	t.Helper()
	c, _ := newCluster(t)
	c.config.Checkout = checkout(t)
	if err := c.writePlan(fakeBinaries(t), "/tools"); err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := plan.Read(c.Dir(), plan.File, &p); err != nil {
		t.Fatal(err)
	}
	return c, p
}

// madeLater are paths that programs create themselves.
var madeLater = []string{"containerd.sock", "etcd", "log/audit.log"}

func TestEveryFileInAnArgumentIsWritten(t *testing.T) {
	c, p := planned(t)
	path := regexp.MustCompile(regexp.QuoteMeta(c.Dir()) + `/[A-Za-z0-9/._-]+`)
	check := func(where, text string) {
		for _, file := range path.FindAllString(text, -1) {
			name, _ := filepath.Rel(c.Dir(), file)
			if _, err := os.Stat(file); err != nil && !slices.Contains(madeLater, name) {
				t.Errorf("%s names %s, which is not written", where, name)
			}
		}
	}
	for _, program := range p.Programs {
		ready := program.Ready
		check(program.Name, strings.Join(slices.Concat(program.Args, program.Env, []string{ready.CA, ready.Cert, ready.Key}), "\n"))
	}
	for _, bind := range p.Binds {
		check("a bind", bind.Source)
	}
	err := filepath.WalkDir(c.configFile(""), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		check(entry.Name(), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The kubelet starts only if kernel settings have the values that it expects, so the mounted
// files must have them.
func TestTheNodeDoesNotChangeTheHostsSysctls(t *testing.T) {
	c, p := planned(t)
	var config struct {
		ProtectKernelDefaults bool `json:"protectKernelDefaults"`
	}
	read(t, c.configFile("kubelet.yaml"), &config)
	if !config.ProtectKernelDefaults {
		t.Error("the kubelet may change the kernel's settings")
	}
	got := map[string]string{}
	for _, bind := range p.Sysctls {
		value, err := os.ReadFile(bind.Source)
		if err != nil {
			t.Fatal(err)
		}
		got[bind.Target] = string(value)
		if _, err := os.Stat(bind.Target); err != nil {
			t.Errorf("this kernel has no such setting: %v", err)
		}
	}
	want := map[string]string{
		"/proc/sys/vm/overcommit_memory": "1\n", "/proc/sys/vm/panic_on_oom": "0\n",
		"/proc/sys/kernel/panic": "10\n", "/proc/sys/kernel/panic_on_oops": "1\n",
		"/proc/sys/kernel/keys/root_maxkeys": "1000000\n", "/proc/sys/kernel/keys/root_maxbytes": "25000000\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each of these programs creates a folder outside /var/lib by default.
func TestProgramsCreateFoldersInsideTheNode(t *testing.T) {
	c, p := planned(t)
	for told, by := range map[string]string{
		"volumePluginDir: /var/lib/kubelet/":                  fileText(t, c.configFile("kubelet.yaml")),
		"--flex-volume-plugin-dir=/var/lib/kubelet/":          strings.Join(program(t, p, "kube-controller-manager").Args, "\n"),
		"internal.v1.opt\"]\n  path = \"/var/lib/containerd/": fileText(t, c.configFile("containerd.toml")),
	} {
		if !strings.Contains(by, told) {
			t.Errorf("a program is not told %q", told)
		}
	}
}

func TestProgramsDoNotInheritTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
	c, p := planned(t)
	for _, program := range p.Programs {
		names := map[string]string{}
		for _, setting := range program.Env {
			name, value, _ := strings.Cut(setting, "=")
			names[name] = value
		}
		if names["HOME"] != c.Dir() || !strings.HasSuffix(names["PATH"], "/usr/sbin:/usr/bin:/sbin:/bin") {
			t.Errorf("%s has HOME=%s and PATH=%s", program.Name, names["HOME"], names["PATH"])
		}
		delete(names, "HOME")
		delete(names, "PATH")
		delete(names, "LD_LIBRARY_PATH")
		if len(names) > 0 {
			t.Errorf("%s is given %v", program.Name, names)
		}
	}
}

func program(t *testing.T, p plan.Plan, name string) plan.Program {
	t.Helper()
	i := slices.IndexFunc(p.Programs, func(p plan.Program) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no program %s", name)
	}
	return p.Programs[i]
}

func TestANearlyFullLargeDiskCausesNoPressure(t *testing.T) {
	c, _ := planned(t)
	var config struct {
		EvictionHard map[string]string `json:"evictionHard"`
	}
	read(t, c.configFile("kubelet.yaml"), &config)
	want := map[string]string{"memory.available": "100Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi", "nodefs.inodesFree": "1%"}
	if diff := cmp.Diff(want, config.EvictionHard); diff != "" {
		t.Error(diff)
	}
}

func TestProgramsStartAfterTheirDependencies(t *testing.T) {
	_, p := planned(t)
	var names []string
	for _, program := range p.Programs {
		names = append(names, program.Name)
		if !filepath.IsAbs(program.Path) {
			t.Errorf("%s has no binary", program.Name)
		}
		if program.Timeout != readyTimeout || program.Ready == (plan.Probe{}) {
			t.Errorf("nobody waits for %s", program.Name)
		}
	}
	want := []string{"containerd", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kwok"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestTheAPIServerHasTheAdmissionPluginsOfOpenShift(t *testing.T) {
	c, p := planned(t)
	server := program(t, p, "kube-apiserver")
	for _, want := range []string{
		"--audit-policy-file=" + c.configFile("audit-policy.yaml"),
		"--audit-log-path=" + filepath.Join(c.LogDir(), "audit.log"),
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--authorization-mode=Node,RBAC",
	} {
		if !slices.Contains(server.Args, want) {
			t.Errorf("the API server is not told %s", want)
		}
	}
}

func TestTheSchedulerHasOnlyTheDefaultProfile(t *testing.T) {
	c, _ := planned(t)
	var config struct {
		Profiles []map[string]any `json:"profiles"`
	}
	read(t, c.configFile("kube-scheduler.yaml"), &config)
	want := []map[string]any{{"schedulerName": "default-scheduler"}}
	if diff := cmp.Diff(want, config.Profiles); diff != "" {
		t.Error(diff)
	}
}

// Templates must stay valid YAML after values are filled in.
func TestConfigurationFilesAreValid(t *testing.T) {
	c, _ := planned(t)
	for file, kind := range map[string]string{
		"kubelet.yaml": "KubeletConfiguration", "kube-proxy.yaml": "KubeProxyConfiguration",
		"kube-scheduler.yaml": "KubeSchedulerConfiguration", "audit-policy.yaml": "Policy",
	} {
		var got struct {
			Kind string `json:"kind"`
		}
		read(t, c.configFile(file), &got)
		if got.Kind != kind {
			t.Errorf("%s is of kind %q, want %s", file, got.Kind, kind)
		}
	}
}

// kube-proxy 1.30 says that the mode "must be iptables, ipvs or blank". A later one may not know the gate.
func TestNftablesIsTurnedOnWhereItIsNoDefault(t *testing.T) {
	for minor, want := range map[string]bool{"1.30": true, "": false, "1.37": false} {
		text, err := rendered("kube-proxy.yaml", map[string]string{"Kubeconfig": "/k", "PodCIDR": podCIDR, "Node": "n", "FeatureGates": proxyGates(minor)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "NFTablesProxyMode: true"); got != want {
			t.Errorf("%s:\n%s", minor, text)
		}
	}
}

func TestStagesAreKWOKsAndOurs(t *testing.T) {
	c, _ := planned(t)
	data, err := os.ReadFile(c.configFile("stages.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var stage struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &stage); err != nil || stage.Kind != "Stage" {
			t.Errorf("a document is of kind %q (%v)", stage.Kind, err)
		}
		names = append(names, stage.Metadata.Name)
	}
	want := []string{"pod-complete-when-asked", "pod-delete", "node-initialize", "pod-ready"} // and no heartbeat, which would revive dead nodes
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// What holds a pod must hold it here, too: our stage may be another one than KWOK's in when it deletes only.
func TestADeletedPodKeepsItsFinalizers(t *testing.T) {
	var stage struct{ Spec struct{ Next map[string]any } }
	if err := yaml.Unmarshal([]byte(deletePod), &stage); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"delete": true}, stage.Spec.Next); diff != "" {
		t.Error(diff)
	}
}

func TestTheAdministratorsKubeconfigHasThePort(t *testing.T) {
	c, _ := planned(t)
	if err := c.writeKubeconfig(c.KubeconfigPath(), "admin", "https://127.0.0.1:26443"); err != nil {
		t.Fatal(err)
	}
	pretendRunning(t, c)
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:26443" || len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("the kubeconfig leads to %s", config.Host)
	}
	info, err := os.Stat(c.KubeconfigPath())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the kubeconfig: %v (%v)", info.Mode(), err)
	}
}

func TestReplacingAKubeconfigIsAtomic(t *testing.T) {
	c, _ := planned(t)
	if err := c.writeKubeconfig(c.KubeconfigPath(), "admin", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	want := fileText(t, c.KubeconfigPath())
	reader, err := os.Open(c.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := c.writeKubeconfig(c.KubeconfigPath(), "admin", "https://127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != want {
		t.Errorf("the reader has got %q (%v)", got, err)
	}
}

func TestEachProgramHasItsOwnKubeconfig(t *testing.T) {
	c, _ := planned(t)
	for _, user := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kwok"} {
		config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigOf(user))
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		cert, err := os.ReadFile(c.pkiFile(user + ".crt"))
		if err != nil || string(cert) != string(config.CertData) || config.Host != "https://"+innerAddress {
			t.Errorf("%s is not itself, at %s (%v)", user, config.Host, err)
		}
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
