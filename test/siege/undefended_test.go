// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// undefended expects that an attack succeeds without a policy. A siege that never finds anything proves nothing.
func (w *world) undefended(t *testing.T, policy string) {
	w.scope(t, policy, `{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"nowhere"}}}}}`)
	defer w.scope(t, policy, `{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":null}}}}}`)
	s := w.begin(*seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { s.watch(ctx) })
	began := time.Now()
	s.attackUntilFound(ctx)
	f, took, sent := s.first(), time.Since(began), s.sent
	if f != nil {
		s.shrink(ctx, *f)
	}
	stop()
	all.Wait()
	w.sweep(t)
	if f == nil {
		s.report(t)
		t.Fatalf("%d calls found nothing without the policy %s", s.sent, policy)
	}
	t.Logf("without the policy %s, %d calls within %s found it: %s\n%s", policy, sent, took.Round(time.Second), *f, s.scripts[*f])
}

// attackUntilFound attacks in all lanes. What is left afterwards may be a finding, too.
func (s *siege) attackUntilFound(ctx context.Context) {
	attacking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for s.first() == nil && attacking.Err() == nil {
			time.Sleep(time.Second / 5)
		}
		stop()
	}()
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() { s.attack(attacking, *most) })
	}
	all.Wait()
	if s.first() == nil {
		s.settle(ctx)
	}
}

func (s *siege) first() *referee.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.findings) == 0 {
		return nil
	}
	return &s.findings[0]
}

// scope changes where a policy is in force. No answer says when the API server has read that, and what it finds with a
// policy that is still away would be put down to the next one.
func (w *world) scope(t *testing.T, policy, patch string) {
	t.Helper()
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	binding.Name = "mlbatch-" + policy
	if err := w.admin.Patch(context.WithoutCancel(t.Context()), binding, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
}
