// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// stopped returns a cluster that does not run, in its own folders.
func stopped(t *testing.T) *Cluster {
	t.Helper()
	home := t.TempDir()
	return New(localcluster.Config{Name: "unit-p", StateDir: filepath.Join(home, "state"), CacheDir: filepath.Join(home, "cache")}, io.Discard)
}

// running records this process as the keeper of a cluster on port 4711.
func running(t *testing.T) (c *Cluster, dir string) {
	t.Helper()
	c = stopped(t)
	dir = folder(t, c)
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	keeper := plan.Keeper{PID: os.Getpid(), Boot: strings.TrimSpace(string(boot)), StartTime: strings.Fields(fields)[19], Port: 4711}
	if err := plan.Write(dir, plan.KeeperFile, keeper); err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(dir, plan.StatusFile, plan.Status{Ready: true}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "kubeconfig"), `{apiVersion: v1, kind: Config, current-context: unit-p,
clusters: [{name: unit-p, cluster: {server: "https://127.0.0.1:4711"}}],
contexts: [{name: unit-p, context: {cluster: unit-p, user: ""}}]}`)
	return c, dir
}

// folder creates the folder of a cluster.
func folder(t *testing.T, c *Cluster) string {
	t.Helper()
	dir := filepath.Join(c.config.StateDir, c.config.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheFrameworkFindsARunningCluster(t *testing.T) {
	c, dir := running(t)
	generated, err := c.GenerateKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.GetKubeconfig(), generated, c.GetKubectlContext(), c.KubernetesRestConfig().Host}
	path := filepath.Join(dir, "kubeconfig")
	if diff := cmp.Diff([]string{path, path, "unit-p", "https://127.0.0.1:4711"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAStoppedClusterHasNoKubeconfig(t *testing.T) {
	c := stopped(t)
	if _, err := c.GenerateKubeconfig(); err == nil || !strings.Contains(err.Error(), `cluster "unit-p" is not running`) {
		t.Errorf("got %v", err)
	}
	if got := c.GetKubeconfig(); got != "" {
		t.Errorf("its kubeconfig is %s", got)
	}
	if got := c.KubernetesRestConfig(); got != nil {
		t.Errorf("it is at %s", got.Host)
	}
	if err := c.LoadImageArchive(t.Context(), "a.tar"); err == nil || !strings.Contains(err.Error(), `cluster "unit-p" is not running`) {
		t.Errorf("got %v", err)
	}
}

func TestCreateRefusesUnsupportedOptions(t *testing.T) {
	config := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, config, "prot: 1")
	for name, c := range map[string]struct {
		create func(c *Cluster) (string, error)
		want   string
	}{
		"an unknown Kubernetes":        {func(c *Cluster) (string, error) { return c.WithVersion("v1.0.0").Create(t.Context()) }, "no Kubernetes 1.0: choose one of "},
		"an unknown patch":             {func(c *Cluster) (string, error) { return c.WithVersion("v1.30.0").Create(t.Context()) }, "not v1.30.0"},
		"arguments of another tool":    {func(c *Cluster) (string, error) { return c.Create(t.Context(), "--wait") }, `"--wait"`},
		"a name that no node can have": {func(c *Cluster) (string, error) { return c.WithName("Blue").Create(t.Context()) }, `cluster name "Blue"`},
		"a configuration that is absent": {func(c *Cluster) (string, error) {
			return c.CreateWithConfig(t.Context(), config+"x")
		}, "cannot read the configuration of a local cluster"},
		"a configuration with a misspelt field": {func(c *Cluster) (string, error) {
			return c.CreateWithConfig(t.Context(), config)
		}, `unknown field "prot"`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := running(t)
			if _, err := c.create(cluster); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// Up reports how the running cluster differs from the requested one. If it does not differ, Up
// waits for its programs until it is interrupted.
func TestCreateStartsTheConfiguredCluster(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, config, "{port: 4712, simulatedNodes: -1}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reached := context.Canceled.Error()
	for name, c := range map[string]struct {
		create func(c *Cluster) (string, error)
		want   string
	}{
		"as New says": {func(c *Cluster) (string, error) { return c.SetDefaults().Create(ctx) }, reached},
		"the one version": {func(c *Cluster) (string, error) {
			return c.WithVersion(versions.LocalCluster.Kubernetes).Create(ctx)
		}, reached},
		"another version":   {func(c *Cluster) (string, error) { return c.WithVersion("v1.30.14").Create(ctx) }, "runs with --kubernetes=1.34, not 1.30"},
		"as a file says":    {func(c *Cluster) (string, error) { return c.CreateWithConfig(ctx, config) }, "runs with --port=4711, not 4712"},
		"as an option says": {func(c *Cluster) (string, error) { return c.WithOpts(port(4713)).Create(ctx) }, "runs with --port=4711, not 4713"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, dir := running(t)
			if err := os.Remove(filepath.Join(dir, plan.StatusFile)); err != nil {
				t.Fatal(err)
			}
			path, err := c.create(cluster)
			if err == nil || !strings.Contains(err.Error(), c.want) || path != filepath.Join(dir, "kubeconfig") {
				t.Errorf("got %s, %v, want %s", path, err, c.want)
			}
		})
	}
}

func port(p int) support.ClusterOpts {
	return func(c support.E2EClusterProvider) { c.(*Cluster).config.Port = p }
}

func TestTheCheckoutCanBeGivenAsAPath(t *testing.T) {
	c := stopped(t)
	c.WithPath("/somewhere")
	if c.config.Checkout != "/somewhere" {
		t.Errorf("the checkout is %q", c.config.Checkout)
	}
}

func TestWaitForControlPlane(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/readyz" || asked < 3 {
			http.Error(w, "etcd is not ready", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	client, err := klient.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := stopped(t).WaitForControlPlane(t.Context(), client); err != nil || asked != 3 {
		t.Errorf("asked %d times, then %v", asked, err)
	}
}

func TestImagesAreOnlyLoadedFromArchives(t *testing.T) {
	c, _ := running(t)
	if err := c.LoadImage(t.Context(), "busybox:1"); err == nil || !strings.Contains(err.Error(), "LoadImageArchive") {
		t.Errorf("got %v", err)
	}
	if err := c.LoadImageArchive(t.Context(), "/absent.tar"); err == nil || !strings.Contains(err.Error(), "cannot load the image archive /absent.tar") {
		t.Errorf("got %v", err)
	}
}

func TestLogsOfProgramsAndPodsAreExported(t *testing.T) {
	for name, logs := range map[string][]string{
		"a cluster that ran":                  {"log/etcd.log", "node/log-pods/ns_pod_uid/main/0.log"},
		"a cluster that came to no pod":       {"log/keeper.log"},
		"a cluster of which there is nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := stopped(t)
			dir, dest := folder(t, c), filepath.Join(t.TempDir(), "saved")
			for _, log := range logs {
				write(t, filepath.Join(dir, log), log)
			}
			if err := c.ExportLogs(t.Context(), dest); err != nil {
				t.Fatal(err)
			}
			for _, log := range logs {
				saved, err := os.ReadFile(filepath.Join(dest, strings.TrimPrefix(log, "node/")))
				if err != nil || string(saved) != log {
					t.Errorf("%s is %q, %v", log, saved, err)
				}
			}
		})
	}
}

func TestDestroyLeavesNothing(t *testing.T) {
	c := stopped(t)
	dir := folder(t, c)
	write(t, filepath.Join(dir, "plan.json"), "{}")
	if err := c.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder is there: %v", err)
	}
}
