// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/quotawatch"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// site is the cluster, with the clients that look at it.
type site struct {
	*testing.T
	platform.Site
	admin client.WithWatch
	alice client.Client        // a member of both teams
	logs  kubernetes.Interface // the administrator's, for logs
	quota *quotawatch.Watch
	// next is the version to upgrade to.
	next version
}

// keepVariable keeps the cluster for debugging.
const keepVariable = "MLBATCH_E2E_KEEP"

func newSite(t *testing.T) *site {
	t.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(cmp.Or(os.Getenv("UPGRADE_PORT"), "26591"))
	if err != nil {
		t.Fatal("UPGRADE_PORT has to be a port: ", err)
	}
	s := &site{T: t, Site: platform.Site{Checkout: checkout, Progress: os.Stderr, EveryPart: true, Values: []string{platformValues}}}
	s.Cluster, err = localcluster.New(localcluster.Config{Name: "upgrade", Port: port, Checkout: checkout}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// up cleans up after an earlier run, creates the cluster, and removes it after the test.
func (s *site) up() {
	s.Helper()
	s.must(s.Cluster.Down())
	others, err := localcluster.Leaks(s.Cluster.Config())
	s.must(err)
	s.Cleanup(func() {
		if os.Getenv(keepVariable) != "" {
			s.Logf("kept: export KUBECONFIG=%s", s.Cluster.KubeconfigPath())
			return
		}
		s.must(s.Cluster.Down())
		leaks, err := localcluster.Leaks(s.Cluster.Config())
		s.must(err)
		if leaks = slices.DeleteFunc(leaks, func(l string) bool { return slices.Contains(others, l) }); len(leaks) > 0 {
			s.Errorf("the cluster left behind: %q", leaks)
		}
	})
	s.must(s.Cluster.Up(s.Context()))
	s.connect()
}

func (s *site) connect() {
	s.Helper()
	config, err := s.Cluster.RESTConfig()
	s.must(err)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	s.must(workload.AddToScheme(clientgoscheme.Scheme))
	s.must(kueue.AddToScheme(clientgoscheme.Scheme))
	s.admin, err = client.NewWithWatch(config, client.Options{})
	s.must(err)
	s.logs, err = kubernetes.NewForConfig(config)
	s.must(err)
	member := rest.CopyConfig(config)
	member.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:authenticated"}}
	s.alice, err = client.New(member, client.Options{})
	s.must(err)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// timed prints how long a step took.
func (s *site) timed(what string, step func()) {
	s.Helper()
	begin := time.Now()
	step()
	fmt.Fprintf(os.Stderr, "-- %s: %s\n", what, time.Since(begin).Round(100*time.Millisecond))
}

// alsoCalled gives images in the cluster a second name.
func (s *site) alsoCalled(names map[string]string) {
	s.Helper()
	for old, name := range names {
		sandbox.TagImage(s.T, s.Cluster, old, name)
	}
}
