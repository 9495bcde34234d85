// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// simulated returns a cluster of a user who is not root.
func simulated(t *testing.T) *Cluster {
	t.Helper()
	c, _ := newCluster(t)
	c.config.Mode, c.host.user = Simulated, 1000
	return c
}

func TestASimulatedClusterNeedsNoRoot(t *testing.T) {
	c := simulated(t)
	c.host.proc, c.host.modprobe = "/none", "/none/modprobe"
	if err := c.Preflight(t.Context()); err != nil {
		t.Error(err)
	}
	fakeCompiler(t)
	c.host.disk = func(string) (disk, error) { return disk{free: 5 * gib}, nil }
	wantSentence(t, c.Preflight(t.Context()), "a local cluster may need 9.0 GiB there") // for six components, not eleven
	c.host.disk = func(string) (disk, error) { return disk{free: 12 * gib}, nil }
	c.config.StateDir = "/run/user/1000/mlbatch"
	wantSentence(t, c.Preflight(t.Context()), "must not be below /run", "XDG_STATE_HOME")
	c.config.StateDir, c.config.CacheDir = "/proc/x", "/var/lib/jenkins/.cache"
	wantSentence(t, c.Preflight(t.Context()), "must not be below /proc")
	short := simulated(t)
	short.config.StateDir = filepath.Join(short.config.StateDir, strings.Repeat("x", 90))
	wantSentence(t, short.Preflight(t.Context()), "is too long for a socket", "XDG_STATE_HOME")
}

func TestMissingUserNamespacesAreExplained(t *testing.T) {
	c := simulated(t)
	var tried *syscall.SysProcAttr
	c.host.try = func(attr *syscall.SysProcAttr) error {
		tried = attr
		return &pathError{syscall.EPERM}
	}
	wantSentence(t, c.Preflight(t.Context()), "user 1000 may not create user namespaces and mount in them on this machine (operation not permitted)", "sudo", "user.max_user_namespaces", "--privileged")
	if tried.Cloneflags != c.host.namespaces().Cloneflags || tried.Cloneflags&syscall.CLONE_NEWUSER == 0 {
		t.Errorf("the namespaces %x were tried, not those of a keeper", tried.Cloneflags)
	}
	c.host.user = 0
	wantSentence(t, c.Preflight(t.Context()), "root may not create namespaces and mount in them here (operation not permitted)", "--privileged")
	if c.host.namespaces().Cloneflags&syscall.CLONE_NEWUSER != 0 {
		t.Error("root is given a user namespace")
	}
}

type pathError struct{ why error }

func (e *pathError) Error() string { return "fork/exec /bin/sh: " + e.why.Error() }
func (e *pathError) Unwrap() error { return e.why }

func TestASimulatedClusterHasNoContainersAndNoCgroups(t *testing.T) {
	c := simulated(t)
	c.config.Checkout = checkout(t)
	write(t, processNodeProgram(c.Dir()), "")
	bins := fakeBinaries(t)
	if err := c.writePlan(bins, ""); err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := plan.Read(c.Dir(), plan.File, &p); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, program := range p.Programs {
		names = append(names, program.Name)
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "processnode", "kwok"}, names); diff != "" {
		t.Error(diff)
	}
	if len(p.Binds)+len(p.Sysctls) > 0 || p.Cgroup != "" || p.Network.Services != "" {
		t.Errorf("the plan is that of a node for containers: %+v", p)
	}
	node := program(t, p, "processnode")
	for _, want := range []string{"--kubeconfig=" + c.kubeconfigOf("kubelet"), "--label=" + realNodeLabel, "--taint=" + platformTaint} {
		if !slices.Contains(node.Args, want) {
			t.Errorf("the node is not told %s", want)
		}
	}
	if !node.PIDNamespace {
		t.Error("processnode has no PID namespace: its pods would outlive it")
	}
	if _, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigOf("kubelet")); err != nil {
		t.Error(err)
	}
	args := strings.Join(program(t, p, "kube-controller-manager").Args, " ")
	if strings.Contains(args, "/var/lib") {
		t.Error("the controller manager makes a folder in the machine's /var/lib")
	}
	if !strings.Contains(args, " --node-monitor-grace-period=180s") || !slices.Contains(program(t, p, "kwok").Args, "--node-lease-duration-seconds=160") {
		t.Error("a thousand nodes would send too many heartbeats, or be lost")
	}
}

