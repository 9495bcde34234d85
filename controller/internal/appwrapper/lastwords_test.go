// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// caching makes AppWrappers and pods those that the caches have.
func (w *world) caching() {
	w.reconciler.cached = slimReader{w.api, newInterner()}
}

type slimReader struct {
	client.Reader
	in *interner
}

func (r slimReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	if aw, ok := object.(*v1beta2.AppWrapper); ok && err == nil {
		_, err = r.in.slimAppWrapper(aw)
	}
	return err
}

func (r slimReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if pods, ok := list.(*corev1.PodList); ok {
		for i := range pods.Items {
			pods.Items[i] = *r.in.slimPod(&pods.Items[i])
		}
	}
	return err
}

// crashes lets the one pod of the Job end with these last words, and the Job fail.
func (w *world) crashes(attempt int, words string) {
	w.Helper()
	w.crashesOn("", attempt, words)
}

func (w *world) crashesOn(node string, attempt int, words string) {
	w.Helper()
	p := pod(fmt.Sprintf("train-%d", attempt), corev1.PodFailed)
	p.Labels[v1beta2.AppWrapperPodSetLabel] = "0"
	p.UID, p.Spec.NodeName = "", node
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 3, Message: words, StartedAt: metav1.NewTime(w.now.Add(-time.Minute)), FinishedAt: metav1.NewTime(w.now)}}}}
	w.add(p)
	w.setJobCondition("j", "Failed")
	w.settle()
	if err := w.api.Delete(w.Context(), p); err != nil {
		w.Fatal(err)
	}
	w.settle()
	w.now = w.now.Add(2 * time.Minute)
	w.settle()
}

func TestLastWordsSurviveThePodsAndTheCache(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.caching()
	w.settle()
	w.crashes(1, "KeyError: 'x'")
	first := len(w.liveReads)
	w.crashes(2, "OSError: disk")

	var said []string
	for _, a := range w.get().Status.LastAttempts {
		said = append(said, fmt.Sprintf("%s %s rank %q %ds %d: %s", a.Cause, a.Pod, a.Rank, *a.RanSeconds, a.ExitCode, a.LastWords))
	}
	want := []string{
		`ComponentFailed train-1 rank "0" 60s 3: KeyError: 'x'`,
		`ComponentFailed train-2 rank "0" 60s 3: OSError: disk`,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slim := w.get()
	if _, err := newInterner().slimAppWrapper(slim); err != nil || slim.Status.LastAttempts[1].LastWords != "" {
		t.Errorf("the cache keeps the text of programs, %v", err)
	}
	if extra := slices.Index(w.liveReads[first:], "get a"); extra < 0 {
		t.Error("the earlier words were not read")
	}
}

func TestATeamCanKeepLastWordsToItself(t *testing.T) {
	w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
	w.change(func(aw *v1beta2.AppWrapper) { aw.Annotations = map[string]string{v1beta2.LastWordsAnnotation: "false"} })
	w.caching()
	w.settle()
	w.crashes(1, "a secret")
	if all := w.get().Status.LastAttempts; len(all) != 1 || all[0].LastWords != "" {
		t.Errorf("%+v", all)
	}
}
