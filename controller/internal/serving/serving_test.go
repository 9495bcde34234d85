// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/election"
)

// The profile of the memory would take more than a megabyte of it.
func TestAProgramKeepsNoProfileOfItsMemory(t *testing.T) {
	before := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = before }()
	rate := -1
	Main("1.2.3", func(string, logr.Logger) error {
		rate = runtime.MemProfileRate
		return nil
	})
	if rate != 0 {
		t.Errorf("one of so many bytes is profiled: %d", rate)
	}
}

// If the Lease is not released, the next controller waits until it expires.
func TestTheLeaseIsReleasedAtTheEnd(t *testing.T) {
	options := ctrl.Options{}
	elect(&options, &election.Lock{}, "lease", 15*time.Second)
	if !options.LeaderElection || !options.LeaderElectionReleaseOnCancel {
		t.Errorf("it elects a leader: %t; it releases the Lease at the end: %t", options.LeaderElection, options.LeaderElectionReleaseOnCancel)
	}
	if options.LeaderElectionID != "lease" {
		t.Errorf("metrics call the Lease %q", options.LeaderElectionID)
	}
	if d, r, p := *options.LeaseDuration, *options.RenewDeadline, *options.RetryPeriod; d != 15*time.Second || r != 10*time.Second || p != 2*time.Second {
		t.Errorf("a Lease of %s is renewed every %s, and given up after %s", d, p, r)
	}
}

// A leader without a Lease must not write.
func TestALeaderWritesThroughItsFence(t *testing.T) {
	for _, elects := range []bool{true, false} {
		c := config.Default().ControllerManager
		c.LeaderElection = elects
		options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		}}
		mgr, err := Manager(&rest.Config{Host: "127.0.0.1:1"}, options, c, "mlbatch-system", "lease")
		if err != nil {
			t.Fatal(err)
		}
		if got := mgr.GetConfig().WrapTransport != nil; got != elects {
			t.Errorf("with leader election %t, its requests are fenced: %t", elects, got)
		}
	}
}
