// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Manage runs a whole controller, with caches, queue and workers, until stop is called or the test ends. Setup adds it
// to the manager. The options are those in which controllers differ: scheme, caches, and a mapper if it is to be
// another than that of the server.
func (s *Server) Manage(t testing.TB, options ctrl.Options, setup func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	registry := ctrlmetrics.Registry
	ctrlmetrics.Registry = prometheus.NewRegistry() // metrics can be registered only once, now or when a kind is served
	t.Cleanup(func() { ctrlmetrics.Registry = registry })
	// A manager takes logr.Discard() for none, and its loggers of each reconcile would then be kept for a later one.
	options.Logger = logr.New(ctrllog.NullLogSink{})
	options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: "0"}, "0"
	options.Controller = ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}
	if options.MapperProvider == nil {
		options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return s.Mapper(), nil }
	}
	mgr, err := ctrl.NewManager(s.Config(), options)
	if err == nil {
		err = setup(mgr)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}
