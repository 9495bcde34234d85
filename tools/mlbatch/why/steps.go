// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// mostSteps is how many steps of a workflow a look reads.
const mostSteps = 4

// readSteps reads what belongs to the steps of a workflow that have begun and not ended: an AppWrapper for each, and
// the pods of all in one list.
func (r *gathering) readSteps(ctx context.Context) {
	var left []string
	for _, step := range r.Run.Status.Steps {
		switch {
		case step.AppWrapper == nil || step.Ended():
		case len(r.Steps) == mostSteps:
			left = append(left, step.AppWrapper.Name)
		default:
			r.readStep(ctx, step)
		}
	}
	if len(left) > 0 {
		r.Unread = append(r.Unread, fmt.Sprintf("more than %d steps are at work: ask about AppWrapper %s, too", mostSteps, strings.Join(left, ", ")))
	}
	if len(r.Steps) == 0 {
		return
	}
	r.readPodsOfSteps(ctx)
	r.readWarnings(ctx)
	for i := range r.Steps {
		r.Steps[i].Events = r.Events
		one := gathering{client: r.client, target: r.target, Objects: r.Steps[i].Objects}
		one.readChildren(ctx)
		r.Unread, r.Steps[i].Children = append(r.Unread, one.Unread...), one.Children
	}
}

// readStep reads the AppWrapper of a step, and the queue of the first that waits for quota.
func (r *gathering) readStep(ctx context.Context, step v1alpha1.StepStatus) {
	aw := &v1beta2.AppWrapper{}
	switch err := r.client.Get(ctx, r.key(step.AppWrapper.Name), aw); {
	case apierrors.IsNotFound(err) || err == nil && aw.UID != step.AppWrapper.UID:
		return
	case err != nil:
		r.unread(err, "AppWrapper "+step.AppWrapper.Name)
		return
	}
	one := gathering{client: r.client, target: r.target, workloads: r.workloads, counted: r.counted}
	one.Objects = explain.Objects{AppWrapper: aw, Absent: map[string]string{}, Now: r.Now}
	one.findWorkload()
	one.readPriority(ctx)
	if queue := r.queueOfSteps(one.queueName()); queue != nil {
		one.LocalQueue, one.ClusterQueues, one.Cohorts = queue.LocalQueue, queue.ClusterQueues, queue.Cohorts
	} else {
		one.readQueues(ctx)
	}
	r.Unread, one.Unread = append(r.Unread, one.Unread...), nil
	r.Steps = append(r.Steps, explain.Step{Name: step.Name, Objects: one.Objects})
}

// queueOfSteps has the queue of a name, if that of an earlier step was read.
func (r *gathering) queueOfSteps(name string) *explain.Objects {
	for i := range r.Steps {
		if queue := r.Steps[i].LocalQueue; queue != nil && queue.Name == name {
			return &r.Steps[i].Objects
		}
	}
	return nil
}

func (r *gathering) readPodsOfSteps(ctx context.Context) {
	pods, err := clusterstate.List[corev1.Pod](ctx, r.client, &corev1.PodList{}, client.InNamespace(r.target.Namespace), client.MatchingLabels{v1alpha1.RunLabel: r.Run.Name})
	if err != nil {
		r.unread(err, "the pods")
		return
	}
	for i := range r.Steps {
		step := &r.Steps[i]
		for _, pod := range pods {
			if pod.Labels[v1beta2.AppWrapperLabel] == step.AppWrapper.Name {
				step.Pods = append(step.Pods, pod)
			}
		}
		if len(step.Pods) == 0 {
			step.Absent["Pod"] = "of AppWrapper " + step.AppWrapper.Name
		}
	}
}
