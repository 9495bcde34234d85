// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package installer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// queuesAreTaken lets a team be as somebody has made it by hand, on a cluster without the platform.
func queuesAreTaken(t *testing.T) {
	queue := object("kueue.x-k8s.io/v1beta2", "ClusterQueue")
	queue.SetName("blue-cluster-queue")
	local, flavor := object("kueue.x-k8s.io/v1beta2", "LocalQueue"), object("kueue.x-k8s.io/v1beta2", "ResourceFlavor")
	local.SetName("default-queue")
	local.SetNamespace("blue")
	flavor.SetName("default-flavor")
	namespace := &corev1.Namespace{}
	namespace.SetName("blue")
	const nobodys = `{"metadata":{"annotations":{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null}}}`
	for _, o := range []client.Object{queue, local, flavor, namespace} {
		patch(t, o, nobodys)
	}
	patch(t, queue, `{"spec":{"cohortName":"theirs","namespaceSelector":{"matchLabels":null},"preemption":{"withinClusterQueue":"LowerOrNewerEqualPriority"}}}`)
	before := queue.GetUID()

	isRefused(t, installs("install"), "owned by no release", "--take-ownership")
	succeeds(t, installs("install", "--take-ownership"))
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
		t.Fatal(err)
	}
	cohort, _, _ := unstructured.NestedString(queue.Object, "spec", "cohortName")
	within, _, _ := unstructured.NestedString(queue.Object, "spec", "preemption", "withinClusterQueue")
	selected, _, _ := unstructured.NestedString(queue.Object, "spec", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
	if cohort != "default-cohort" || within != "LowerPriority" || selected != "blue" {
		t.Errorf("the queue is not as the file says: %v", queue.Object["spec"])
	}
	if queue.GetUID() != before {
		t.Error("the queue was made anew")
	}
	wantAllReady(t)
	if out := succeeds(t, installs("install")); !strings.Contains(out, "release teams 0.1.0 in namespace mlbatch-system: unchanged\n") {
		t.Errorf("without the flag, it prints %q", out)
	}
}

func patch(t *testing.T, o client.Object, text string) {
	t.Helper()
	if err := admin.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		t.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}
