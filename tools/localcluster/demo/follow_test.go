// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func builder(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, workload.AddToScheme, v1alpha1.AddToScheme, kueue.AddToScheme, podgroup.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme)
}

func appWrapper(phase workload.AppWrapperPhase, conditions ...metav1.Condition) *workload.AppWrapper {
	return &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "digits", UID: "uid"},
		Status:     workload.AppWrapperStatus{Phase: phase, Conditions: conditions},
	}
}

func kueueWorkload(owner string, conditions ...metav1.Condition) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "w-" + owner, OwnerReferences: []metav1.OwnerReference{{UID: "uid", Name: owner}}},
		Spec:       kueue.WorkloadSpec{QueueName: "default-queue"},
		Status:     kueue.WorkloadStatus{Conditions: conditions},
	}
}

func pod(phase corev1.PodPhase, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "digits-master-0", Labels: map[string]string{workload.AppWrapperLabel: "digits"}},
		Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "gangs", Containers: []corev1.Container{{Image: "image:1"}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func isTrue(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func newFollower() *follower {
	return &follower{job: appWrapper(""), began: time.Now(), reported: map[string]bool{}, report: newReport()}
}

func TestTheTimelineReportsEachChangeOnce(t *testing.T) {
	f := newFollower()
	for _, now := range []struct {
		world []client.Object
		ended bool
	}{
		{[]client.Object{appWrapper(workload.AppWrapperSuspended), kueueWorkload("digits")}, false},
		{[]client.Object{appWrapper(workload.AppWrapperSuspended), kueueWorkload("digits")}, false},
		{[]client.Object{
			appWrapper(workload.AppWrapperRunning, isTrue("Resources", string(workload.AppWrapperRunning), "its pods are there")),
			kueueWorkload("digits", isTrue(kueue.WorkloadQuotaReserved, "x", "in blue"), isTrue(kueue.WorkloadAdmitted, "x", "it fits")),
			&podgroup.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "digits"}, Spec: podgroup.PodGroupSpec{MinMember: 2}},
			pod(corev1.PodRunning, "node"),
		}, false},
		{[]client.Object{appWrapper(workload.AppWrapperSucceeded), pod(corev1.PodSucceeded, "node")}, true},
	} {
		f.admin = builder(t).WithObjects(now.world...).Build()
		ended, err := f.look(t.Context())
		if err != nil || ended != now.ended {
			t.Fatalf("ended %t, %v", ended, err)
		}
	}
	want := [][2]string{
		{"queued", "Workload w-digits waits in LocalQueue default-queue"},
		{"AppWrapper Suspended", ""},
		{"quota reserved", "in blue"},
		{"admitted by Kueue", "it fits"},
		{"gang formed", "PodGroup digits: all 2 pods are placed together or none"},
		{"pod digits-master-0 scheduled", "by gangs to node node"},
		{"pod digits-master-0 runs", "image image:1"},
		{"AppWrapper Running", "its pods are there"},
		{"pod digits-master-0 succeeded", ""},
		{"AppWrapper Succeeded", ""},
	}
	var got [][2]string
	for _, h := range f.report.Timeline {
		got = append(got, [2]string{h.What, h.Why})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOtherObjectsAreNotReported(t *testing.T) {
	f := newFollower()
	other := kueueWorkload("other")
	other.OwnerReferences[0].UID = "another"
	stranger := pod(corev1.PodRunning, "node")
	stranger.Labels = nil
	f.admin = builder(t).WithObjects(appWrapper(""), other, stranger, kueueOrphan()).Build()
	if _, err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.report.Timeline) > 0 {
		t.Errorf("the timeline tells of %v", f.report.Timeline)
	}
}

func kueueOrphan() *kueue.Workload {
	w := kueueWorkload("orphan")
	w.OwnerReferences = nil
	return w
}

func TestAFailedJobHasEnded(t *testing.T) {
	f := newFollower()
	f.admin = builder(t).WithObjects(appWrapper(workload.AppWrapperFailed)).Build()
	if ended, err := f.look(t.Context()); err != nil || !ended {
		t.Errorf("ended %t, %v", ended, err)
	}
}

func TestTheResultOfTheTrainingIsChecked(t *testing.T) {
	const at = "2026-11-20T10:00:00Z "
	training := func(size, sum, last string) string {
		return at + `{"event": "start", "worldSize": ` + size + "}\n" + at + `{"event": "allreduce", "sum": ` + sum + "}\n" +
			at + `{"event": "done", "firstLoss": 2, "lastLoss": ` + last + "}\n"
	}
	const alone = "two processes did not train together"
	for name, c := range map[string]struct {
		phase workload.AppWrapperPhase
		log   string
		want  string
	}{
		"two processes learned":        {workload.AppWrapperSucceeded, training("2", "3", "0.1"), ""},
		"the loss did not halve":       {workload.AppWrapperSucceeded, training("2", "3", "1"), alone},
		"the sum is wrong":             {workload.AppWrapperSucceeded, training("2", "1", "0.1"), alone},
		"one process was alone":        {workload.AppWrapperSucceeded, training("1", "3", "0.1"), alone},
		"nobody said that it was done": {workload.AppWrapperSucceeded, at + "hello\n", "did not print the end of the training"},
		"the job failed":               {workload.AppWrapperFailed, "a\nout of memory\n", "the job ended as Failed; the last lines of its first pod:\n  a\n  out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollower()
			f.job.Status.Phase = c.phase
			err := f.judge(c.log)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWhyFollowingTheJobFailed(t *testing.T) {
	f := newFollower()
	f.job.Status.Phase = workload.AppWrapperRunning
	if got, want := f.explain(t.Context(), context.DeadlineExceeded).Error(), "the job did not end within 10m0s: it is Running"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.explain(t.Context(), errors.New("not found")).Error(), "cannot follow the job: not found"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, want := f.explain(ctx, ctx.Err()).Error(), "cannot follow the job: context canceled"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheDemoToleratesAShortOutage(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		since time.Duration
		want  bool
	}{
		"refused a moment ago":     {errors.New("connection refused"), time.Second, false},
		"refused for too long":     {errors.New("connection refused"), outageTimeout + time.Second, true},
		"somebody deleted the job": {apierrors.NewNotFound(schema.GroupResource{}, "digits"), time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, seen := newFollower(), time.Now().Add(-c.since)
			f.admin = builder(t).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return c.err
				},
			}).Build()
			ended, err := poll(t.Context(), &seen, f.look)
			if ended || (err != nil) != c.want {
				t.Errorf("ended %t, %v", ended, err)
			}
		})
	}
}

