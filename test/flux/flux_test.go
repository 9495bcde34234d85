// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package flux_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

const kueue = "kueue.x-k8s.io/v1beta2"

// TestFluxKeepsThePlatform follows one platform from installation to removal. Each chapter
// depends on the ones before it.
func TestFluxKeepsThePlatform(t *testing.T) {
	s := newSite(t)
	for _, chapter := range []struct {
		name string
		tell func(*site)
	}{
		{"the samples install operators, then teams", installed},
		{"a job runs", jobRuns},
		{"the running platform is no drift", noDrift},
		{"what somebody changes is corrected", corrected},
		{"a commit changes a team", teamChanges},
		{"removed in order, it leaves namespaces and queues", removed},
	} {
		begin := time.Now()
		if !t.Run(chapter.name, func(t *testing.T) {
			inside := *s
			inside.T = t
			chapter.tell(&inside)
		}) {
			return
		}
		t.Logf("%s: %s", chapter.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

func installed(s *site) {
	objects := s.samples()
	waited := false
	s.commit(objects...)
	s.await("the teams wait for the operators", func() error {
		if _, err := s.get("v1", "Namespace", "", "blue"); err == nil {
			s.Fatal("a team is there before the operators are ready")
		}
		ready := condition(s.release("teams"), "Ready")
		waited = waited || ready["reason"] == "DependencyNotReady"
		if !waited {
			return fmt.Errorf("the teams do not say that they wait: %v", ready)
		}
		return nil
	})
	s.untilReady("mlbatch")
	s.untilReady("teams")
	for _, name := range []string{"mlbatch", "teams"} {
		if got := history(s.release(name)); !cmp.Equal(got, []string{"1 deployed"}) {
			s.Errorf("the history of %s is %q: it did not work the first time", name, got)
		}
	}
	s.read(kueue, "LocalQueue", "blue", "default-queue")
}

func jobRuns(s *site) {
	aw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
		"metadata": map[string]any{"name": "flux", "namespace": "blue", "labels": map[string]any{"kueue.x-k8s.io/queue-name": "default-queue"}},
		"spec": map[string]any{"components": []any{map[string]any{"template": map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "flux"},
			"spec": map[string]any{"template": map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"localcluster.mlbatch.dev/run-for": "1s"}},
				"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{
					"name": "main", "image": "none", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
				}}},
			}},
		}}}},
	}}
	s.await("the AppWrapper is accepted", func() error { return s.admin.Create(s.Context(), aw.DeepCopy()) })
	s.await("it has succeeded", func() error {
		got := s.read(aw.GetAPIVersion(), aw.GetKind(), "blue", "flux")
		if phase, _, _ := unstructured.NestedString(got.Object, "status", "phase"); phase != "Succeeded" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
}

// noDrift checks that what the platform itself writes, such as certificates, is not what Flux
// would correct again and again.
func noDrift(s *site) {
	for range 2 {
		s.untilReady("mlbatch")
		s.untilReady("teams")
	}
	if drifts := s.drifts(); len(drifts) > 0 {
		s.Errorf("nobody changed anything, but Flux says: %s", strings.Join(drifts, "\n"))
	}
}

// drifts are the messages of Flux's events about corrections.
func (s *site) drifts() (messages []string) {
	s.Helper()
	var events corev1.EventList
	if err := s.admin.List(s.Context(), &events, client.InNamespace(namespace)); err != nil {
		s.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.HasPrefix(e.Reason, "Drift") {
			messages = append(messages, e.Reason+": "+e.Message)
		}
	}
	return messages
}

// corrected checks that Flux restores what the chart sets. What the chart does not set is the
// administrator's, such as a pause of the queue.
func corrected(s *site) {
	before := s.read(kueue, "ClusterQueue", "", "blue-cluster-queue")
	patch := client.RawPatch("application/json-patch+json", []byte(`[
		{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "1"},
		{"op": "add", "path": "/spec/stopPolicy", "value": "Hold"}
	]`))
	if err := s.admin.Patch(s.Context(), before.DeepCopy(), patch); err != nil {
		s.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: s.memberBinding()}}
	if err := s.admin.Delete(s.Context(), binding); err != nil {
		s.Fatal(err)
	}
	s.untilReady("teams")
	s.await("both are as before", func() error {
		got := s.read(kueue, "ClusterQueue", "", before.GetName())
		if diff := cmp.Diff(groups(before), groups(got)); diff != "" {
			return fmt.Errorf("the quota of team blue (-before +now):\n%s", diff)
		}
		if policy, _, _ := unstructured.NestedString(got.Object, "spec", "stopPolicy"); policy != "Hold" {
			s.Fatalf("the stopPolicy is %q: an administrator cannot stop a queue", policy)
		}
		return s.admin.Get(s.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
	})
	if len(s.drifts()) == 0 {
		s.Error("Flux does not say that it has corrected anything")
	}
}

func groups(queue *unstructured.Unstructured) any {
	groups, _, _ := unstructured.NestedSlice(queue.Object, "spec", "resourceGroups")
	return groups
}

// memberBinding is the name of the RoleBinding that makes alice a member of team blue.
func (s *site) memberBinding() string {
	s.Helper()
	var bindings rbacv1.RoleBindingList
	if err := s.admin.List(s.Context(), &bindings, client.InNamespace("blue")); err != nil {
		s.Fatal(err)
	}
	for _, b := range bindings.Items {
		for _, subject := range b.Subjects {
			if subject.Name == "alice" {
				return b.Name
			}
		}
	}
	s.Fatal("alice is no member of team blue")
	return ""
}

func teamChanges(s *site) {
	for _, o := range s.samples() {
		if o.GetKind() != "HelmRelease" || o.GetName() != "teams" {
			continue
		}
		values := s.values("setup/teams/simulated.yaml")
		teams := values["teams"].([]any)
		teams[1].(map[string]any)["quota"].(map[string]any)["default-flavor"].(map[string]any)["nvidia.com/gpu"] = int64(30)
		sandbox.Set(s.T, o, any(values), "spec", "values")
		s.commit(o)
	}
	s.untilReady("teams")
	red := s.read(kueue, "ClusterQueue", "", "red-cluster-queue")
	if text := fmt.Sprint(red.Object["spec"]); !strings.Contains(text, "name:nvidia.com/gpu nominalQuota:30") {
		s.Errorf("the quota of team red is not the new one: %s", text)
	}
	blue := s.read(kueue, "ClusterQueue", "", "blue-cluster-queue")
	if text := fmt.Sprint(blue.Object["spec"]); !strings.Contains(text, "name:nvidia.com/gpu nominalQuota:40") {
		s.Errorf("the quota of team blue is not the old one: %s", text)
	}
	if got := history(s.release("mlbatch")); !cmp.Equal(got, []string{"1 deployed"}) {
		s.Errorf("the operators were touched: %q", got)
	}
}

func removed(s *site) {
	for _, name := range []string{"teams", "mlbatch"} {
		if err := s.admin.Delete(s.Context(), s.release(name)); err != nil {
			s.Fatal(err)
		}
		s.await(name+" is removed", func() error {
			_, err := s.get(releases, "HelmRelease", namespace, name)
			if err == nil {
				return errStillThere
			}
			return client.IgnoreNotFound(err)
		})
	}
	s.read("v1", "Namespace", "", "blue")
	s.read(kueue, "ClusterQueue", "", "blue-cluster-queue")
	s.await("the webhooks are gone", func() error {
		_, err := s.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "appwrapper-validating-webhook-configuration")
		if !apierrors.IsNotFound(err) {
			return errors.Join(errStillThere, err)
		}
		return nil
	})
}
