// SPDX-License-Identifier: Apache-2.0

package incumbent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestWorkBeginsWhenNobodyElseIsAtWork(t *testing.T) {
	answers := []func() (string, error){
		func() (string, error) { return "the old one", nil },
		func() (string, error) { return "the old one", nil },
		func() (string, error) { return "", errors.New("the API server is away") },
		func() (string, error) { return "", nil },
	}
	asked, begun := 0, 0
	var log strings.Builder
	ready := make(chan struct{})
	close(ready)
	c := &candidate{
		ready: ready, interval: time.Nanosecond,
		begin: func() error { begun++; return nil },
		log:   funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{}),
		signs: []sign{
			func(context.Context) (string, error) { return "", nil },
			func(context.Context) (string, error) {
				if begun > 0 {
					t.Error("it has begun too early")
				}
				asked++
				return answers[asked-1]()
			},
		},
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != len(answers) || begun != 1 {
		t.Errorf("it asked %d times and began %d times", asked, begun)
	}
	if got := log.String(); strings.Count(got, "the old one") != 1 || strings.Count(got, "the API server is away") != 1 {
		t.Errorf("the log is\n%s", got)
	}
}

func TestNothingBeginsInAProcessThatEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ready := range map[string]chan struct{}{"before the webhooks are served": make(chan struct{}), "while it waits": closed()} {
		t.Run(name, func(t *testing.T) {
			c := &candidate{
				ready: ready, interval: time.Hour, log: funcr.New(func(string, string) {}, funcr.Options{}),
				begin: func() error { return errors.New("it has begun") },
				signs: []sign{func(context.Context) (string, error) { return "the old one", nil }},
			}
			if err := c.Start(ended); err != nil {
				t.Error(err)
			}
		})
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Two clocks are in play: that of the holder, who writes when the Lease was renewed, and
// ours. The second look is 20 seconds after the first, and a Lease lasts 15.
func TestWhoHoldsALease(t *testing.T) {
	const id = "f134c674.codeflare.dev"
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	lease := func(namespace, holder string, renewed time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: start.Add(renewed)},
			},
		}
	}
	const other = "old_1, which holds the Lease " + id + " in namespace appwrapper-system"
	type look = []coordinationv1.Lease
	for name, tc := range map[string]struct {
		first, second look
		want          [2]string
	}{
		"nobody":                         {},
		"we ourselves":                   {first: look{lease("own", "us", 0)}, second: look{lease("own", "us", 20*time.Second)}},
		"one that goes on":               {look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "old_1", 18*time.Second)}, [2]string{other, other}},
		"one whose clock is behind ours": {look{lease("appwrapper-system", "old_1", -time.Minute)}, look{lease("appwrapper-system", "old_1", -40*time.Second)}, [2]string{other, other}},
		"one that has been killed":       {look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "old_1", 0)}, [2]string{other, ""}},
		"one that has given it back":     {look{lease("appwrapper-system", "old_1", 0)}, look{lease("appwrapper-system", "", time.Second)}, [2]string{other, ""}},
		"one that was removed":           {look{lease("appwrapper-system", "old_1", 0)}, nil, [2]string{other, ""}},
		"one that ended last week":       {look{lease("appwrapper-system", "old_1", -7*24*time.Hour)}, nil, [2]string{}},
		"one that never renewed it":      {look{{ObjectMeta: metav1.ObjectMeta{Namespace: "appwrapper-system", Name: id}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("old_1")}}}, nil, [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			l := &leases{own: "own", now: func() time.Time { return now }, seen: map[types.NamespacedName]sighting{}}
			for i, look := range []look{tc.first, tc.second} {
				now = start.Add(time.Duration(i) * 20 * time.Second)
				l.list = func(context.Context) ([]coordinationv1.Lease, error) { return look, nil }
				if got, err := l.holder(t.Context()); err != nil || got != tc.want[i] {
					t.Errorf("look %d: %q, %v; want %q", i+1, got, err, tc.want[i])
				}
			}
		})
	}
}

func TestWhoAnswersForAppWrappers(t *testing.T) {
	hook := func(namespace, service, group, resource string) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, Resources: []string{resource},
			}}},
		}
	}
	configuration := func(name string, hooks ...admissionregistrationv1.MutatingWebhook) admissionregistrationv1.MutatingWebhookConfiguration {
		return admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
	}
	const workload = "workload.codeflare.dev"
	kueue := configuration("kueue", hook("kueue-system", "kueue-webhook", "kueue.x-k8s.io", "workloads"), hook("kueue-system", "kueue-webhook", workload, "appwrappers"))
	ours := configuration("ours", hook("own", "appwrapper-webhook-service", workload, "appwrappers"))
	byURL := configuration("url", hook("", "", workload, "appwrappers"))
	byURL.Webhooks[0].ClientConfig.Service = nil
	rhoai := configuration("codeflare-operator", hook("rhoai", "codeflare", "ray.io", "rayclusters"), hook("rhoai", "codeflare", workload, "appwrappers"))
	for name, tc := range map[string]struct {
		all  []admissionregistrationv1.MutatingWebhookConfiguration
		pods string // namespace/service that has one
		want string
	}{
		"only we, and Kueue": {all: []admissionregistrationv1.MutatingWebhookConfiguration{kueue, ours}, pods: "kueue-system/kueue-webhook own/appwrapper-webhook-service"},
		"an operator with an AppWrapper controller inside": {
			all: []admissionregistrationv1.MutatingWebhookConfiguration{kueue, ours, rhoai}, pods: "kueue-system/kueue-webhook rhoai/codeflare",
			want: "pod p in namespace rhoai, which MutatingWebhookConfiguration codeflare-operator calls"},
		"what an operator has left behind":  {all: []admissionregistrationv1.MutatingWebhookConfiguration{rhoai}},
		"something that is not of the kind": {all: []admissionregistrationv1.MutatingWebhookConfiguration{byURL}, pods: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &webhooks{
				own: types.NamespacedName{Namespace: "own", Name: "appwrapper-webhook-service"},
				list: func(context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error) {
					return tc.all, nil
				},
				pod: func(_ context.Context, service types.NamespacedName) (string, error) {
					if strings.Contains(tc.pods, service.String()) {
						return "p", nil
					}
					return "", nil
				},
			}
			if got, err := w.server(t.Context()); err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
