// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// BenchmarkHeap asserts nothing. docs/evidence/performance.md has what it prints.
func BenchmarkHeap(b *testing.B) {
	const runs = 2000
	for b.Loop() {
		before := alive()
		var cached []any
		for i := range runs {
			cached = append(cached, slim(b, storedRun(i), &v1alpha1.Run{}, slimRun), slim(b, storedAppWrapper(i), &v1beta2.AppWrapper{}, slimAppWrapper))
		}
		after := alive()
		runtime.KeepAlive(cached)
		b.ReportMetric(float64(after-before)/runs, "B/Run")
	}
}

func alive() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // also collects pooled objects
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// slim is an object as an informer decodes it, and as the cache keeps it.
func slim(b *testing.B, stored, into any, transform func(any) (any, error)) any {
	b.Helper()
	text, err := json.Marshal(stored)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		b.Fatal(err)
	}
	kept, err := transform(into)
	if err != nil {
		b.Fatal(err)
	}
	return kept
}

func conditions(kinds ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range kinds {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: kind + "Reason", Message: "all pods of " + kind + " are ready",
			LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0)),
		})
	}
	return all
}

// storedRun runs.
func storedRun(i int) *v1alpha1.Run {
	run := givenRun()
	run.Name, run.UID, run.ResourceVersion, run.Generation = fmt.Sprintf("digits-%d", i), types.UID(fmt.Sprintf("%036d", i)), fmt.Sprint(i), 1
	run.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0))
	run.Annotations = map[string]string{
		v1alpha1.AuthorAnnotation: "alice@example.com", v1alpha1.AuthorUIDAnnotation: "uid-of-alice",
		v1alpha1.AuthorMayAnnotation:       "appwrappers.workload.codeflare.dev,pytorchjobs.kubeflow.org,jobsets.jobset.x-k8s.io,rayjobs.ray.io,rayclusters.ray.io,jobs.batch,services,configmaps,podgroups.scheduling.x-k8s.io",
		corev1.LastAppliedConfigAnnotation: "a manifest",
	}
	run.Spec.Priority, run.Spec.QueueName = v1alpha1.PriorityNormal, "default-queue"
	now := metav1.NewTime(time.Unix(1e9, 0))
	run.Status = v1alpha1.RunStatus{
		Phase: v1alpha1.RunRunning, Message: "all pods are ready", ObservedGeneration: 1, StartTime: &now,
		Conditions: conditions("Accepted", "QuotaReserved", "PodsReady"),
		Resolved: &v1alpha1.Resolved{ApplicationGeneration: 1, Size: "xs", Workers: 1, PriorityClass: "default-priority", PerWorker: corev1.ResourceList{
			corev1.ResourceCPU: v1alpha1.MustParseAmount("1").Quantity, corev1.ResourceMemory: v1alpha1.MustParseAmount("4Gi").Quantity,
		}},
		AppWrapper: &v1alpha1.AppWrapperReference{Name: run.Name, UID: types.UID(fmt.Sprintf("a%035d", i))},
	}
	return run
}

func storedAppWrapper(i int) *v1beta2.AppWrapper {
	run, yes := storedRun(i), true
	aw := &v1beta2.AppWrapper{}
	aw.Name, aw.Namespace, aw.UID, aw.ResourceVersion = run.Name, run.Namespace, run.Status.AppWrapper.UID, run.ResourceVersion
	aw.CreationTimestamp = run.CreationTimestamp
	aw.Labels = map[string]string{
		v1alpha1.RunLabel: run.Name, v1alpha1.ApplicationLabel: "digits", v1alpha1.ArchetypeLabel: "shell",
		v1beta2.UserLabel: "alice_example.com", v1beta2.UserIDLabel: "uid-of-alice", "kueue.x-k8s.io/queue-name": "default-queue",
	}
	aw.OwnerReferences = []metav1.OwnerReference{{APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: run.Name, UID: run.UID, Controller: &yes}}
	aw.Status.Phase = v1beta2.AppWrapperRunning
	aw.Status.Conditions = conditions("QuotaReserved", "ResourcesDeployed", "PodsReady", "Unhealthy")
	return aw
}