func TestEachNodeForThePlatformIsItsOwn(t *testing.T) {
	c := simulated(t)
	c.config.Checkout, c.config.PlatformNodes = checkout(t), 3
	write(t, processNodeProgram(c.Dir()), "")
	if err := c.linkProcessNodes(filepath.Join(c.Dir(), "bin")); err != nil {
		t.Fatal(err)
	}
	if err := c.writePlan(fakeBinaries(t), ""); err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := plan.Read(c.Dir(), plan.File, &p); err != nil {
		t.Fatal(err)
	}
	first, third := program(t, p, "processnode"), program(t, p, "processnode-3")
	for _, want := range []string{"--name=unit-x-3", "--pods=10.200.0.128/26", "--health=127.0.0.1:10448", "--kubeconfig=" + c.kubeconfigOf("kubelet-3")} {
		if !slices.Contains(third.Args, want) {
			t.Errorf("the third node is not told %s, but %q", want, third.Args)
		}
	}
	if first.Path == third.Path || first.Version != third.Version || first.Ready == third.Ready {
		t.Errorf("the first node is %+v, the third %+v", first, third)
	}
	if _, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigOf("kubelet-3")); err != nil {
		t.Error(err)
	}
	for _, manager := range program(t, p, "kube-controller-manager").Args {
		if strings.HasPrefix(manager, "--node-monitor-grace-period") {
			t.Errorf("a lost node is found late: %s", manager)
		}
	}
	if args := program(t, p, "kwok").Args; !slices.Contains(args, "--node-lease-duration-seconds=40") {
		t.Errorf("simulated nodes send fewer heartbeats than the node controller expects: %q", args)
	}
}

func TestOnlyASimulatedClusterHasSeveralNodesForThePlatform(t *testing.T) {
	for _, c := range []Config{{PlatformNodes: 2}, {PlatformNodes: 5, Mode: Simulated}, {PlatformNodes: -1, Mode: Simulated}} {
		_, err := New(c, nil)
		wantSentence(t, err, "nodes for the platform, but at most")
	}
}

// The mode decides what is built, and thus how much space is needed.
func TestASimulatedClusterNeedsFewerComponents(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := simulated(t)
	var names []string
	for _, component := range c.Components(versions) {
		names = append(names, component.Name)
	}
	want := []string{"kubernetes", "etcd", "kwok"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// Simulated nodes accept all pods; the first node accepts only the platform's.
func TestSimulatedNodesRunAllPodsOfASimulatedCluster(t *testing.T) {
	c := simulated(t)
	api := fake.NewClientBuilder().Build()
	c.config.SimulatedNodes = 30
	for range 2 {
		if err := c.addSimulatedNodes(t.Context(), api); err != nil {
			t.Fatal(err)
		}
	}
	nodes := &corev1.NodeList{}
	if err := api.List(t.Context(), nodes, client.MatchingLabels{simulatedNodeLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 30 {
		t.Errorf("there are %d nodes", len(nodes.Items))
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			t.Errorf("%s has the taints %v", node.Name, node.Spec.Taints)
		}
	}
}

func TestARunningClusterKeepsItsMode(t *testing.T) {
	c := simulated(t)
	pretendRunning(t, c) // with a keeper.json without a mode
	if c.Mode() != Real {
		t.Errorf("its mode is %s", c.Mode())
	}
	wantSentence(t, c.RunInstead(nil), "runs containers; load images")
	c.asked.Mode = Simulated
	wantSentence(t, c.Up(t.Context()), "runs with --mode=real, not simulated", "localcluster down")
	wantSentence(t, c.Preflight(t.Context()), "runs with --mode=real, not simulated")
}

func TestASimulatedClusterRunsProgramsInsteadOfImages(t *testing.T) {
	c := simulated(t)
	wantSentence(t, c.RunInstead(nil), "is not running")
	pretendRunning(t, c)
	var keeper plan.Keeper
	if err := plan.Read(c.Dir(), plan.KeeperFile, &keeper); err != nil {
		t.Fatal(err)
	}
	keeper.Mode = string(Simulated)
	if err := plan.Write(c.Dir(), plan.KeeperFile, keeper); err != nil {
		t.Fatal(err)
	}
	wantSentence(t, c.LoadImages(t.Context(), filepath.Join(c.Dir(), "x.tar")), "is simulated and runs no images", "--mode=real")
	want := map[string]plan.Image{"example.org/a:1": {File: "/cache/a", Path: "/manager"}}
	if err := c.RunInstead(want); err != nil {
		t.Fatal(err)
	}
	var got map[string]plan.Image
	if err := plan.Read(c.Dir(), plan.ImagesFile, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
