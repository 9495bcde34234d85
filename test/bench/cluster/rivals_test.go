// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/test/upstream"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// configuration is one file for both controllers. Everything else is as it is by default.
const configuration = `appwrapper:
  autopilot: {injectAntiAffinities: false, monitorNodes: false}
controllerManager:
  metrics: {bindAddress: "0"}
  health: {bindAddress: "localhost:0"}
  leaderElection: true
webhooksEnabled: false
`

// ourNamespace is where our controller has its Lease.
const ourNamespace = "mlbatch-system"

// rivals are the controllers that are compared, each with an account of its own: the audit log tells
// who asks.
type rivals struct {
	*machine
	dir   string
	lives int // to see that a controller works
	// commands start the controllers, by name.
	commands map[string]func() *exec.Cmd
}

func newRivals(m *machine, cluster *localcluster.Cluster) *rivals {
	m.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		m.Fatal(err)
	}
	r := &rivals{machine: m, dir: m.TempDir()}
	theirs, err := upstream.Build(m.Context(), checkout, os.Stderr)
	if err != nil {
		m.Fatal(err)
	}
	ours, file := filepath.Join(r.dir, "controller"), filepath.Join(r.dir, "config.yaml")
	build := exec.CommandContext(m.Context(), "go", "build", "-o", ours, "./controller")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		m.Fatalf("cannot build our controller: %v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		m.Fatal(err)
	}
	r.define(checkout)
	theirAccess, ourAccess := r.access(cluster, upstream.Namespace, bench.Upstream), r.access(cluster, ourNamespace, bench.OurOwn)
	sandbox.Create(m.T, m.admin, upstream.Configuration(configuration))
	r.commands = map[string]func() *exec.Cmd{
		bench.Upstream: func() *exec.Cmd { return upstream.Command(theirs, theirAccess) },
		bench.OurOwn: func() *exec.Cmd {
			cmd := exec.Command(ours, "--config="+file, "--kubeconfig="+ourAccess)
			cmd.Env = append(os.Environ(), "NAMESPACE="+ourNamespace)
			return cmd
		},
	}
	return r
}

// define creates our definition, which has all fields of 1.2.2.
func (r *rivals) define(checkout string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml"))
	definition := &unstructured.Unstructured{}
	if err == nil {
		err = yaml.Unmarshal(text, &definition.Object)
	}
	if err != nil {
		r.Fatal(err)
	}
	sandbox.Create(r.T, r.admin, definition)
	err = sandbox.Within(r.Context(), limit, func() error { return r.admin.List(r.Context(), &workload.AppWrapperList{}) })
	if err != nil {
		r.Fatalf("AppWrappers are not served: %v", err)
	}
}

// access creates an account that may do everything, and returns its kubeconfig.
func (r *rivals) access(cluster *localcluster.Cluster, namespace, name string) string {
	r.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	sandbox.Create(r.T, r.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	sandbox.Create(r.T, r.admin, account)
	sandbox.Create(r.T, r.admin, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	})
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}}
	if err := r.admin.SubResource("token").Create(r.Context(), account, request); err != nil {
		r.Fatalf("cannot get a token for %s: %v", name, err)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		r.Fatal(err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	kubeconfig.Contexts["x"], kubeconfig.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	file := filepath.Join(r.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		r.Fatal(err)
	}
	return file
}

// start starts a controller, and waits until it works. The result ends it. Bare Jobs need none.
func (r *rivals) start(by string) (end func()) {
	r.Helper()
	command, is := r.commands[by]
	if !is {
		return func() {}
	}
	log, err := os.CreateTemp(r.dir, by+"-*.log")
	if err != nil {
		r.Fatal(err)
	}
	cmd := command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.processes.beside = map[string]int{by: cmd.Process.Pid}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended, r.processes.beside = true, nil
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()                          // the error is expected after a signal
		log.Close()
		if text, err := os.ReadFile(log.Name()); r.Failed() && err == nil {
			r.Logf("%s\n%s", log.Name(), text)
		}
	}
	r.Cleanup(end)
	r.lives++
	r.run(bench.Scenario{Name: fmt.Sprintf("warm-up-%d", r.lives), Suspended: true, Number: 10, Pods: 1, RunFor: metav1.Duration{Duration: time.Second}})
	return end
}