func TestANewRoleBindingIsWaitedFor(t *testing.T) {
	asked := 0
	refuseOnce := interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if asked++; asked == 1 {
			return apierrors.NewForbidden(schema.GroupResource{}, "digits", errors.New("no role"))
		}
		return api.Create(ctx, o, opts...)
	}}
	a := access{user: builder(t).WithInterceptorFuncs(refuseOnce).Build()}
	if err := a.submit(t.Context(), appWrapper("")); err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("created %d times", asked)
	}
}

func TestTheJobOfAnEarlierDemoIsReplaced(t *testing.T) {
	earlier := appWrapper(workload.AppWrapperSucceeded)
	a := access{user: builder(t).WithObjects(earlier).Build()}
	job := appWrapper("")
	job.Labels = map[string]string{"new": "yes"}
	if err := a.submit(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	got := &workload.AppWrapper{}
	if err := a.user.Get(t.Context(), client.ObjectKeyFromObject(job), got); err != nil || got.Labels["new"] != "yes" {
		t.Errorf("the job is %v (%v)", got.Labels, err)
	}
}

func TestTheErrorOfARefusedJobNamesTheUser(t *testing.T) {
	refuse := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("forbidden")
	}}
	err := access{user: builder(t).WithInterceptorFuncs(refuse).Build()}.submit(t.Context(), appWrapper(""))
	if err == nil || err.Error() != "cannot submit digits as alice: forbidden" {
		t.Errorf("got %v", err)
	}
}
