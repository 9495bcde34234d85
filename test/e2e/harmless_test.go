// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Members write some things that the platform does not judge. None of them gets them more than
// their quota, or keeps others from theirs.
func TestWhatIsNotJudgedHarmsNobody(t *testing.T) {
	testenv.Test(t, features.New("harmless").Assess("quota is held for it, and others run", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-serving", "sven", needs.SimulatedNodes, needs.Gangs)
		others := tell(t, cfg, "e2e-rejected", "ron", needs.SimulatedNodes)

		never := &podgroup.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "never"}, Spec: podgroup.PodGroupSpec{MinMember: 100}}
		s.create(ctx, never)
		gang := wrapped("gang", inGroup(gpuJobs("gang", 2, "2"), "never"), nil)
		elsewhere := wrapped("elsewhere", scheduledBy(gpuJobs("elsewhere", 1, "2"), corev1.DefaultSchedulerName), nil)
		nobody := wrapped("nobody", actsAs(gpuJobs("nobody", 1, "2"), "appwrapper-controller-manager"), nil)
		for _, aw := range []*workload.AppWrapper{gang, elsewhere, nobody} {
			aw.Annotations = map[string]string{workload.AdmissionGracePeriodDurationAnnotation: "1h", workload.WarmupGracePeriodDurationAnnotation: "1h"}
			s.create(ctx, aw)
		}
		theirs := wrapped("theirs", gpuJobs("theirs", 1, "8"), nil)
		others.runs(ctx, theirs)
		others.untilRunning(ctx, "theirs", 1)
		s.untilRunning(ctx, "elsewhere", 1)
		s.untilReserved(ctx, gpu, "8") // also for what has no node, or no pod

		s.until(ctx, "the gang that is never complete has no node", func(ctx context.Context) (string, error) { return s.waitsForItsGang(ctx, "gang") })
		s.until(ctx, "the ServiceAccount of another namespace is not found", func(ctx context.Context) (string, error) { return s.getsNoPod(ctx, "nobody") })
		s.remove(ctx, elsewhere)
		s.waitsBecause(ctx, wrapped("racked", withTopology(gpuJobs("racked", 1, "2"), "rack"), nil), "does not support TopologyAwareScheduling")
		return ctx
	}).Feature())
}

// inGroup has the pods of a Job wait for a PodGroup.
func inGroup(job *batchv1.Job, name string) *batchv1.Job {
	job.Spec.Template.Labels = map[string]string{podgroup.PodGroupLabel: name}
	return job
}

func scheduledBy(job *batchv1.Job, scheduler string) *batchv1.Job {
	job.Spec.Template.Spec.SchedulerName = scheduler
	return job
}

func actsAs(job *batchv1.Job, account string) *batchv1.Job {
	job.Spec.Template.Spec.ServiceAccountName = account
	return job
}

// withTopology asks Kueue for nodes of one domain.
func withTopology(job *batchv1.Job, level string) *batchv1.Job {
	job.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": level}
	return job
}

// waitsForItsGang returns "" once the scheduler has looked at the pods of an AppWrapper, and none
// has a node.
func (s *story) waitsForItsGang(ctx context.Context, appWrapper string) (string, error) {
	pods, err := s.pods(ctx, appWrapper)
	if err != nil {
		return "", err
	}
	waiting := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			return "", broken("pod " + p.Name + " is on node " + p.Spec.NodeName)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				waiting++
			}
		}
	}
	if waiting < 2 {
		return fmt.Sprintf("%d of %d pods wait", waiting, len(pods)), nil
	}
	return "", nil
}

// getsNoPod returns "" once the Job controller has said that it cannot create the pod of a Job.
func (s *story) getsNoPod(ctx context.Context, name string) (string, error) {
	events := &corev1.EventList{}
	if err := s.admin.List(ctx, events); err != nil {
		return "", err
	}
	pods, err := s.pods(ctx, name)
	if err != nil || len(pods) > 0 {
		return "", broken(fmt.Sprintf("it has %d pods (%v)", len(pods), err))
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == name && e.Reason == "FailedCreate" {
			return "", nil
		}
	}
	return "no event says so", nil
}
