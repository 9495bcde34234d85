// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/quotawatch"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

func TestRunningWorkOutlivesThePlatform(t *testing.T) {
	s := newSite(t)
	for _, step := range []struct {
		what string
		do   func(*site)
	}{
		{"a cluster is made", (*site).up},
		{"the platform is installed", (*site).install},
		{"work is submitted", (*site).submitAll},
		{"the platform is upgraded", (*site).upgrade},
		{"what waited gets the quota of what ends", (*site).quotaIsPassedOn},
		{"the upgrade is rolled back", (*site).rollBack},
		{"the platform is removed while work runs", (*site).removeForNow},
		{"it is installed again", (*site).reinstall},
		{"the priorities of an older release are replaced", (*site).replacePriorities},
		{"all of it is removed for good", (*site).removeForGood},
	} {
		s.timed(step.what, func() { step.do(s) })
	}
}

// install installs the version of this checkout, and the teams.
func (s *site) install() {
	s.Helper()
	ctx := s.Context()
	s.must(s.PackageCharts(ctx))
	s.must(s.LoadImages(ctx))
	s.must(s.Install(ctx))
	s.must(s.Onboard(ctx, teams))
	var err error
	s.quota, err = quotawatch.Start(ctx, s.admin, os.Stderr)
	s.must(err)
	s.Cleanup(func() {
		if s.Failed() {
			s.explain()
		}
	})
}

func (s *site) upgrade() {
	s.Helper()
	s.next = s.packageNext()
	s.alsoCalled(s.next.images)
	w := s.witness()
	asks := s.keepAsking()
	s.applyNext("mlbatch", nextPlatform...)
	s.applyNext("teams", teams)
	s.wantVersion(s.next.newImages(), "next")
	s.everybodyIsAtWork("upgraded")
	asks.end()
	w.sawNothing("the platform was upgraded")
}

// rollBack returns to the version before, as docs/upgrade.md says.
func (s *site) rollBack() {
	s.Helper()
	w := s.witness()
	s.rollback("mlbatch")
	s.rollback("teams")
	s.wantVersion(s.next.oldImages(), "")
	s.everybodyIsAtWork("rolled-back")
	w.sawNothing("the platform was rolled back")
}

// wantVersion checks that the platform runs exactly these images, and that the CRDs have this mark.
func (s *site) wantVersion(images []string, mark string) {
	s.Helper()
	deployments := &appsv1.DeploymentList{}
	s.until("all Deployments are ready", func(ctx context.Context) error {
		if err := s.admin.List(ctx, deployments, client.InNamespace(platform.Namespace)); err != nil {
			return err
		}
		for _, d := range deployments.Items {
			if d.Status.UpdatedReplicas != d.Status.Replicas || d.Status.ReadyReplicas == 0 {
				return fmt.Errorf("Deployment %s: %+v", d.Name, d.Status)
			}
		}
		return nil
	})
	var run []string
	for _, d := range deployments.Items {
		run = append(run, d.Spec.Template.Spec.Containers[0].Image)
	}
	slices.Sort(run)
	run = slices.Compact(run) // our controllers are in one image
	if diff := cmp.Diff(images, run); diff != "" {
		s.Errorf("images of operators (-want +got):\n%s", diff)
	}
	for name, has := range s.definitions() {
		if has != mark {
			s.Errorf("CustomResourceDefinition %s has the mark %q, not %q", name, has, mark)
		}
	}
}

// definitions returns the platform's CRDs with their marks.
func (s *site) definitions() map[string]string {
	s.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listOf("apiextensions.k8s.io/v1", "CustomResourceDefinition").GroupVersionKind())
	s.must(s.admin.List(s.Context(), list))
	marks := map[string]string{}
	for _, crd := range list.Items {
		if !strings.HasSuffix(crd.Name, ".kwok.x-k8s.io") {
			marks[crd.Name] = crd.Annotations[crdMark]
		}
	}
	return marks
}

// everybodyIsAtWork checks that Kueue, our controller, the scheduler, the training operator and
// KubeRay work, in a team that the witness does not watch.
func (s *site) everybodyIsAtWork(name string) {
	s.Helper()
	cluster, aw := s.submit("new-ray", name), s.submit("new", name)
	s.untilPhase(client.ObjectKeyFromObject(aw), workload.AppWrapperSucceeded)
	s.untilHeard("a RayCluster is ready", "ray.io/v1", "RayCluster", "red/"+name, "status.state", "ready")
	s.must(s.alice.Delete(s.Context(), cluster))
	s.must(s.alice.Delete(s.Context(), aw))
	s.untilGone(client.ObjectKeyFromObject(aw))
}

// quotaIsPassedOn checks that what waited during the upgrade starts as soon as other work ends,
// and that what is held does not.
func (s *site) quotaIsPassedOn() {
	s.Helper()
	pods := &corev1.PodList{}
	s.must(s.admin.List(s.Context(), pods, client.InNamespace("green"), client.MatchingLabels{workload.AppWrapperLabel: "first"}))
	if len(pods.Items) != 1 {
		s.Fatalf("the first has %d pods", len(pods.Items))
	}
	end := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"localcluster.mlbatch.dev/run-for": "0s"}}}`))
	s.must(s.admin.Patch(s.Context(), &pods.Items[0], end))
	s.untilPhase(client.ObjectKey{Namespace: "green", Name: "first"}, workload.AppWrapperSucceeded)
	s.untilPhase(client.ObjectKey{Namespace: "green", Name: "waiting"}, workload.AppWrapperRunning)
	s.untilPodsRun("green", 3) // the AppWrapper runs before its pod does
	s.untilPhase(client.ObjectKey{Namespace: "blue", Name: "held"}, workload.AppWrapperSuspended)
}

// explain prints what helps to understand a failed test.
func (s *site) explain() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience.For(patience.Short))
	defer cancel()
	cluster := explain.Cluster{
		Objects: s.admin, Logs: s.logs, Print: s.Logf,
		Simulated: func(p corev1.Pod) bool { return strings.HasPrefix(p.Spec.NodeName, "gpu-") },
	}
	cluster.PodLogs(ctx, platform.Namespace)
	cluster.Kinds(ctx, "", &kueue.ClusterQueueList{}, &corev1.NamespaceList{})
	for _, namespace := range []string{"blue", "green", "red"} {
		cluster.PodLogs(ctx, namespace)
		cluster.Kinds(ctx, namespace, &workload.AppWrapperList{}, &kueue.WorkloadList{}, &batchv1.JobList{},
			listOf("kubeflow.org/v1", "PyTorchJob"), listOf("ray.io/v1", "RayCluster"), &corev1.PodList{})
		cluster.Events(ctx, namespace)
	}
	cluster.Kinds(ctx, platform.Namespace, &corev1.PodList{})
	cluster.Events(ctx, platform.Namespace)
}
