// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package counted_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/counted/recount"
	"github.com/mlbatch/mlbatch/test/patience"
)

const (
	// settling is how long nothing must happen before a spec has all its pods.
	settling = 2 * time.Second
	// settleLimit bounds the life of one spec that has pods but does not settle.
	settleLimit = time.Minute
	// tooLate is when a spec that has no pods is not expected to get any. KubeRay calls one head
	// after the other, and no simulated head answers.
	tooLate    = 6 * time.Second
	tooLateRay = 20 * time.Second
	// confirming is how long an excess must last. An operator may create a pod of an object that
	// has just ended, and delete it at once.
	confirming = 10 * time.Second
	removal    = 3 * time.Minute
)

// life is one object in an AppWrapper, alone in its namespace.
type life struct {
	*testing.T
	namespace string
	object    *unstructured.Unstructured
	what      string
	most      int // pods at a time
	end       string
}

// live returns why the object was refused.
func (l *life) live(ctx context.Context) error {
	user, err := asMember()
	if err != nil {
		l.Error(err)
		return nil
	}
	aw := &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.object.GetName(), Namespace: l.namespace, Labels: map[string]string{workload.QueueNameLabel: "default-queue"},
			Annotations: map[string]string{workload.RetryLimitAnnotation: "0", workload.FailureGracePeriodDurationAnnotation: "1s"},
		},
		Spec: workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw(l.object)}}}},
	}
	now := &corev1.PodList{}
	if err := admin.List(ctx, now, client.InNamespace(l.namespace)); err != nil {
		l.Error(err)
		return nil
	}
	if err := user.Create(ctx, aw); err != nil {
		return err
	}
	l.watch(ctx, now.ResourceVersion, aw)
	l.end = string(aw.Status.Phase)
	for _, c := range aw.Status.Conditions {
		l.end += fmt.Sprintf(", %s %s: %s", c.Type, c.Status, c.Message)
	}
	l.remove(ctx, user, aw)
	return nil
}

// watch compares pods with quota whenever a pod changes, until nothing happens any more.
func (l *life) watch(ctx context.Context, from string, aw *workload.AppWrapper) {
	ctx, cancel := context.WithTimeout(ctx, patience.For(settleLimit))
	defer cancel()
	events, err := admin.Watch(ctx, &corev1.PodList{}, client.InNamespace(l.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	if err != nil {
		l.Error(err)
		return
	}
	defer events.Stop()
	limit := time.Now().Add(patience.For(tooLate))
	if l.object.GroupVersionKind().Group == "ray.io" {
		limit = time.Now().Add(patience.For(tooLateRay))
	}
	for {
		select {
		case event, open := <-events.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok {
				if l.exceeds(ctx, pod.ResourceVersion) != "" {
					l.confirm(ctx)
				}
			} else if !open {
				return
			}
		case <-time.After(patience.For(settling)):
			if done := l.settled(ctx, aw); done || l.most == 0 && time.Now().After(limit) {
				return
			}
		}
	}
}

func (l *life) settled(ctx context.Context, aw *workload.AppWrapper) bool {
	if err := admin.Get(ctx, client.ObjectKeyFromObject(aw), aw); err != nil {
		return true
	}
	phase := aw.Status.Phase
	return phase == workload.AppWrapperSucceeded || phase == workload.AppWrapperFailed || phase == workload.AppWrapperRunning && l.most > 0
}

// confirm fails the test if there are too many pods for some time.
func (l *life) confirm(ctx context.Context) {
	excess := ""
	err := patience.PollFor(ctx, time.Second/5, confirming, func(ctx context.Context) (bool, error) {
		excess = l.exceeds(ctx, "")
		return excess == "", nil
	})
	if err != nil && excess != "" && !l.Failed() {
		l.Errorf("%s\n%s", l.what, excess)
	}
}

// exceeds says how pods exceed what Kueue has counted, at one revision or now.
func (l *life) exceeds(ctx context.Context, revision string) string {
	at := func() *client.ListOptions {
		if revision == "" {
			return &client.ListOptions{Namespace: l.namespace}
		}
		return &client.ListOptions{Namespace: l.namespace, Raw: &metav1.ListOptions{ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
	}
	pods, workloads := &corev1.PodList{}, &kueue.WorkloadList{}
	if err := admin.List(ctx, pods, at()); err != nil {
		l.report(ctx, err)
		return ""
	}
	revision = pods.ResourceVersion
	if err := admin.List(ctx, workloads, at()); err != nil {
		l.report(ctx, err)
		return ""
	}
	alive, reserved := recount.Alive(pods.Items), recount.Reserved(workloads.Items)
	l.most = max(l.most, alive.Pods)
	if !alive.Exceeds(reserved) {
		return ""
	}
	return fmt.Sprintf("at revision %s, %d pods have %d devices, but Kueue has counted %d with %d:\n%s", revision, alive.Pods, alive.Devices, reserved.Pods, reserved.Devices, names(pods.Items))
}

// report fails the test, unless the time of this life is over.
func (l *life) report(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.Error(err)
	}
}

func names(pods []corev1.Pod) (text string) {
	for _, p := range pods {
		text += fmt.Sprintf("%s %s deleted: %t\n", p.Name, p.Status.Phase, p.DeletionTimestamp != nil)
	}
	return text
}

// remove waits until the namespace is as it was.
func (l *life) remove(ctx context.Context, user client.Client, aw *workload.AppWrapper) {
	if err := user.Delete(ctx, aw); client.IgnoreNotFound(err) != nil {
		l.Error(err)
		return
	}
	left := "nothing was looked at"
	err := patience.PollFor(ctx, 200*time.Millisecond, removal, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := admin.List(ctx, pods, client.InNamespace(l.namespace)); err != nil {
			return false, err
		}
		err := admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)
		left = fmt.Sprintf("AppWrapper (%v), pods:\n%s", err, names(pods.Items))
		return len(pods.Items) == 0 && apierrors.IsNotFound(err), nil
	})
	if err != nil {
		l.Errorf("%s is not gone: %v; %s", l.what, err, left)
	}
}
