// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mlbatch/mlbatch/controller/internal/config"
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

// A Lease that is not released keeps the next controller waiting, and a leader without one must not write.
func TestALeaderHoldsALeaseAndWritesThroughItsFence(t *testing.T) {
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
