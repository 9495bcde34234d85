// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package turns_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// random is a cluster as preemption/print writes it.
type random struct {
	Seed    uint64
	Cohorts []kueue.Cohort
	Queues  []kueue.ClusterQueue
	Jobs    []job
}

type job struct {
	Name, Queue string
	GPUs, CPUs  int64
	Priority    int32
}

// classes are the PriorityClasses that have the priorities of random jobs.
var classes = map[int32]string{-5: "low-priority", 0: "default-priority", 5: "high-priority"}

// clusters lets the simulation draw the clusters of seeds.
func clusters(t *testing.T, seeds []string) []random {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./preemption/print"}, seeds...)...)
	cmd.Dir = "../../tools/artifacts/components/kueue"
	out, err := cmd.Output()
	var drawn []random
	if err == nil {
		err = json.Unmarshal(out, &drawn)
	}
	if err != nil {
		t.Fatalf("the clusters cannot be drawn: %v", err)
	}
	return drawn
}

// play is a random cluster whose pods take so long to end. Plays share nothing but the flavors,
// so many can be on one cluster at the same time.
type play struct {
	random
	stop string
}

func (p play) String() string { return fmt.Sprintf("seed %d, pods end after %s", p.Seed, p.stop) }

// name makes a name of the play's own.
func (p play) name(of string) string { return fmt.Sprintf("s%d-%s-%s", p.Seed, p.stop, of) }

// create creates cohorts, queues and namespaces.
func (p play) create(t *testing.T, admin client.Client, within kueue.PreemptionPolicy) {
	t.Helper()
	for _, c := range p.Cohorts {
		c.Name = p.name(c.Name)
		if c.Spec.ParentName != "" {
			c.Spec.ParentName = kueue.CohortReference(p.name(string(c.Spec.ParentName)))
		}
		sandbox.Create(t, admin, &c)
	}
	for _, q := range p.Queues {
		q.Name = p.name(q.Name)
		q.Spec.CohortName = kueue.CohortReference(p.name(string(q.Spec.CohortName)))
		q.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: within, ReclaimWithinCohort: kueue.PreemptionPolicyAny}
		sandbox.Create(t, admin, &q)
		sandbox.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: sandbox.Team}})
		sandbox.Create(t, admin, &kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Namespace: q.Name, Name: "default-queue"},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(q.Name)},
		})
	}
}

// createFlavors creates the flavors that all plays have quota of. All simulated nodes belong to each.
func createFlavors(t *testing.T, admin client.Client) {
	t.Helper()
	for _, name := range []string{"h100", "a100"} {
		sandbox.Create(t, admin, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{
			Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
		}})
	}
}

// submit lets the jobs arrive, each some time after the one before.
func (p play) submit(t *testing.T, admin client.Client, apart time.Duration) {
	for _, j := range p.Jobs {
		if err := admin.Create(t.Context(), p.wrapped(j)); err != nil {
			t.Errorf("%s: cannot create %s: %v", p, j.Name, err)
			return
		}
		time.Sleep(apart)
	}
}

// wrapped is a job of one pod that runs without end.
func (p play) wrapped(j job) *workload.AppWrapper {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(j.CPUs, resource.DecimalSI)}
	if j.GPUs > 0 {
		requests[gpu] = *resource.NewQuantity(j.GPUs, resource.DecimalSI)
	}
	made := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: j.Name},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"localcluster.mlbatch.dev/stop-for": p.stop}},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: classes[j.Priority], Containers: []corev1.Container{
				{Name: "main", Image: "registry.example/work:1", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}},
			}},
		}},
	}
	raw, err := json.Marshal(made)
	if err != nil {
		panic(err) // a Job is JSON
	}
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name(j.Queue), Name: j.Name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": "default-queue"}},
		Spec: workload.AppWrapperSpec{Suspend: true, Components: []workload.AppWrapperComponent{
			{Template: runtime.RawExtension{Raw: raw}},
		}},
	}
}

// of is the play to which a namespace belongs.
func of(plays []play, namespace string) (play, bool) {
	i := slices.IndexFunc(plays, func(p play) bool { return strings.HasPrefix(namespace, p.name("")) })
	if i < 0 {
		return play{}, false
	}
	return plays[i], true
}
