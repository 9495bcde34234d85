// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// queues are scenes in which a queue is not as it should be, or does not take the work.
var queues = map[explain.Code]scene{
	"LocalQueueMissing":   {set: func(p *place) { p.submit("train", inQueue("nobody")) }},
	"ClusterQueueMissing": {set: func(p *place) { p.localQueue(queueName, "nothing"); p.submit("train") }},
	"LocalQueueStopped": {set: func(p *place) {
		p.queue()
		p.patch(&kueue.LocalQueue{ObjectMeta: p.named(queueName)}, `{"spec": {"stopPolicy": "Hold"}}`)
		p.untilClosed(&kueue.LocalQueue{ObjectMeta: p.named(queueName)})
		p.submit("train")
	}},
	"ClusterQueueStopped": {set: func(p *place) { p.queue(stopped); p.submit("train") }},
	"QueueTerminating": {set: func(p *place) {
		p.queue()
		p.started("first")
		p.remove(p.clusterQueue())
		p.untilClosed(p.clusterQueue())
		p.submit("train")
	}},
	"QueueLacksFlavor": {set: func(p *place) { p.queue(ofFlavor("nothing", "4")); p.submit("train") }},
	"QueueLacksTopology": {set: func(p *place) {
		p.flavorOf("racks", new(kueue.TopologyReference("nothing")))
		p.queue(ofFlavor(p.namespace, "4"))
		p.submit("train")
	}},
	"QueueLacksCheck":        {set: func(p *place) { p.queue(checking("nothing")); p.submit("train") }},
	"QueueCheckInactive":     {set: func(p *place) { p.check(); p.queue(checking(p.namespace)); p.submit("train") }},
	"AdmissionCheck":         {set: func(p *place) { p.checked(); p.submit("train") }},
	"AdmissionCheckRejected": {set: func(p *place) { p.checked(); p.submit("train"); p.answers("Rejected", "there is no room in the cloud") }},
	"AdmissionCheckRetry":    {set: func(p *place) { p.checked(); p.submit("train"); p.answers("Retry", "the cloud is busy") }},
	"EvictedByStop": {set: func(p *place) {
		p.queue()
		p.started("train")
		p.patch(p.clusterQueue(), `{"spec": {"stopPolicy": "HoldAndDrain"}}`)
	}},
	"UnknownPriority": {set: func(p *place) { p.queue(); p.submit("train", labelled(priorityLabel, "nobody")) }},
	"NamespaceNotAdmitted": {set: func(p *place) {
		p.queue(func(q *kueue.ClusterQueue) {
			q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/team": "red"}}
		})
		p.submit("train")
	}},
	"BehindInStrictQueue": {set: func(p *place) {
		p.queue(func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.StrictFIFO })
		p.started("first", cpu("3"))
		p.submit("second", cpu("3"))
		p.its("second")
		p.submit("train")
	}},
	"Deactivated": {set: func(p *place) {
		p.queue()
		p.started("train")
		p.patch(p.its("train"), `{"spec": {"active": false}}`)
	}},
	"MaxExecutionTime": {set: func(p *place) { p.queue(); p.submit("train", labelled("kueue.x-k8s.io/max-exec-time-seconds", "1")) }},
	"NotQueued": {set: func(p *place) {
		p.queue()
		p.kind = "pytorchjob"
		template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "pytorch", "image": "registry.example/work:1"}}}}
		p.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": map[string]any{"name": "train"},
			"spec": map[string]any{"pytorchReplicaSpecs": map[string]any{"Master": map[string]any{"replicas": int64(1), "template": template}}},
		}})
	}},
	"NoWorkload": {set: func(p *place) {
		p.forbid(admissionv1.Create, kueue.SchemeGroupVersion.Group, kueue.SchemeGroupVersion.Version, "workloads", "false")
		p.queue()
		p.submit("train")
	}},
	"NotStarted": {later: later, set: func(p *place) {
		p.forbid(admissionv1.Update, workload.GroupVersion.Group, workload.GroupVersion.Version, "appwrappers", "object.spec.suspend")
		p.queue()
		p.submit("train")
	}},
	"OtherController": {set: func(p *place) {
		p.queue()
		p.submit("train", func(w *work) { w.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") })
	}},
}

// checking makes a queue want an admission check.
func checking(name string) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) {
		q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueue.AdmissionCheckReference(name)}}}
	}
}

// check makes an admission check, for which nobody is there.
func (p *place) check() *kueue.AdmissionCheck {
	p.Helper()
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/cloud"}}
	p.create(check)
	return check
}

// untilClosed waits until Kueue has taken note that a queue takes no more work.
func (p *place) untilClosed(queue client.Object) {
	p.Helper()
	p.until(func() error {
		if err := p.admin.Get(p.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		var conditions []metav1.Condition
		switch q := queue.(type) {
		case *kueue.ClusterQueue:
			conditions = q.Status.Conditions
		case *kueue.LocalQueue:
			conditions = q.Status.Conditions
		}
		if !meta.IsStatusConditionFalse(conditions, kueue.ClusterQueueActive) {
			return fmt.Errorf("%s is open: %v", queue.GetName(), conditions)
		}
		return nil
	})
}

// checked makes a queue with an admission check, whose controller is this test.
func (p *place) checked() {
	p.Helper()
	p.patchStatus(p.check(), `{"status": {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "the cloud is there", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	p.queue(checking(p.namespace))
}

// answers is what the admission check says of the work.
func (p *place) answers(state, message string) {
	p.Helper()
	p.until(func() error {
		w := p.its("train")
		if len(w.Status.AdmissionChecks) == 0 {
			return errors.New("no admission check is wanted")
		}
		check := &w.Status.AdmissionChecks[0]
		check.State, check.Message, check.LastTransitionTime = kueue.CheckState(state), message, metav1.Now()
		if state == string(kueue.CheckStateRetry) {
			check.RequeueAfterSeconds = new(int32(3600))
		}
		return p.admin.Status().Update(p.Context(), w)
	})
}
