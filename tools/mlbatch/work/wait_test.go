// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func TestWaitEndsWithTheWork(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	for name, want := range map[string]string{
		"red/done":    "",
		"red/lost":    "AppWrapper lost has failed: 1 pod failed",
		"blue/survey": "RayJob survey has failed: see 'mlbatch why survey'",
	} {
		namespace, name, _ := strings.Cut(name, "/")
		var progress bytes.Buffer
		err := work.WaitWithPause(t.Context(), c, found(t, c, namespace, name), &progress, time.Millisecond)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wording.Wanted(t, err, want)
	}
}

// The end of a bare job is that of its Workload.
func TestWaitFollowsABareJob(t *testing.T) {
	replaced := func(t *testing.T, c client.Client, w *kueue.Workload) { // an elastic job runs on
		next := w.DeepCopy()
		next.Name, next.UID, next.ResourceVersion, next.CreationTimestamp = "another", "another", "", metav1.NewTime(now)
		next.Status.Conditions = append(next.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonFailed})
		if err := c.Create(t.Context(), next); err != nil {
			t.Error(err)
		}
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: "WorkloadSliceReplaced"})
		if err := c.Update(t.Context(), w); err != nil {
			t.Error(err)
		}
	}
	for want, change := range map[string]func(*testing.T, client.Client, *kueue.Workload){
		"PyTorchJob train has failed: see 'mlbatch why train'": replaced,
		"nobody starts PyTorchJob train again: the Workload was deactivated: set spec.active of the Workload to true, or submit it again": func(t *testing.T, c client.Client, w *kueue.Workload) {
			active := false
			w.Spec.Active = &active
			if err := c.Update(t.Context(), w); err != nil {
				t.Error(err)
			}
		},
		"": func(t *testing.T, c client.Client, w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded})
			if err := c.Update(t.Context(), w); err != nil {
				t.Error(err)
			}
		},
		"PyTorchJob train was deleted before its end was seen": func(t *testing.T, c client.Client, w *kueue.Workload) {
			if err := c.Delete(t.Context(), w); err != nil {
				t.Error(err)
			}
		},
	} {
		looks := 0
		var c client.WithWatch
		c = cluster(t, interceptor.Funcs{Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := inner.Get(ctx, key, o, options...)
			w, is := o.(*kueue.Workload)
			if is {
				looks++
			}
			if is && looks == 2 { // the third look sees it
				change(t, c, w.DeepCopy())
			}
			return err
		}})
		var progress bytes.Buffer
		err := work.WaitWithPause(t.Context(), c, found(t, c, "blue", "train"), &progress, time.Millisecond)
		if want == "" && (err != nil || strings.Count(progress.String(), "Admitted\n") != 1 || !strings.HasSuffix(progress.String(), " Succeeded\n")) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("got %q, %v", &progress, err)
		}
	}
}

func TestAnInterruptedWaitSaysThatTheWorkContinues(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	objects := found(t, c, "blue", "train")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := work.Wait(ctx, c, objects, &bytes.Buffer{}); !errors.Is(err, work.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}
