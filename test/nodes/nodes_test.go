// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestProductionSurvivesTheLossOfAnyNode(t *testing.T) {
	s := newSite(t)
	s.submit("steady")
	s.Await("work runs", func() error { return s.runs("steady") })
	before := s.podsOf("steady")
	nodes := s.nodes()
	if len(nodes) != 3 {
		t.Fatalf("the nodes of the platform are %q", nodes)
	}
	for _, node := range nodes {
		begin := time.Now()
		s.lose(node, func(what string, holds func() error) {
			t.Helper()
			s.Await(what, holds)
			t.Logf("%s: %s after %s", node, what, time.Since(begin).Round(time.Second/10))
		}, func() { begin = time.Now() })
		if diff := cmp.Diff(before, s.podsOf("steady")); diff != "" {
			t.Errorf("pods of running work have changed while %s was lost: %s", node, diff)
		}
	}
}

// lose switches a node off until the platform is whole without it, and on again.
func (s *site) lose(node string, await func(what string, holds func() error), begins func()) {
	s.Helper()
	await("all parts are whole, on nodes apart", func() error { return s.whole("") })
	await("each part has a leader", func() error { return s.ledElsewhere("") })
	asks := s.keepAsking()
	begins()
	s.switchOff(node)
	name := "after-" + node
	await("new work is admitted", func() error { return s.trySubmit(name) })
	await("another replica leads each part", func() error { return s.ledElsewhere(node) })
	await("new work runs", func() error { return s.runs(name) })
	await("its node is NotReady", func() error { return s.ready(node, corev1.ConditionUnknown) })
	await("all parts have all replicas on other nodes", func() error { return s.whole(node) })
	asks.end(node)
	if err := s.runs("steady"); err != nil {
		s.Errorf("running work: %v", err)
	}
	s.remove(name)
	begins()
	s.switchOn(node)
	await("it is ready again", func() error { return s.ready(node, corev1.ConditionTrue) })
}

// nodes returns the names of the nodes that run the platform.
func (s *site) nodes() (names []string) {
	s.Helper()
	list := &corev1.NodeList{}
	s.Must(s.admin.List(s.Context(), list, client.MatchingLabels{"localcluster.mlbatch.dev/real": "true"}))
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return names
}

func (s *site) ready(name string, want corev1.ConditionStatus) error {
	node := &corev1.Node{}
	if err := s.admin.Get(s.Context(), client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == want {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %+v", node.Status.Conditions)
}
