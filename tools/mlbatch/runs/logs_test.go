// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// logOf opens logs that say whose they are.
func logOf(_ context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	text := namespace + "/" + pod + "/" + o.Container + "\n"
	if o.Follow {
		text += "and more"
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func index(key, value string) map[string]string { return map[string]string{key: value} }

const (
	completion = "batch.kubernetes.io/job-completion-index"
	replica    = "training.kubeflow.org/replica-index"
)

// torch are the pods of a PyTorchJob, of two attempts.
func torch() []client.Object {
	old := pod("old", "master", index(replica, "0"), corev1.PodFailed, corev1.ContainerState{})
	now := pod("m", "master", index(replica, "0"), corev1.PodSucceeded, corev1.ContainerState{})
	old.CreationTimestamp, now.CreationTimestamp = metav1.NewTime(start), metav1.NewTime(start.Add(time.Minute))
	return []client.Object{
		pod("w1", "worker", index(replica, "1"), corev1.PodRunning, corev1.ContainerState{}), old, now,
		pod("w0", "worker", index(replica, "0"), corev1.PodRunning, corev1.ContainerState{}),
		accepted("a", v1alpha1.RunRunning, ""),
	}
}

// indexed are the pods of a JobSet, or of a Job.
func indexed(role string) []client.Object {
	annotated := pod("n10", role, nil, corev1.PodRunning, corev1.ContainerState{})
	annotated.Annotations = index(completion, "10")
	return []client.Object{
		annotated, pod("n2", role, index(completion, "2"), corev1.PodRunning, corev1.ContainerState{}),
		pod("n0", role, index(completion, "0"), corev1.PodRunning, corev1.ContainerState{}),
		pod("n1", role, index(completion, "1"), corev1.PodRunning, corev1.ContainerState{}),
		pod("other", role, nil, corev1.PodRunning, corev1.ContainerState{}),
		accepted("a", v1alpha1.RunRunning, ""),
	}
}

// ray are the pods of a Ray cluster and, of two attempts, those that submit the command.
func ray(submitters ...client.Object) []client.Object {
	for i, submitter := range submitters {
		submitter.SetCreationTimestamp(metav1.NewTime(start.Add(time.Duration(i) * time.Minute)))
	}
	return append(submitters, pod("w", "worker", nil, corev1.PodRunning, corev1.ContainerState{}),
		pod("h", "head", nil, corev1.PodRunning, corev1.ContainerState{}), accepted("a", v1alpha1.RunRunning, ""))
}

func submitter(name string) client.Object {
	return pod(name, "submitter", nil, corev1.PodRunning, corev1.ContainerState{})
}

func TestTheLogOfAWorker(t *testing.T) {
	for name, row := range map[string]struct {
		objects []client.Object
		wanted  runs.Selection
		want    string
	}{
		"of the master":             {torch(), runs.Selection{}, "blue/m/main\n"},
		"of a worker beside it":     {torch(), runs.Selection{Worker: 1}, "blue/w0/main\n"},
		"of all":                    {torch(), runs.Selection{All: true}, "[0] blue/m/main\n[1] blue/w0/main\n[2] blue/w1/main\n"},
		"of rank 0 of a JobSet":     {indexed("node"), runs.Selection{}, "blue/n0/main\n"},
		"of the first of a Job":     {indexed("worker"), runs.Selection{}, "blue/n0/main\n"},
		"of all in their order":     {indexed("worker"), runs.Selection{All: true}, "[0] blue/n0/main\n[1] blue/n1/main\n[2] blue/n2/main\n[10] blue/n10/main\n[other] blue/other/main\n"},
		"of whoever submits":        {ray(submitter("old"), submitter("now")), runs.Selection{}, "blue/now/main\n"},
		"of the head before that":   {ray(), runs.Selection{}, "blue/h/main\n"},
		"of all of a Ray cluster":   {ray(submitter("s")), runs.Selection{All: true}, "[s] blue/s/main\n[h] blue/h/main\n[w] blue/w/main\n"},
		"of one, with what follows": {torch(), runs.Selection{Follow: true}, "blue/m/main\nand more"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := runs.Logs(t.Context(), cluster(t, interceptor.Funcs{}, row.objects...), logOf, key, row.wanted, &out)
			if err != nil || out.String() != row.want {
				t.Errorf("got %q, %v", &out, err)
			}
		})
	}
}

// Nobody waits for the end of another worker.
func TestAllLogsAreFollowedAtOnce(t *testing.T) {
	said := make(chan struct{})
	open := func(_ context.Context, _, pod string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		if pod == "w1" {
			close(said)
			return io.NopCloser(strings.NewReader("I am the last\nof all")), nil
		}
		return io.NopCloser(readerFunc(func([]byte) (int, error) { <-said; return 0, io.EOF })), nil
	}
	var out strings.Builder
	err := runs.Logs(t.Context(), cluster(t, interceptor.Funcs{}, torch()...), open, key, runs.Selection{All: true, Follow: true}, &out)
	if err != nil || out.String() != "[2] I am the last\n[2] of all\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWithoutALogASentenceSaysWhy(t *testing.T) {
	code := int32(1)
	failed := accepted("a", v1alpha1.RunFailed, "1 pod failed")
	failed.Status.LastFailure = &v1alpha1.LastFailure{Attempt: 1, Pod: "p", Container: "main", Reason: "Error", ExitCode: &code, Message: "no such file"}
	begun := accepted("a", v1alpha1.RunPreempted, "")
	begun.Status.StartTime = &metav1.Time{Time: start}
	broken := func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(iotest.ErrReader(errors.New("unexpected EOF"))), nil
	}
	waits := func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return nil, errors.New("container main is\nwaiting to start")
	}
	for name, row := range map[string]struct {
		objects []client.Object
		wanted  runs.Selection
		open    podlogs.Open
		says    string
	}{
		"no Run":                        {nil, runs.Selection{}, logOf, "there is no Run a in namespace blue"},
		"no pods yet":                   {[]client.Object{accepted("a", v1alpha1.RunQueued, "it waits for quota")}, runs.Selection{}, logOf, "Run a has no pods yet: it is Queued: it waits for quota"},
		"no pods any more":              {[]client.Object{begun}, runs.Selection{All: true}, logOf, "Run a has no pods any more: it is Preempted"},
		"no pods after a failure":       {[]client.Object{failed}, runs.Selection{}, logOf, "Run a has no pods any more: it is Failed: 1 pod failed; the last failure was container main of pod p: Error, exit code 1: its last lines are in 'mlbatch status run/a'"},
		"a Run that nobody looked at":   {[]client.Object{runOf("a", "", "")}, runs.Selection{}, logOf, "Run a has no pods yet: it is new: no controller of Runs has looked at it"},
		"no such worker":                {torch(), runs.Selection{Worker: 7}, logOf, "Run a has no worker 7: its workers are 0 to 1"},
		"a worker of a Ray cluster":     {ray(), runs.Selection{Worker: 1}, logOf, "the workers of Run a have no numbers, as those of api ray and workqueue: use --all"},
		"a worker without a pod":        {append(torch()[:1], runOf("a", v1alpha1.RunStarting, "")), runs.Selection{}, logOf, "worker 0 of Run a has no pod: the Run is Starting"},
		"a container that waits":        {torch(), runs.Selection{}, waits, "cannot read the log of pod m, which is Succeeded: container main is waiting to start"},
		"a cluster that disappears":     {torch(), runs.Selection{Follow: true}, broken, "the log of pod m broke off: unexpected EOF"},
		"several that disappear at all": {torch(), runs.Selection{All: true}, broken, "the log of pod m broke off: unexpected EOF; the log of pod w0 broke off: unexpected EOF; "},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := runs.Logs(t.Context(), cluster(t, interceptor.Funcs{}, row.objects...), row.open, key, row.wanted, &out)
			wording.OneSentence(t, out.String(), err, row.says)
		})
	}
}
