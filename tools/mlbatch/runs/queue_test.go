// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

var queueKey = client.ObjectKey{Namespace: "blue", Name: "letters"}

func queueRun(phase v1alpha1.RunPhase) *v1alpha1.Run {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: queueKey.Namespace, Name: queueKey.Name}}
	run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "tasks"}}
	run.Status.Phase = phase
	return run
}

func rolePod(name, role string, phase corev1.PodPhase) *corev1.Pod {
	labels := map[string]string{v1alpha1.RunLabel: queueKey.Name, v1alpha1.RoleLabel: role}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
}

// opened connects to a broker that answers with handle. Only the pod "now" is one that runs.
func opened(t *testing.T, handle http.HandlerFunc) *runs.Queue {
	t.Helper()
	broker := httptest.NewServer(handle)
	t.Cleanup(broker.Close)
	c := cluster(t, interceptor.Funcs{}, queueRun(v1alpha1.RunRunning), rolePod("a-worker", "worker", corev1.PodRunning),
		rolePod("before", "broker", corev1.PodFailed), rolePod("now", "broker", corev1.PodRunning))
	q, err := runs.OpenQueue(t.Context(), c, func(_ context.Context, namespace, pod string, port int) (string, func(), error) {
		if namespace != "blue" || pod != "now" || port != 8080 {
			t.Errorf("it connects to port %d of %s/%s", port, namespace, pod)
		}
		return strings.TrimPrefix(broker.URL, "http://"), func() {}, nil
	}, queueKey)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Workers have no numbers, and the broker's log tells of all tasks.
func TestTheLogOfAQueueIsTheBrokers(t *testing.T) {
	var all []client.Object
	for _, pod := range []*corev1.Pod{rolePod("a-worker", "worker", corev1.PodRunning), rolePod("now", "broker", corev1.PodRunning)} {
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
		all = append(all, pod)
	}
	open := func(_ context.Context, _, pod string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(pod)), nil
	}
	var out strings.Builder
	c := cluster(t, interceptor.Funcs{}, append(all, queueRun(v1alpha1.RunRunning))...)
	if err := runs.Logs(t.Context(), c, open, queueKey, runs.Selection{}, &out); err != nil || out.String() != "now" {
		t.Errorf("got the log of %q: %v", &out, err)
	}
}

func TestAQueueThatCannotBeAsked(t *testing.T) {
	broken := func(context.Context, string, string, int) (string, func(), error) {
		return "", nil, errors.New("no\nway")
	}
	plain := queueRun(v1alpha1.RunRunning)
	plain.Spec.Queue = nil
	for want, objects := range map[string][]client.Object{
		"there is no Run letters in namespace blue: see 'mlbatch list --namespace blue'":                                 nil,
		"Run letters has no queue: only those of api workqueue have one":                                                 {plain},
		"Run letters is Queued: its queue answers when it runs":                                                          {queueRun(v1alpha1.RunQueued)},
		"Run letters is Retrying: its queue answers when it runs":                                                        {queueRun(v1alpha1.RunRetrying), rolePod("b", "broker", corev1.PodPending)},
		"Run letters is Succeeded: its queue answers only while it runs, and its results are in outbox of DataSet tasks": {queueRun(v1alpha1.RunSucceeded)},
		"cannot connect to the queue in pod b: no way":                                                                   {queueRun(v1alpha1.RunRunning), rolePod("b", "broker", corev1.PodRunning)},
	} {
		_, err := runs.OpenQueue(t.Context(), cluster(t, interceptor.Funcs{}, objects...), broken, queueKey)
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestFilesBecomeTasks(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "a b%?é")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	q := opened(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.ContentLength, " ", string(content)))
		if len(got) > 1 {
			http.Error(w, "there is a task of that name", http.StatusConflict)
		}
	})
	var out strings.Builder
	if err := q.Add(t.Context(), []string{file}, &out); err != nil || out.String() != "task a b%?é was added to Run letters\n" || got[0] != "POST /v1/tasks/a b%?é 5 hello" {
		t.Errorf("got %q, printed %q: %v", got, &out, err)
	}
	if err := q.Add(t.Context(), []string{file}, &out); err == nil || err.Error() != "cannot add task a b%?é: there is a task of that name" {
		t.Errorf("got %v", err)
	}
	if err := q.Add(t.Context(), []string{folder}, &out); err == nil || err.Error() != folder+" is no file: name the files of the tasks" {
		t.Errorf("got %v", err)
	}
}

