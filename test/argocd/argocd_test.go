// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package argocd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const kueue = "kueue.x-k8s.io/v1beta2"

// TestArgoKeepsThePlatform follows one platform from installation to removal, and once more. Each
// chapter depends on the ones before it.
func TestArgoKeepsThePlatform(t *testing.T) {
	s := newSite(t)
	for _, chapter := range []struct {
		name string
		tell func(*site)
	}{
		{"without an order, the teams are tried until the operators are there", installed},
		{"a job runs", jobRuns},
		{"for a minute, nothing flips", quiet},
		{"what somebody changes is corrected", corrected},
		{"an Application of Applications takes over, and a commit changes a team", teamChanges},
		{"removed in order, it leaves only what is kept", removed},
		{"with the health check of Applications, the teams wait for the operators", waves},
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
	s.apply(s.sample("repository.yaml"), s.sample("teams.yaml"))
	s.await("the teams are tried again", func() error {
		if o := s.application("teams"); retries(o) == 0 {
			return unsettled(o)
		}
		return nil
	})
	s.apply(s.sample("mlbatch.yaml"))
	s.untilSettled("mlbatch")
	s.untilSettled("teams")
	s.read(kueue, "LocalQueue", "blue", "default-queue")
}

func jobRuns(s *site) {
	aw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
		"metadata": map[string]any{"name": "argo", "namespace": "blue", "labels": map[string]any{"kueue.x-k8s.io/queue-name": "default-queue"}},
		"spec": map[string]any{"components": []any{map[string]any{"template": map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "argo"},
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
		if phase := said(s.read(aw.GetAPIVersion(), aw.GetKind(), "blue", "argo"), "phase"); phase != "Succeeded" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
}

// quiet checks that what the platform itself writes, such as certificates, is not what Argo CD
// would correct again and again. It looks all the time.
func quiet(s *site) {
	before := s.eventsAtRest()
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		s.untilSettled("mlbatch")
		s.untilSettled("teams")
	}
	if diff := cmp.Diff(before, s.events()); diff != "" {
		s.Errorf("nobody changed anything, but Argo CD says: %s", diff)
	}
}

// eventsAtRest are the events once none came for a while: those of the synchronisation before come later.
func (s *site) eventsAtRest() (last map[string]string) {
	s.Helper()
	var since time.Time
	s.await("there are no more events", func() error {
		now := s.events()
		if diff := cmp.Diff(last, now); diff != "" {
			last, since = now, time.Now()
			return errors.New(diff)
		}
		if at := time.Since(since); at < patience.For(5*time.Second) {
			return fmt.Errorf("there were none for %s", at)
		}
		return nil
	})
	return last
}

// events are what Argo CD's events say of synchronisations and of changed states, by name.
func (s *site) events() map[string]string {
	s.Helper()
	var list corev1.EventList
	if err := s.admin.List(s.Context(), &list, client.InNamespace(namespace)); err != nil {
		s.Fatal(err)
	}
	messages := map[string]string{}
	for _, e := range list.Items {
		messages[e.Name] = e.Reason + ": " + e.Message
	}
	if len(messages) == 0 {
		s.Fatal("Argo CD has no events")
	}
	return messages
}

// corrected checks that Argo CD restores what the chart sets. What the chart does not set is the
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
	s.untilSettled("teams")
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
	operators := synchronisations(s.application("mlbatch"))
	for _, file := range []string{"apps.yaml", "repository.yaml", "mlbatch.yaml", "teams.yaml"} {
		s.write(file, s.sample(file))
	}
	s.commit("as it is")
	s.apply(s.sample("apps.yaml"))
	s.untilSettled("mlbatch-apps")
	teams := s.sample("teams.yaml")
	values := s.values("setup/teams/simulated.yaml")
	list := values["teams"].([]any)
	list[1].(map[string]any)["quota"].(map[string]any)["default-flavor"].(map[string]any)["nvidia.com/gpu"] = int64(30)
	sandbox.Set(s.T, teams, any(values), "spec", "source", "helm", "valuesObject")
	s.write("teams.yaml", teams)
	s.commit("team red gives two GPUs back")
	s.look("mlbatch-apps", "normal")
	s.await("the quota of team red is the new one", func() error { return s.lacks("red", "30") })
	s.untilSettled("mlbatch-apps")
	s.untilSettled("teams")
	if err := s.lacks("blue", "40"); err != nil {
		s.Error(err)
	}
	if now := synchronisations(s.application("mlbatch")); now != operators {
		s.Errorf("the operators were touched: they were synchronised %d times, and now %d", operators, now)
	}
}

// lacks says whether a team has another quota of GPUs than so many.
func (s *site) lacks(team, gpus string) error {
	queue := s.read(kueue, "ClusterQueue", "", team+"-cluster-queue")
	if text := fmt.Sprint(queue.Object["spec"]); !strings.Contains(text, "name:nvidia.com/gpu nominalQuota:"+gpus) {
		return fmt.Errorf("the quota of team %s is not %s GPUs: %s", team, gpus, text)
	}
	return nil
}

func removed(s *site) {
	s.git("rm", "--quiet", folder+"/mlbatch.yaml", folder+"/teams.yaml")
	s.commit("without the platform")
	s.look("mlbatch-apps", "normal")
	for _, name := range []string{"teams", "mlbatch"} {
		s.remove(name)
	}
	s.read("v1", "Namespace", "", "blue")
	s.read(kueue, "ClusterQueue", "", "blue-cluster-queue")
	s.untilGone("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "appwrapper-validating-webhook-configuration")
	s.await("only what is kept is there", func() error {
		for _, o := range s.managed() {
			if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" || o.GetDeletionTimestamp() != nil {
				return fmt.Errorf("%s %s/%s is there, or half of it", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
			}
		}
		return nil
	})
}

// remove does what 'argocd app delete NAME --cascade' lets Argo CD's API server do.
func (s *site) remove(name string) {
	s.Helper()
	o := s.application(name)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}`))
	if err := s.admin.Patch(s.Context(), o, patch); err != nil {
		s.Fatal(err)
	}
	if err := s.admin.Delete(s.Context(), o); err != nil {
		s.Fatal(err)
	}
	s.untilGone(applications, "Application", namespace, name)
}

// waves installs the platform again, from git alone.
func waves(s *site) {
	config := s.manifests("base/config/argocd-cm.yaml")[0]
	sandbox.Set(s.T, config, healthOfApplications, "data", "resource.customizations.health.argoproj.io_Application")
	s.apply(config)
	s.git("revert", "--no-edit", "HEAD")
	s.look("mlbatch-apps", "normal")
	s.await("there are the operators", func() error {
		_, err := s.get(applications, "Application", namespace, "mlbatch")
		return err
	})
	s.await("the teams come after the operators", func() error {
		s.look("mlbatch", "normal")
		_, err := s.get(applications, "Application", namespace, "teams")
		if operators := s.application("mlbatch"); err == nil && said(operators, "health", "status") != "Healthy" {
			s.Fatalf("the teams are there before the operators are healthy: %v", unsettled(operators))
		}
		return err
	})
	s.untilSettled("mlbatch-apps")
	for _, name := range []string{"mlbatch", "teams"} {
		s.untilSettled(name)
		if n := retries(s.application(name)); n != 0 {
			s.Errorf("%s did not work the first time: %d retries", name, n)
		}
	}
	if err := s.lacks("red", "30"); err != nil {
		s.Error(err)
	}
}

// healthOfApplications is from Argo CD's documentation, to which docs/gitops.md has the link.
const healthOfApplications = `hs = {}
hs.status = "Progressing"
hs.message = ""
if obj.status ~= nil then
  if obj.status.health ~= nil then
    hs.status = obj.status.health.status
    if obj.status.health.message ~= nil then
      hs.message = obj.status.health.message
    end
  end
end
return hs
`
