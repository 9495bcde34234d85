// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// mostTrips is how many calls of Kueue's webhooks and ours the AppWrapper of a queued Job costs from its submission to
// its end. Its Workload costs four to seven more: how often Kueue writes it depends on what it has seen by then.
const mostTrips = 7

// idle are webhooks of Kueue for kinds that it does not manage here. Each call would cost time and do nothing.
var idle = []string{"mjob.kb.io", "vjob.kb.io", "mpod.kb.io", "vpod.kb.io"}

// A queued Job costs few calls of webhooks, and none that does nothing. What others do at the same time counts, too:
// the cheapest of three lives tells.
func TestAQueuedLifeMakesFewWebhookCalls(t *testing.T) {
	testenv.Test(t, features.New("trips").Assess("they are counted", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		least := 0
		for _, name := range []string{"first", "second", "third"} {
			before := s.trips(ctx)
			aw := wrapped(name, job(name, "100m", "exit", "0"), nil)
			s.create(ctx, aw)
			s.untilPhase(ctx, aw, workload.AppWrapperSucceeded)
			calls, sum := s.trips(ctx), 0
			for webhook, n := range calls {
				if calls[webhook] = n - before[webhook]; calls[webhook] == 0 {
					delete(calls, webhook)
				}
				if strings.Contains(webhook, "appwrapper") {
					sum += calls[webhook]
				}
			}
			t.Logf("the %s life: %d calls for the AppWrapper: %v", name, sum, calls)
			if least == 0 || sum < least {
				least = sum
			}
			if i := slices.IndexFunc(idle, func(webhook string) bool { return calls[webhook] > 0 }); i >= 0 {
				t.Errorf("%s is called, and does nothing: %v", idle[i], slices.Sorted(maps.Keys(calls)))
			}
		}
		if least > mostTrips {
			t.Errorf("%d calls of webhooks for an AppWrapper, more than %d", least, mostTrips)
		}
		return ctx
	}).Feature())
}

// trips are how often the API server has called each webhook.
func (s *story) trips(ctx context.Context) map[string]int {
	s.t.Helper()
	page, err := s.api.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		s.t.Fatal(err)
	}
	calls := map[string]int{}
	for _, m := range families["apiserver_admission_webhook_request_total"].GetMetric() {
		i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "name" })
		calls[m.GetLabel()[i].GetValue()] += int(m.GetCounter().GetValue())
	}
	return calls
}
