// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/preemptionpause"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

// start runs the whole controller with an API server that serves these kinds, until the test ends.
func start(t *testing.T, pause preemptionpause.Pause, kinds ...schema.GroupVersionKind) *fakeapiserver.Server {
	t.Helper()
	registry := ctrlmetrics.Registry
	ctrlmetrics.Registry = prometheus.NewRegistry() // our metrics can be registered only once
	t.Cleanup(func() { ctrlmetrics.Registry = registry })
	api := fakeapiserver.Start(kinds...)
	t.Cleanup(api.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(api.Config(), ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(),
		MapperProvider:         func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.Mapper(), nil },
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Setup(mgr, pause); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-mgr.Elected()
	return api
}

func TestTheControllerPausesWork(t *testing.T) {
	api := start(t, preemptionpause.Default(), kueue.SchemeGroupVersion.WithKind("Workload"))
	w := newCluster(t, 3).stored()
	w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	now := metav1.Now()
	w.Status.Conditions[0].LastTransitionTime = now
	text, err := json.Marshal(w)
	if err == nil {
		err = api.Put(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	var status kueue.WorkloadStatus
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := json.Unmarshal(api.Get("workloads", key).Fields["status"], &status)
		return status.RequeueState != nil, err
	})
	if err != nil || status.RequeueState.RequeueAt.Unix() != now.Add(time.Minute).Unix() {
		t.Errorf("%+v, %v; the requests were %v", status.RequeueState, err, api.Requests())
	}
}

// The manager runs on without Kueue, and with the pause disabled nothing is watched.
func TestTheControllerRunsWithoutKueue(t *testing.T) {
	start(t, preemptionpause.Default())
	api := start(t, preemptionpause.Pause{}, kueue.SchemeGroupVersion.WithKind("Workload"))
	if requests := api.Requests(); slices.ContainsFunc(requests, func(r string) bool { return r != "" }) {
		t.Errorf("with after: 0, there are requests: %v", requests)
	}
}
