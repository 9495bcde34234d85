// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package installer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// TestThePlatformComesAndGoes follows one platform from installation to removal. Each subtest
// depends on the ones before it.
func TestThePlatformComesAndGoes(t *testing.T) {
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"what cannot work is refused before anything is changed", nothingIsTouched},
		{"an installation that is killed after each step is gone on with", killedAfterEachStep},
		{"a second installation changes nothing", nothingIsChanged},
		{"the cluster has what the file of the teams says", theFileIsCompared},
		{"in another namespace it is neither absent nor new", otherNamespace},
		{"an upgrade that is killed while Helm is at work is gone on with", upgradeIsKilled},
		{"an upgrade keeps the values that it is not given", valuesStay},
		{"in production, every part outlives its leader", leadersAreKilled},
		{"work that needs the platform to go keeps it there", workKeepsIt},
		{"uninstalled, it leaves kinds and queues and no webhook", uninstalled},
		{"queues that no release owns are taken, and get what the file says", queuesAreTaken},
	} {
		begin := time.Now()
		if !t.Run(chapter.name, chapter.tell) {
			return
		}
		t.Logf("%s: %s", chapter.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

func nothingIsTouched(t *testing.T) {
	isRefused(t, installs("install", "--set=kueue.enabled=false"), "the cluster has no Kueue, and kueue.enabled is false")
	isRefused(t, installs("install", "--set=kueu.enabled=false"), "kueu")
	isRefused(t, installs("upgrade"), "the release mlbatch is not installed: run 'mlbatch install' first")
	succeeds(t, installs("install", "--dry-run"))
	if out := succeeds(t, mlbatch("check", "--charts="+charts(), "--profile=openshift")); !strings.Contains(out, "PlatformMissing") || !strings.Contains(out, "InstallUnusual") {
		t.Errorf("nothing is installed, and the values are not for this cluster, but check prints %s", out)
	}
	if out := succeeds(t, mlbatch("uninstall")); !strings.Contains(out, "release mlbatch in namespace mlbatch-system: absent") {
		t.Errorf("nothing is installed, but uninstall prints %s", out)
	}
	err := admin.Get(t.Context(), client.ObjectKey{Name: helmrelease.DefaultNamespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("there is a namespace %s (%v)", helmrelease.DefaultNamespace, err)
	}
}

func killedAfterEachStep(t *testing.T) {
	at := func() error { return nil }
	isKilled(t, installs("install"), "[1/5]", at)
	isKilled(t, installs("install"), "[2/5]", at)
	// The pending release that this leaves looks to Helm like an operation in progress.
	isKilled(t, installs("install"), "[2/5]", func() error {
		if len(records(t)) == 0 {
			return errors.New("Helm has stored no release yet")
		}
		return nil
	})
	if left := records(t); !cmp.Equal(left, []string{"mlbatch.v1 pending-install"}) {
		t.Fatalf("the releases are %q: the command was not killed while Helm was running", left)
	}
	isRefused(t, installs("upgrade", "--set=kueue.enabled=false"), "the cluster has no Kueue")
	for _, cmd := range []*exec.Cmd{installs("install"), mlbatch("uninstall")} {
		isRefused(t, cmd, "the release mlbatch is pending-install since ", "or, if it was killed, run this one with --resume-interrupted")
	}
	isKilled(t, installs("install", "--resume-interrupted"), "[3/5]", at)
	isKilled(t, installs("install"), "[4/5]", at)
	isKilled(t, installs("install"), "[5/5]", at)
	succeeds(t, installs("install"))
	wantAllReady(t)
	queue := object("kueue.x-k8s.io/v1beta2", "LocalQueue")
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "default-queue"}, queue); err != nil {
		t.Errorf("team blue has no queue: %v", err)
	}
}

func nothingIsChanged(t *testing.T) {
	before := records(t)
	out := succeeds(t, installs("install"))
	for _, release := range []string{"mlbatch", "teams"} {
		if want := fmt.Sprintf("release %s 0.1.0 in namespace mlbatch-system: unchanged\n", release); !strings.Contains(out, want) {
			t.Errorf("it prints %q, which lacks %q", out, want)
		}
	}
	if diff := cmp.Diff(before, records(t)); diff != "" {
		t.Errorf("Helm's records have changed: %s", diff)
	}
	isRefused(t, installs("install", "--set=appwrapper.podAnnotations.new=yes"), "change it with 'mlbatch upgrade'")
}

// otherNamespace checks that a command with the wrong namespace names the right one.
func otherNamespace(t *testing.T) {
	const elsewhere, is = "--namespace=elsewhere", "is in namespace mlbatch-system"
	for _, cmd := range []*exec.Cmd{mlbatch("uninstall", elsewhere), mlbatch("components", elsewhere)} {
		isRefused(t, cmd, "the platform "+is+": use --namespace mlbatch-system")
	}
	for _, verb := range []string{"install", "upgrade"} {
		isRefused(t, installs(verb, elsewhere), "the release mlbatch "+is+" already: use that one with --namespace mlbatch-system")
	}
	isRefused(t, mlbatch("uninstall", "--with-teams", "--teams-namespace=elsewhere"), "the release teams "+is+": use --teams-namespace mlbatch-system")
}

// upgradeIsKilled kills an upgrade while Helm runs. Running the same command again completes
// it. The other steps change nothing, and may be too quick to be killed.
func upgradeIsKilled(t *testing.T) {
	before := generations(t)
	upgrade := func() *exec.Cmd {
		return mlbatch("upgrade", "--charts="+charts(), "--set=appwrapper.podAnnotations.killed=yes")
	}
	isKilled(t, upgrade(), "[2/5]", func() error {
		if left := records(t); !slices.Contains(left, "mlbatch.v3 pending-upgrade") {
			return fmt.Errorf("Helm remembers %q", left)
		}
		return nil
	})
	isRefused(t, installs("install"), "an upgrade of the release mlbatch was interrupted: resume with 'mlbatch upgrade'")
	isRefused(t, upgrade(), "the release mlbatch is pending-upgrade since ")
	resumed := upgrade()
	resumed.Args = append(resumed.Args, "--resume-interrupted")
	succeeds(t, resumed)
	wantAllReady(t)
	before["appwrapper-controller-manager"]++
	if diff := cmp.Diff(before, generations(t)); diff != "" {
		t.Errorf("generations of Deployments: %s", diff)
	}
}

func valuesStay(t *testing.T) {
	before := generations(t)
	told := succeeds(t, mlbatch("upgrade", "--charts="+charts(), "--set=appwrapper.podAnnotations.new=yes", "--diff"))
	const changed = "changed  Deployment.apps mlbatch-system/appwrapper-controller-manager\n             spec.template.metadata.annotations.new: none → \"yes\"\n"
	if !strings.Contains(told, changed) || !strings.Contains(told, "release teams: 0.1.0 → 0.1.0\n  no object changes\n") {
		t.Errorf("it prints %s", told)
	}
	if diff := cmp.Diff(before, generations(t)); diff != "" {
		t.Errorf("--diff changes Deployments: %s", diff)
	}
	out := succeeds(t, mlbatch("upgrade", "--charts="+charts(), "--set=appwrapper.podAnnotations.new=yes"))
	if want := "release mlbatch 0.1.0 in namespace mlbatch-system: upgraded\nrelease teams 0.1.0 in namespace mlbatch-system: unchanged\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
	wantAllReady(t)
	before["appwrapper-controller-manager"]++ // the others are unchanged: the values of the profile are kept
	if diff := cmp.Diff(before, generations(t)); diff != "" {
		t.Errorf("generations of Deployments: %s", diff)
	}
}

const work = `apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: train, namespace: blue}
spec:
  components:
  - template:
      apiVersion: v1
      kind: Pod
      metadata: {name: train}
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: registry.example/work:1
          resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
`

func workKeepsIt(t *testing.T) {
	aw := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(work), &aw.Object); err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	await(t, "the AppWrapper runs", func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(aw), aw)
		phase, _, _ := unstructured.NestedString(aw.Object, "status", "phase")
		if err == nil && phase != "Running" {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
	isRefused(t, mlbatch("uninstall"), "only the platform can delete 1 AppWrapper, 1 Workload, such as AppWrapper blue/train")
	wantAllReady(t)
	if err := admin.Delete(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
	await(t, "the AppWrapper is gone", func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(aw), aw)
		if err == nil {
			err = fmt.Errorf("it has the finalizers %q", aw.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

func uninstalled(t *testing.T) {
	await(t, "the Workload is gone", func() error {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadList"}}
		err := admin.List(t.Context(), list)
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	canBeRead(t) // through the webhook
	isKilled(t, mlbatch("uninstall"), "[2/2]", func() error {
		left := records(t)
		if !slices.ContainsFunc(left, func(r string) bool { return strings.Contains(r, " uninstall") }) {
			return fmt.Errorf("Helm remembers %q", left)
		}
		return nil
	})
	if out, want := succeeds(t, mlbatch("uninstall")), "release mlbatch in namespace mlbatch-system: uninstalled\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
	canBeRead(t)
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&appsv1.DeploymentList{}, &corev1.PodList{},
	} {
		if left := names(t, list, client.InNamespace("")); len(left) > 0 {
			t.Errorf("%T: %q are left", list, left)
		}
	}
	for kind, name := range map[string]string{"ClusterQueue": "blue-cluster-queue", "ResourceFlavor": "default-flavor"} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, object("kueue.x-k8s.io/v1beta2", kind)); err != nil {
			t.Errorf("the %s is gone: %v", kind, err)
		}
	}
	if left := records(t); !cmp.Equal(left, []string{"teams.v1 deployed"}) {
		t.Errorf("the releases are %q, want only the teams", left)
	}
	if out, want := succeeds(t, mlbatch("uninstall", "--with-teams")), "release teams in namespace mlbatch-system: uninstalled\nrelease mlbatch in namespace mlbatch-system: absent\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "blue"}, &corev1.Namespace{}); err != nil {
		t.Errorf("the namespace is gone with the teams: %v", err)
	}
}

// canBeRead reads an object in an older version, which the API server has to convert.
func canBeRead(t *testing.T) {
	t.Helper()
	await(t, "a ClusterQueue can be read as v1beta1", func() error {
		return admin.Get(t.Context(), client.ObjectKey{Name: "blue-cluster-queue"}, object("kueue.x-k8s.io/v1beta1", "ClusterQueue"))
	})
}

// wantAllReady checks that the command reports both releases and every installed component as ready, and
// no other component.
func wantAllReady(t *testing.T) {
	t.Helper()
	wantAllReadySoon(t)
	out, progress, err := finish(mlbatch("components", "--output=json"))
	if err != nil {
		t.Errorf("%v: %s", err, progress)
	}
	var answer printing.Items[install.Component]
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := answer.Items
	if len(all) < 2 || all[0].Name != "release mlbatch" || all[1].Name != "release teams" {
		t.Fatalf("the releases do not come first: %+v", all)
	}
	for _, c := range all[:2] {
		if !c.Ready || c.State != "installed" || c.Found != c.Wanted {
			t.Errorf("%+v", c)
		}
	}
	for _, c := range all[2:] {
		part, known := parts.Named(c.Name)
		if !known {
			t.Errorf("%s is no part of the platform", c.Name)
		}
		if off := part.Optional; off != (c.State == "off") || c.Ready == off || !off && c.Found != c.Wanted {
			t.Errorf("%+v", c)
		}
	}
}

// records returns Helm's revisions with their status.
func records(t *testing.T) []string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := admin.List(t.Context(), secrets, client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range secrets.Items {
		all = append(all, strings.TrimPrefix(s.Name, "sh.helm.release.v1.")+" "+s.Labels["status"])
	}
	slices.Sort(all)
	return all
}

// generations returns the generations of the platform's Deployments, which show what has
// changed.
func generations(t *testing.T) map[string]int64 {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := admin.List(t.Context(), list, client.InNamespace(helmrelease.DefaultNamespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, d := range list.Items {
		all[d.Name] = d.Generation
	}
	return all
}

func names(t *testing.T, list client.ObjectList, options ...client.ListOption) []string {
	t.Helper()
	if err := admin.List(t.Context(), list, options...); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var found metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &found); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range found.Items {
		if o.Namespace == "" || o.Namespace == helmrelease.DefaultNamespace {
			all = append(all, o.Name)
		}
	}
	return all
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
}

// await looks often, because what it waits for may be over soon.
func await(t *testing.T, what string, holds func() error) {
	t.Helper()
	var missing error
	err := patience.Poll(t.Context(), 20*time.Millisecond, func(context.Context) (bool, error) {
		missing = holds()
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("timed out waiting until %s: %v", what, missing)
	}
}
