// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/mlbatch/mlbatch/test/bench"
)

// sampleOf is processor time of a stack, from its leaf to its root.
func sampleOf(milliseconds int64, stack ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{1, milliseconds * 1e6}}
	for _, function := range stack {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: function}}}})
	}
	return s
}

const handlers = "k8s.io/apiserver/pkg/endpoints/handlers"

func TestEachSampleIsOfOneThingThatTheAPIServerDid(t *testing.T) {
	inlined := sampleOf(10, "runtime.mallocgc", "k8s.io/apiserver/pkg/endpoints.restfulCreateResource.func1")
	inlined.Location[0].Line = append(inlined.Location[0].Line, profile.Line{Function: &profile.Function{Name: handlers + ".CreateResource.createHandler.func1"}})
	p := &profile.Profile{DurationNanos: 2e9, Sample: []*profile.Sample{
		sampleOf(400, "encoding/json.Marshal", handlers+".(*patcher).patchResource.func1", handlers+"/finisher.finishRequest.func1"),
		sampleOf(10, "net/http.(*Request).Context", handlers+".PatchResource.func1", "k8s.io/apiserver/pkg/server/filters.(*timeoutHandler).ServeHTTP.func1"),
		sampleOf(20, "runtime.gcAssistAlloc", "runtime.mallocgc", handlers+".(*jsonPatcher).applyPatchToCurrentObject"),
		sampleOf(30, "runtime.gcDrain", "runtime.gcBgMarkWorker"),
		sampleOf(40, "crypto/tls.(*Conn).Write", "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating.(*mutatingDispatcher).Dispatch", handlers+".createHandler.func1"),
		sampleOf(50, "github.com/google/cel-go/cel.Eval", "k8s.io/apiserver/pkg/admission/plugin/policy/validating.(*dispatcher).Dispatch", handlers+".createHandler.func1"),
		inlined,
		sampleOf(60, "x", handlers+".DeleteResource.func1"),
		sampleOf(70, "x", handlers+".getResourceHandler.func1"),
		sampleOf(75, "x", handlers+".UpdateResource.func1"),
		sampleOf(80, "x", handlers+".(*WatchServer).HandleHTTP", handlers+".ListResource.func1"),
		sampleOf(5, "x", "k8s.io/apiserver/pkg/storage/cacher.(*Cacher).dispatchEvents"),
		sampleOf(90, "x", "google.golang.org/grpc/internal/transport.(*http2Client).reader"),
		sampleOf(15, "os.(*File).Write", "k8s.io/apiserver/plugin/pkg/audit/log.(*backend).ProcessEvents", "net/http.HandlerFunc.ServeHTTP"),
		sampleOf(25, "x", "golang.org/x/net/http2.(*serverConn).serve"),
		sampleOf(8, "runtime.futex", "runtime.findRunnable", "runtime.schedule", "runtime.mcall"),
		sampleOf(12, "runtime.memmove", "k8s.io/client-go/tools/cache.(*Reflector).Run"),
	}}
	got := bench.ProfileOf("burst", p)
	want := map[string]float64{
		"PATCH": 0.41, "collecting garbage": 0.05, "asking webhooks": 0.04, "policies in CEL": 0.05, "POST": 0.01, "DELETE": 0.06,
		"GET and LIST": 0.07, "PUT": 0.075, "watches": 0.085, "talking to etcd": 0.09, "writing the audit log": 0.015,
		"HTTP, TLS, authentication and queues": 0.025, "switching between goroutines": 0.008, "everything else": 0.012,
	}
	if diff := cmp.Diff(bench.Profile{Scenario: "burst", Seconds: 2, Cores: 0.5, Shares: want}, got); diff != "" {
		t.Error(diff)
	}
}
