// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Each team has 16 GPUs, and 8 belong to nobody. So the second gang waits, and the last even if the first ends.
var (
	first   = gang{"blue", "first", 2, 8}
	second  = gang{"blue", "second", 2, 8}
	steady  = gang{"red", "steady", 2, 8}
	borrows = gang{"red", "borrows", 1, 8}
	brief   = gang{"red", "brief", 1, 0}
	waiting = gang{"red", "waiting", 3, 8}
)

// Team blue lets its work end before the migration, as step 3 of the page says. Team red does not.
func TestThePageIsFollowed(t *testing.T) {
	s := newSite(t)
	s.setUp("blue", "red")
	for _, g := range []gang{first, steady, borrows, brief} {
		s.Must(s.submit(g))
		s.untilRunning(g)
	}
	for _, g := range []gang{second, waiting} {
		s.Must(s.submit(g))
		s.untilPhase(g, workload.AppWrapperSuspended)
	}
	before, pods := s.stays(), s.lives(steady, borrows)
	p := s.read("migrate-kustomize.md")
	s.take(p, "1", "")
	s.write(p, "red")
	s.drain(p)

	s.take(p, "4", "")
	s.take(p, "5", "")
	s.between(pods)
	s.take(p, "6", "")
	s.untilRunning(second) // Kueue has seen that its queue is not stopped any more
	s.check(p)
	s.same("what stays", before, s.stays())
	s.same("pods", pods, s.lives(steady, borrows))
	s.untilPhase(brief, workload.AppWrapperSucceeded)
	for _, team := range []string{"blue", "red"} {
		s.take(p, "8", team)
	}
	s.liveOn(pods)
}

// drain is step 3.
func (s *site) drain(p page) {
	s.Helper()
	s.take(p, "3", "blue")
	s.ends(first)
	s.untilPhase(first, workload.AppWrapperSucceeded)
	s.waits(second)
}

// between is the time without operators.
func (s *site) between(pods map[string]string) {
	s.Helper()
	s.same("pods without operators", pods, s.lives(steady, borrows))
	err := s.submit(gang{"red", "too-early", 1, 1})
	if err == nil || !strings.Contains(err.Error(), "webhook") {
		s.Errorf("new work is not refused by the webhooks that stay: %v", err)
	}
	if _, err := s.try(deployment); err == nil || !strings.Contains(err.Error(), "mdeployment.kb.io") {
		s.Errorf("the page says that Deployments cannot be created meanwhile: %v", err)
	}
	s.waits(second)
	s.waits(waiting)
	s.ends(brief)
}

const deployment = "kubectl create deployment any --namespace default --image registry.example/any:1"

// check is step 7.
func (s *site) check(p page) {
	s.Helper()
	s.run(deployment)
	said := s.take(p, "7", "")
	if len(said) < 2 || said[1] != "" {
		s.Errorf("the cluster differs from the file of the teams: %q", said)
	}
}

// liveOn lets all work end under the new operators.
func (s *site) liveOn(pods map[string]string) {
	s.Helper()
	s.waits(waiting)
	s.same("pods at the end", pods, s.lives(steady, borrows))
	for _, g := range []gang{steady, borrows, second} {
		s.ends(g)
		s.untilPhase(g, workload.AppWrapperSucceeded)
	}
	s.untilRunning(waiting)
	s.ends(waiting)
	s.untilPhase(waiting, workload.AppWrapperSucceeded)
}

// stays are the UIDs of objects that must not be made anew.
func (s *site) stays() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, o := range []struct{ version, kind, namespace, name string }{
		{"v1", "Namespace", "", "blue"},
		{"v1", "Namespace", "", "red"},
		{"kueue.x-k8s.io/v1beta1", "ResourceFlavor", "", "default-flavor"},
		{"kueue.x-k8s.io/v1beta1", "ClusterQueue", "", "slack-cluster-queue"},
		{"kueue.x-k8s.io/v1beta1", "ClusterQueue", "", "blue-cluster-queue"},
		{"kueue.x-k8s.io/v1beta1", "ClusterQueue", "", "red-cluster-queue"},
		{"kueue.x-k8s.io/v1beta1", "LocalQueue", "blue", "default-queue"},
		{"kueue.x-k8s.io/v1beta1", "LocalQueue", "red", "default-queue"},
		{"workload.codeflare.dev/v1beta2", "AppWrapper", "red", "steady"},
		{"workload.codeflare.dev/v1beta2", "AppWrapper", "red", "waiting"},
		{"workload.codeflare.dev/v1beta2", "AppWrapper", "blue", "second"},
		{"batch/v1", "Job", "red", "steady"},
		{"scheduling.k8s.io/v1", "PriorityClass", "", "default-priority"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "workloads.kueue.x-k8s.io"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "appwrappers.workload.codeflare.dev"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.version, "kind": o.kind}}
		s.Await(fmt.Sprintf("%s %s can be read", o.kind, o.name), func() error {
			return s.admin.Get(s.Context(), client.ObjectKey{Namespace: o.namespace, Name: o.name}, object)
		})
		all[strings.TrimSpace(o.kind+" "+o.namespace+" "+o.name)] = string(object.GetUID())
	}
	return all
}

func (s *site) same(what string, before, now map[string]string) {
	s.Helper()
	if diff := cmp.Diff(before, now); diff != "" {
		s.Error(errors.New(what + " (-before +now):\n" + diff))
	}
}
