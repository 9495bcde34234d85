// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// A user or a GitOps tool applies a manifest again, while its job runs and before a retry. The
// manifest lacks what Kueue wrote about the pods. Neither the running job nor the next attempt
// may lose it.
func TestAManifestIsAppliedAgain(t *testing.T) {
	testenv.Test(t, features.New("apply").Assess("what Kueue wrote stays", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		// Each has its own name: Kueue takes a Workload that is not collected yet for that of the next
		// AppWrapper with the name.
		for name, again := range map[string]func(*story, context.Context, *workload.AppWrapper){"client": (*story).apply, "server": (*story).applyOnServer} {
			s.applyAgainWhileItRuns(ctx, "steady-"+name, again)
			s.applyAgainBeforeARetry(ctx, "again-"+name, again)
		}
		return ctx
	}).Feature())
}

func (s *story) applyAgainWhileItRuns(ctx context.Context, name string, again func(*story, context.Context, *workload.AppWrapper)) {
	s.t.Helper()
	manifest := wrapped(name, job(name, "200m", "linger", "0s"), nil)
	aw := manifest.DeepCopy()
	s.apply(ctx, aw)
	s.untilPhase(ctx, aw, workload.AppWrapperRunning)
	s.untilRunning(ctx, name, 1)
	if len(aw.ManagedFields) > 0 {
		s.t.Errorf("of what nobody applies on the server, the API server records who wrote what: %v", aw.ManagedFields)
	}
	admitted, before := aw.Spec, s.uids(ctx, name)

	again(s, ctx, manifest.DeepCopy())
	s.untilPhase(ctx, aw, workload.AppWrapperRunning)
	if diff := cmp.Diff(admitted, aw.Spec); diff != "" {
		s.t.Errorf("applying changed it (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(before, s.uids(ctx, name)); diff != "" {
		s.t.Errorf("its pods were replaced (-before +after)\n%s", diff)
	}
	s.remove(ctx, aw)
	s.until(ctx, "it is removed", func(ctx context.Context) (string, error) { return s.stillThere(ctx, aw) })
}

func (s *story) applyAgainBeforeARetry(ctx context.Context, name string, again func(*story, context.Context, *workload.AppWrapper)) {
	s.t.Helper()
	manifest := wrapped(name, job(name, "200m", "exit", "3"), map[string]string{
		workload.RetryLimitAnnotation:                   "1",
		workload.RetryPausePeriodDurationAnnotation:     "1h", // until the manifest is applied again
		workload.DeletionOnFailureGracePeriodAnnotation: "1h",
	})
	aw := manifest.DeepCopy()
	s.apply(ctx, aw)
	s.untilPhase(ctx, aw, workload.AppWrapperResetting)
	manifest.Annotations[workload.RetryPausePeriodDurationAnnotation] = "1s"
	again(s, ctx, manifest.DeepCopy())
	s.untilPhase(ctx, aw, workload.AppWrapperFailed)
	pods, err := s.pods(ctx, name)
	if err != nil || len(pods) == 0 {
		s.t.Fatalf("the second attempt left %d pods (%v)", len(pods), err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
			s.t.Errorf("the second attempt is not on the nodes of its flavor: %v", pod.Spec.NodeSelector)
		}
	}
	s.remove(ctx, aw)
	s.until(ctx, "it is removed", func(ctx context.Context) (string, error) { return s.stillThere(ctx, aw) })
}

// apply does what kubectl apply does for a custom resource.
func (s *story) apply(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	modified := s.manifest(aw)
	annotations := aw.DeepCopy().Annotations
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(modified)
	aw.Annotations = annotations
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(workload.GroupVersion.WithKind(workload.AppWrapperKind))
	if err := s.user.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: aw.Name}, stored); err != nil {
		s.create(ctx, aw)
		return
	}
	current, err := stored.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	original := []byte(stored.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, s.manifest(aw), current)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.user.Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatalf("cannot apply %s again with %s: %v", aw.Name, patch, err)
	}
}

// applyOnServer does what kubectl apply --server-side --force-conflicts does.
func (s *story) applyOnServer(ctx context.Context, aw *workload.AppWrapper) {
	s.t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(s.manifest(aw)); err != nil {
		s.t.Fatal(err)
	}
	err := s.user.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.ForceOwnership, client.FieldOwner("kubectl"))
	if err != nil {
		s.t.Fatalf("cannot apply %s on the server: %v", aw.Name, err)
	}
}

// manifest returns the AppWrapper as its author has it in a file.
func (s *story) manifest(aw *workload.AppWrapper) []byte {
	s.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(aw)
	if err != nil {
		s.t.Fatal(err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	content["apiVersion"], content["kind"] = workload.GroupVersion.String(), workload.AppWrapperKind
	_ = unstructured.SetNestedField(content, s.namespace, "metadata", "namespace")
	text, err := json.Marshal(content)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// uids returns the UIDs of an AppWrapper's pods.
func (s *story) uids(ctx context.Context, appWrapper string) []types.UID {
	s.t.Helper()
	pods, err := s.pods(ctx, appWrapper)
	if err != nil {
		s.t.Fatal(err)
	}
	var uids []types.UID
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}
