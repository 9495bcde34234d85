// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	runs "github.com/mlbatch/mlbatch/controller/internal/run"
	"github.com/mlbatch/mlbatch/controller/internal/runadmission"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// platform is an API server in memory, and our controller with its webhooks, caches, queue and
// workers. The test plays the rest.
type platform struct {
	*testing.T
	api      *fakeapiserver.Server
	webhooks *http.ServeMux
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{T: t, webhooks: http.NewServeMux(), api: fakeapiserver.Start(
		v1alpha1.GroupVersion.WithKind("Run"), v1alpha1.GroupVersion.WithKind("Application"), v1alpha1.GroupVersion.WithKind("DataSet"),
		v1alpha1.GroupVersion.WithKind("RunSizeConfiguration"), v1beta2.GroupVersion.WithKind("AppWrapper"))}
	t.Cleanup(p.api.Stop)
	sizes := runplan.DefaultSizes()
	p.put("RunSizeConfiguration", &sizes)
	p.apply("digits")
	p.start()
	return p
}

// start starts the controller, until the test ends.
func (p *platform) start() {
	p.Helper()
	options, err := managerOptions(config.DefaultRuns())
	if err != nil {
		p.Fatal(err)
	}
	options.Logger, options.HealthProbeBindAddress = logr.Discard(), "0"
	options.Metrics, options.WebhookServer = metricsserver.Options{BindAddress: "0"}, called{p.webhooks}
	options.Controller = ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.api.Mapper(), nil }
	registry := ctrlmetrics.Registry
	ctrlmetrics.Registry = prometheus.NewRegistry() // our metrics can be registered only once
	defer func() { ctrlmetrics.Registry = registry }()
	mgr, err := ctrl.NewManager(p.api.Config(), options)
	if err != nil {
		p.Fatal(err)
	}
	authors := accessreview.NewAuthors(mgr.GetClient())
	if err := errors.Join(runadmission.Setup(mgr, authors), runs.Setup(mgr, runplan.DefaultSettings(), authors, true)); err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	p.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
}

// called is a webhook server that the test calls.
type called struct{ mux *http.ServeMux }

func (called) NeedLeaderElection() bool                  { return false }
func (c called) Register(path string, hook http.Handler) { c.mux.Handle(path, hook) }
func (called) Start(ctx context.Context) error           { <-ctx.Done(); return nil }
func (called) StartedChecker() healthz.Checker           { return healthz.Ping }
func (c called) WebhookMux() *http.ServeMux              { return c.mux }

// admit calls a webhook for a Run that ada creates, and returns the Run after it.
func (p *platform) admit(path string, run []byte) []byte {
	p.Helper()
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Namespace: "blue", UserInfo: authenticationv1.UserInfo{Username: "ada", UID: "u-1"},
		Object: runtime.RawExtension{Raw: run},
	}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	text, err := json.Marshal(review)
	if err != nil {
		p.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(text))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	p.webhooks.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || review.Response == nil || !review.Response.Allowed {
		p.Fatalf("%s says %s: %v", path, answer.Body, err)
	}
	if len(review.Response.Patch) == 0 {
		return run
	}
	patch, err := jsonpatch.DecodePatch(review.Response.Patch)
	if err == nil {
		run, err = patch.Apply(run)
	}
	if err != nil {
		p.Fatal(err)
	}
	return run
}

// submit creates a Run of the Application digits, with something more in its spec.
func (p *platform) submit(name, spec string) {
	p.Helper()
	p.submitOf("digits", name, spec)
}

// submitOf creates a Run of an Application as the API server does.
func (p *platform) submitOf(application, name, spec string) {
	p.Helper()
	text := fmt.Appendf(nil, `{"apiVersion":"codeflare.dev/v1alpha1","kind":"Run","metadata":{"namespace":"blue","name":%q,"generation":1},`+
		`"spec":{"application":{"name":%q},"size":"xs"%s}}`, name, application, spec)
	for _, path := range []string{"/mutate-codeflare-dev-v1alpha1-run", "/validate-codeflare-dev-v1alpha1-run"} {
		text = p.admit(path, text)
	}
	if err := p.api.Put(text); err != nil {
		p.Fatal(err)
	}
}

func (p *platform) apply(application string) {
	p.Helper()
	app := &v1alpha1.Application{}
	app.Name, app.Namespace, app.Generation = application, "blue", 1
	app.Spec.API, app.Spec.Image, app.Spec.Command = v1alpha1.APIShell, "digits:1", "sleep 1"
	p.put("Application", app)
}

func (p *platform) put(kind string, object client.Object) {
	p.Helper()
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	text, err := json.Marshal(object)
	if err == nil {
		err = p.api.Put(text)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// succeeds plays the AppWrapper controller.
func (p *platform) succeeds(run string) {
	p.Helper()
	p.awaitPhase(run, v1alpha1.RunQueued)
	for _, step := range []struct {
		patch string
		then  v1alpha1.RunPhase
	}{
		{`{"status":{"phase":"Resuming"}}`, v1alpha1.RunStarting},
		{`{"status":{"phase":"Running","conditions":[{"type":"PodsReady","status":"True","reason":"X","lastTransitionTime":"2030-01-01T12:00:00Z"}]}}`, v1alpha1.RunRunning},
		{`{"status":{"phase":"Succeeded"}}`, v1alpha1.RunSucceeded},
	} {
		if err := p.api.Patch("appwrappers", keyOf(run), step.patch); err != nil {
			p.Fatal(err)
		}
		p.awaitPhase(run, step.then)
	}
}

func (p *platform) runsAndSucceeds(run string) {
	p.Helper()
	p.submit(run, "")
	p.succeeds(run)
	p.delete("runs", run)
}

// waitsAndSucceeds: the Application comes after the Run. It has the Run's name: a late cache may
// still have one that was deleted.
func (p *platform) waitsAndSucceeds(run string) {
	p.Helper()
	p.submitOf(run, run, "")
	p.awaitPhase(run, v1alpha1.RunPending)
	p.apply(run)
	p.succeeds(run)
	p.delete("runs", run)
}

func (p *platform) delete(resource, name string) { p.api.Delete(resource, keyOf(name)) }

// awaitPhase waits until a Run was in a phase, or has gone after it.
func (p *platform) awaitPhase(run string, phase v1alpha1.RunPhase) {
	p.Helper()
	p.await(fmt.Sprintf("%s is %s", run, phase), func() bool {
		o := p.api.Get("runs", keyOf(run))
		if o == nil {
			return phase.Terminal()
		}
		var status v1alpha1.RunStatus
		_ = json.Unmarshal(o.Fields["status"], &status) // it may be missing
		return status.Phase == phase
	})
}

func (p *platform) await(what string, holds func() bool) {
	p.Helper()
	for end := time.Now().Add(patience.For(time.Minute)); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("not within a minute of a quiet machine: %s; the requests were\n%s", what, strings.Join(p.api.Requests(), "\n"))
		}
	}
}

// quiet returns the requests since it was called last, once there are so many events among them, which
// are sent in the background, and there was no other for a while.
func (p *platform) quiet(events int) []string {
	p.Helper()
	var all []string
	quiet := 0
	p.await("the events are sent", func() bool {
		news := p.api.Requests()
		all = append(all, news...)
		if quiet++; len(news) > 0 {
			quiet = 0
		}
		return quiet >= 50 && fakeapiserver.Count(all)["POST events"] >= events
	})
	return all
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "blue", Name: name}
}
