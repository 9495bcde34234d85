// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

const tasks = 200

// Four workers share 200 tasks on a claim. One of them is killed, and then the broker. Each task
// has one right result in the end.
func TestAWorkQueueSurvivesItsPods(t *testing.T) {
	testenv.Test(t, features.New("work queue").Assess("each task has one result", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Runs, needs.Machine)
		folder := s.tasks(tasks)
		s.claim(ctx, "numbers", folder)
		s.create(ctx, &v1alpha1.DataSet{
			ObjectMeta: metav1.ObjectMeta{Name: "numbers"}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: "numbers"}},
		})
		app := s.program("multiply", "multiply() { sleep 0.5; echo $(($(cat \"$1\") * 7)) >\"$2\"; }\nmultiply")
		app.Spec.API, app.Spec.WorkQueue = v1alpha1.APIWorkQueue, &v1alpha1.WorkQueue{LeaseSeconds: 10}
		s.create(ctx, app)
		run := execution("sevens", "multiply", "50m")
		*run.Spec.Workers = 4
		run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "numbers"}}
		s.create(ctx, run)

		s.untilResults(ctx, folder, tasks/10)
		s.killRole(ctx, run.Name, "worker")
		s.untilResults(ctx, folder, tasks/4)
		s.killRole(ctx, run.Name, "broker")
		s.untilRun(ctx, run, v1alpha1.RunSucceeded)

		if q := run.Status.Queue; q == nil || q.Succeeded != tasks || q.Failed != 0 || run.Status.Retries != 0 {
			t.Errorf("after %d retries, the counts of the queue are %+v", run.Status.Retries, q)
		}
		for i := range tasks {
			result, err := os.ReadFile(filepath.Join(folder, "outbox", fmt.Sprint(i)))
			if want := fmt.Sprintln(i * 7); err != nil || string(result) != want {
				t.Errorf("the result of task %d is %q: %v", i, result, err)
			}
		}
		record := filepath.Join(folder, ".mlbatch-queue", "sevens-"+string(run.UID[:8]))
		for folder, want := range map[string]int{filepath.Join(folder, "outbox"): tasks, filepath.Join(record, "done"): tasks, filepath.Join(record, "dead"): 0, filepath.Join(record, "epoch"): 2} {
			if got := countFiles(t, folder); got != want {
				t.Errorf("%s has %d files, not %d", folder, got, want)
			}
		}
		return ctx
	}).Feature())
}

// tasks makes a folder of tasks, in which everybody may write. Each is a number.
func (s *story) tasks(n int) string {
	s.t.Helper()
	folder := s.t.TempDir()
	inbox := filepath.Join(folder, "inbox")
	if err := os.Mkdir(inbox, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(inbox, fmt.Sprint(i)), []byte(fmt.Sprintln(i)), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, path := range []string{folder, inbox} {
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // The broker is another user.
			s.t.Fatal(err)
		}
	}
	for i := range n {
		if err := os.Chmod(filepath.Join(inbox, fmt.Sprint(i)), 0o644); err != nil { //nolint:gosec // Likewise.
			s.t.Fatal(err)
		}
	}
	return folder
}

// claim makes a claim of a folder of this machine.
func (s *story) claim(ctx context.Context, name, folder string) {
	s.t.Helper()
	v := volume("e2e-"+name, "")
	v.Spec.HostPath.Path = folder
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: s.own(name), Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(string), VolumeName: v.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}},
	}}
	for _, object := range []client.Object{v, claim} {
		if err := s.admin.Create(ctx, object); err != nil {
			s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
		}
		s.created = append(s.created, object)
	}
}

func (s *story) untilResults(ctx context.Context, folder string, enough int) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("there are %d results", enough), func(context.Context) (string, error) {
		found, err := os.ReadDir(filepath.Join(folder, "outbox"))
		if len(found) < enough {
			return fmt.Sprintf("there are %d (%v)", len(found), err), nil
		}
		return "", nil
	})
}

// killRole deletes a running pod of a role, without a warning.
func (s *story) killRole(ctx context.Context, appWrapper, role string) {
	s.t.Helper()
	labels := []string{workload.AppWrapperLabel + "=" + appWrapper, v1alpha1.RoleLabel + "=" + role}
	pods, err := s.api.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: strings.Join(labels, ","), FieldSelector: "status.phase=Running"})
	if err != nil || len(pods.Items) == 0 {
		s.t.Fatalf("no pod %s runs: %v", role, err)
	}
	if err := s.user.Delete(ctx, &pods.Items[0], client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
}

// countFiles counts nothing in a folder that is absent.
func countFiles(t *testing.T, folder string) int {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(found)
}
