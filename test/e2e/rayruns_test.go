// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// What has succeeded does not run again, although all who could start it forget what they knew.
// The Run after it shows that they are back, and how a failure is told.
func TestARayRunThatHasSucceededNeverRunsAgain(t *testing.T) {
	testenv.Test(t, features.New("ray-run").Assess("one cluster is made", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.Machine, needs.RayPods, needs.RayClusters, needs.Gangs, needs.Runs)
		clusters := s.watchRayClusters(ctx, cfg)
		s.create(ctx, s.rayProgram("trains", "echo trained by $CODEFLARE_WORKERS"))
		s.create(ctx, s.rayProgram("fails", "echo no data\nexit 7"))
		good := rayExecution("ray-trains", "trains")
		s.create(ctx, good)
		s.untilRun(ctx, good, v1alpha1.RunSucceeded)
		if log := s.logOfSubmitter(ctx, good); !strings.Contains(log, "trained by 2\n") {
			t.Errorf("the log of the submitter is\n%s", log)
		}

		s.killControllers(ctx)
		bad := rayExecution("ray-fails", "fails")
		bad.Annotations = map[string]string{workload.RetryLimitAnnotation: "0"}
		s.until(ctx, "Runs can be made again", func(ctx context.Context) (string, error) {
			again := bad.DeepCopy()
			again.Namespace = s.namespace
			return "", s.user.Create(ctx, again, client.DryRunAll)
		})
		s.create(ctx, bad)
		s.untilRun(ctx, bad, v1alpha1.RunFailed)
		if f := bad.Status.LastFailure; f == nil || f.Container != "submitter" || f.ExitCode == nil || *f.ExitCode != 7 || !strings.Contains(f.Message, "no data") {
			t.Errorf("its last failure is %+v", f)
		}
		if good, bad := clusters.madeFor(good.Name), clusters.madeFor(bad.Name); good != 1 || bad != 1 {
			t.Errorf("%d RayClusters were made for the Run that succeeded, and %d for the one that failed", good, bad)
		}
		return ctx
	}).Feature())
}

// Without a command, the cluster is there until its author has no more use for it.
func TestAnInteractiveRayClusterRunsUntilItIsCancelled(t *testing.T) {
	testenv.Test(t, features.New("ray-cluster").Assess("its quota comes back", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.RayPods, needs.RayClusters, needs.Gangs, needs.Runs)
		s.create(ctx, s.rayProgram("notebook", ""))
		run := rayExecution("ray-notebook", "notebook")
		s.create(ctx, run)
		s.untilRun(ctx, run, v1alpha1.RunRunning)
		s.untilRunning(ctx, run.Name, 3)
		s.untilReserved(ctx, corev1.ResourceCPU, "60m")
		if err := s.patch(ctx, "codeflare.dev/v1alpha1", "Run", run.Name, `{"spec":{"cancel":true}}`); err != nil {
			t.Fatal(err)
		}
		s.untilRun(ctx, run, v1alpha1.RunCancelled)
		s.untilReserved(ctx, corev1.ResourceCPU, "0")
		return ctx
	}).Feature())
}

// rayProgram is a Ray Application in the image that stands in for Ray.
func (s *story) rayProgram(name, command string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APIRay, Image: here.Ray.Name, Command: command},
	}
}

// rayExecution is a Run of a head and two workers.
func rayExecution(name, application string) *v1alpha1.Run {
	run := execution(name, application, "20m")
	run.Spec.Workers = ptr.To[int32](2)
	return run
}

// rayClusters are all that were ever made, by the name of their RayJob.
type rayClusters struct {
	mu   sync.Mutex
	made map[string]map[types.UID]bool
}

func (r *rayClusters) madeFor(job string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made[job])
}

// watchRayClusters remembers them until the story ends.
func (s *story) watchRayClusters(ctx context.Context, cfg *envconf.Config) *rayClusters {
	s.t.Helper()
	api, err := client.NewWithWatch(cfg.Client().RESTConfig(), client.Options{Scheme: cfg.Client().Resources().GetScheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	events, err := api.Watch(ctx, &rayv1.RayClusterList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(events.Stop)
	all := &rayClusters{made: map[string]map[types.UID]bool{}}
	go func() {
		for event := range events.ResultChan() {
			cluster, is := event.Object.(*rayv1.RayCluster)
			if !is {
				continue
			}
			all.mu.Lock()
			if owner := metav1.GetControllerOf(cluster); owner != nil {
				if all.made[owner.Name] == nil {
					all.made[owner.Name] = map[types.UID]bool{}
				}
				all.made[owner.Name][cluster.UID] = true
			}
			all.mu.Unlock()
		}
	}()
	return all
}

// logOfSubmitter is that of the last one: the Job of KubeRay submits again if the head did not listen yet.
func (s *story) logOfSubmitter(ctx context.Context, run *v1alpha1.Run) string {
	s.t.Helper()
	pods := &corev1.PodList{}
	selector := v1alpha1.RunLabel + "=" + run.Name + "," + v1alpha1.RoleLabel + "=submitter"
	if err := s.admin.List(ctx, pods, resources.WithLabelSelector(selector)); err != nil || len(pods.Items) == 0 {
		s.t.Fatalf("no pod submits: %v", err)
	}
	last := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(last.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(log)
}

// killControllers kills KubeRay's operator and both of ours, and waits until others are there.
func (s *story) killControllers(ctx context.Context) {
	s.t.Helper()
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name in (appwrapper, codeflare, kuberay)"}
	pods := s.api.CoreV1().Pods(platform.Namespace)
	before, err := pods.List(ctx, ours)
	if err != nil || len(before.Items) != 3 {
		s.t.Fatalf("there are %d pods of controllers: %v", len(before.Items), err)
	}
	killed := map[types.UID]bool{}
	for _, pod := range before.Items {
		killed[pod.UID] = true
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.until(ctx, "the controllers are back", func(ctx context.Context) (string, error) {
		now, err := pods.List(ctx, ours)
		if err != nil {
			return "", err
		}
		ready := 0
		for _, pod := range now.Items {
			for _, c := range pod.Status.Conditions {
				if !killed[pod.UID] && c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < len(killed) {
			return fmt.Sprintf("%d of %d are ready", ready, len(killed)), nil
		}
		return "", nil
	})
}