// A task may be no more than its name. Its length is said, too: a broker takes no others.
func TestAnEmptyFileBecomesATask(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	q := opened(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			http.Error(w, fmt.Sprint("its length is ", r.ContentLength), http.StatusLengthRequired)
		}
	})
	var out strings.Builder
	if err := q.Add(t.Context(), []string{file}, &out); err != nil || out.String() != "task empty was added to Run letters\n" {
		t.Errorf("printed %q: %v", &out, err)
	}
}

// What cannot become a task is refused before it is sent.
func TestFilesThatCannotBeTasks(t *testing.T) {
	folder := t.TempDir()
	q := opened(t, func(http.ResponseWriter, *http.Request) { t.Error("the broker was asked") })
	large, pipe, first, second := filepath.Join(folder, "large"), filepath.Join(folder, "pipe"), filepath.Join(folder, "1", "same"), filepath.Join(folder, "2", "same")
	for _, err := range []error{
		os.Mkdir(filepath.Dir(first), 0o755), os.Mkdir(filepath.Dir(second), 0o755), os.WriteFile(first, nil, 0o600), os.WriteFile(second, nil, 0o600),
		os.WriteFile(large, nil, 0o600), os.Truncate(large, queue.MaxBytes+1), syscall.Mkfifo(pipe, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for want, files := range map[string][]string{
		large + " is larger than 256 MiB: a task has at most that":                  {first, large},
		pipe + " is no file: name the files of the tasks":                           {first, pipe},
		first + " and " + second + " would both be task same: rename one":           {first, second},
		"cannot read the task: stat " + folder + "/none: no such file or directory": {first, folder + "/none"},
	} {
		if err := q.Add(t.Context(), files, io.Discard); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestAQueueIsDrained(t *testing.T) {
	asked := ""
	q := opened(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.Method + " " + r.URL.Path })
	var out strings.Builder
	if err := q.Drain(t.Context(), &out); err != nil || asked != "POST /v1/drain" || out.String() != "the queue of Run letters takes no more tasks: the Run ends when all have ended\n" {
		t.Errorf("asked %q, printed %q: %v", asked, &out, err)
	}
}

func TestAQueueIsListed(t *testing.T) {
	q := opened(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pending":3,"leased":1,"done":1,"dead":1,"open":true,"drained":false,"closed":false,"tasks":[
			{"name":"a\u001b","state":"Dead","attempts":3,"worker":"w-0","code":7},{"name":"b","state":"Leased","attempts":0,"worker":"w-1"},{"name":"c","state":"Done","attempts":0}]}`)
	})
	stat, err := q.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	want := `3 pending, 1 leased, 1 done, 1 dead; open for more
TASK  STATE   FAILED TRIES  EXIT CODE  WORKER
a     Dead    3             7          w-0
b     Leased  0             -          w-1
`
	if err := runs.WriteQueue(&out, stat); err != nil || out.String() != want {
		t.Errorf("got %q: %v", &out, err)
	}
	out.Reset()
	if err := runs.WriteQueue(&out, queue.Stat{Done: 2, Closed: true}); err != nil || out.String() != "0 pending, 0 leased, 2 done, 0 dead; all have ended\n" {
		t.Errorf("got %q: %v", &out, err)
	}
}

func TestWhatABrokerSaysOtherwise(t *testing.T) {
	for said, row := range map[string]struct {
		code int
		want string
	}{
		"":         {http.StatusServiceUnavailable, "cannot ask the queue of Run letters: 503 Service Unavailable"},
		"no\nmore": {http.StatusGone, "cannot ask the queue of Run letters: no more"},
		"<html>":   {http.StatusOK, "the queue of Run letters says something else than its tasks: is this mlbatch of another version?"},
	} {
		q := opened(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.code)
			fmt.Fprint(w, said)
		})
		if _, err := q.Stat(t.Context()); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("got %v\nwant %s", err, row.want)
		}
	}
}
