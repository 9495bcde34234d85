// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package same_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/same/slot"
	"github.com/mlbatch/mlbatch/test/same/transcript"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// disturb does once what a text says, as soon as a pod is as it says: "delete ended SLOT", "drain ready SLOT",
// "lose ready SLOT".
func (w *world) disturb(ctx context.Context, text, namespace string) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return
	}
	pod, err := w.await(ctx, words[1], words[2], namespace)
	if err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience.For(2 * time.Second)): // operators have taken note
		}
		w.record(namespace, func(t *transcript.Transcript) { t.Note("disturbed: "+text, time.Now()) })
		err = w.act(ctx, words[0], pod)
	}
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("cannot disturb %s: %v", namespace, err)
	}
}

// await waits until a pod is ready or has ended.
func (w *world) await(ctx context.Context, state, of, namespace string) (found *corev1.Pod, err error) {
	err = sandbox.Within(ctx, patience.For(limit), func() error {
		pods := &corev1.PodList{}
		if err := w.admin.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; slot.Of(pod).String() == of && is(pod, state) {
				found = pod
				return nil
			}
		}
		return fmt.Errorf("no pod of %s is %s", of, state)
	})
	return found, err
}

func is(pod *corev1.Pod, state string) bool {
	if state == "ended" {
		return pod.Status.Phase == corev1.PodSucceeded
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func (w *world) act(ctx context.Context, what string, pod *corev1.Pod) error {
	program, restart := strings.CutPrefix(what, "restart:")
	switch {
	case restart: // another disturbance may have killed it a moment ago
		return sandbox.Within(ctx, patience.For(limit), func() error { return w.restart(ctx, program) })
	case what == "delete":
		return w.deletePod(ctx, pod)
	case what == "drain":
		return w.drain(ctx, pod)
	case what == "lose":
		return w.nodes.Lose(ctx, pod)
	}
	return fmt.Errorf("nobody can %s", what)
}

// restart kills the pods of an operator, or of our controller.
func (w *world) restart(ctx context.Context, program string) error {
	pods := &corev1.PodList{}
	if err := w.admin.List(ctx, pods, client.InNamespace(platform.Namespace)); err != nil {
		return err
	}
	killed := 0
	for i := range pods.Items {
		if strings.Contains(pods.Items[i].Name, program) {
			killed++
			if err := client.IgnoreNotFound(w.admin.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0))); err != nil {
				return err
			}
		}
	}
	if killed == 0 {
		return fmt.Errorf("no pod is called %s", program)
	}
	return nil
}

func (w *world) deletePod(ctx context.Context, pod *corev1.Pod) error {
	return client.IgnoreNotFound(w.admin.Delete(ctx, pod))
}

// drain does what kubectl drain does with the pods of one namespace.
func (w *world) drain(ctx context.Context, pod *corev1.Pod) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
	if err := w.cordon(ctx, node, true); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := w.admin.List(ctx, pods, client.InNamespace(pod.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		one := &pods.Items[i]
		if one.Spec.NodeName != node.Name {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}
		if err := w.admin.SubResource("eviction").Create(ctx, one, eviction); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	time.AfterFunc(20*time.Second, func() { _ = w.cordon(ctx, node, false) }) // others need it
	return nil
}

func (w *world) cordon(ctx context.Context, node *corev1.Node, cordoned bool) error {
	return w.admin.Patch(ctx, node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, cordoned)))
}
