// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// logOf opens logs that say whose they are.
func logOf(_ context.Context, _, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	text := pod + "/" + o.Container + "\n"
	if o.Follow {
		text += "and more\n"
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// podOf is a pod of waits that a Job has made.
func podOf(job, name, rank string, age int64) client.Object {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "blue", Name: name, Labels: map[string]string{v1beta2.AppWrapperLabel: "waits"}, CreationTimestamp: metav1.Unix(1e9-age, 0),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job, UID: types.UID(job), Controller: new(true)}},
	}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy"}, {Name: "main"}}}}
	if rank != "" {
		pod.Labels["batch.kubernetes.io/job-completion-index"] = rank
	}
	return pod
}

// pods are those of two components.
func twoComponents() []client.Object {
	main := podOf("b", "b-0", "0", 0)
	main.SetAnnotations(map[string]string{"kubectl.kubernetes.io/default-container": "main"})
	return []client.Object{podOf("a", "a-0-old", "0", 9), podOf("a", "a-0", "0", 1), podOf("a", "a-1", "1", 0), main}
}

func TestLogsAreThoseOfThePodThatIsMeant(t *testing.T) {
	for name, row := range map[string]struct {
		work   string
		pods   []client.Object
		wanted work.Selection
		want   string
	}{
		"of the master":                    {"pulls", nil, work.Selection{}, "pulls-master-0/pytorch\n"},
		"of a rank":                        {"pulls", nil, work.Selection{Rank: new(1)}, "pulls-worker-0/main\n"},
		"of all":                           {"pulls", nil, work.Selection{All: true}, "[0] pulls-master-0/pytorch\n[1] pulls-worker-0/main\n"},
		"of the only pod of a bare job":    {"train", nil, work.Selection{}, "train-worker-0/main\n"},
		"with what follows":                {"train", nil, work.Selection{Follow: true}, "train-worker-0/main\nand more\n"},
		"of a pod of two components":       {"waits", twoComponents(), work.Selection{Pod: "b-0"}, "b-0/main\n"},
		"of a rank that only one has":      {"waits", twoComponents(), work.Selection{Rank: new(1)}, "a-1/proxy\n"},
		"of one that was replaced":         {"waits", twoComponents(), work.Selection{Pod: "a-0-old"}, "a-0-old/proxy\n"},
		"of the present attempt":           {"pulls", nil, work.Selection{Attempt: 2}, "pulls-master-0/pytorch\n"},
		"of the newest of a rank":          {"waits", twoComponents()[:3], work.Selection{}, "a-0/proxy\n"},
		"of all pods of two components":    {"waits", twoComponents(), work.Selection{All: true}, "[b-0] b-0/main\n[a-0] a-0/proxy\n[a-1] a-1/proxy\n"},
		"of all pods of which one is next": {"waits", append(twoComponents()[1:3], podOf("c", "c", "", 0)), work.Selection{All: true}, "[0] a-0/proxy\n[1] a-1/proxy\n[c] c/proxy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := logs(t, row.work, row.pods, row.wanted)
			if err != nil || out != row.want {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

func logs(t *testing.T, name string, pods []client.Object, wanted work.Selection) (string, error) {
	t.Helper()
	c := cluster(t, interceptor.Funcs{})
	for _, pod := range pods {
		if err := c.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	namespace, name, both := strings.Cut(name, "/")
	if !both {
		namespace, name = "blue", namespace
	}
	var out strings.Builder
	err := work.Logs(t.Context(), c, logOf, found(t, c, namespace, name), wanted, &out)
	return out.String(), err
}

func TestWithoutALogASentenceSaysWhy(t *testing.T) {
	for want, row := range map[string]struct {
		work   string
		pods   []client.Object
		wanted work.Selection
	}{
		"AppWrapper waits has no pods yet: it is Suspended: see 'mlbatch why waits'":                                                  {"waits", nil, work.Selection{}},
		"AppWrapper pulls has no pod x: its pods are pulls-master-0 (rank 0), pulls-worker-0 (rank 1)":                                {"pulls", nil, work.Selection{Pod: "x"}},
		"no pod of AppWrapper pulls has rank 7: its pods are pulls-master-0 (rank 0), pulls-worker-0 (rank 1): choose one with --pod": {"pulls", nil, work.Selection{Rank: new(7)}},
		"2 pods of AppWrapper waits have rank 0: choose one with --pod: b-0 (rank 0), a-0 (rank 0)":                                   {"waits", twoComponents(), work.Selection{}},
		"the pods of AppWrapper waits have no ranks: choose one with --pod, or use --all: d, e":                                       {"waits", []client.Object{podOf("d", "d", "", 0), podOf("d", "e", "", 0)}, work.Selection{}},
		"the pods of a RayJob cannot be found by a label: use 'kubectl get pods' and 'kubectl logs'":                                  {"survey", nil, work.Selection{}},
	} {
		out, err := logs(t, row.work, row.pods, row.wanted)
		wording.OneSentence(t, out, err, want)
	}
}

func TestLogsOfPodsThatAreGoneAreTheirLastWords(t *testing.T) {
	out, err := logs(t, "red/lost", nil, work.Selection{})
	wording.OneSentence(t, "", err, "AppWrapper lost has no pods any more, and their logs are gone with them: it is Failed: 1 pod failed: see 'mlbatch why lost'")
	want := `Last words of pod lost-worker-0-x2x4x, rank 0, on node n3 (exit code 1, 2026-01-01T00:09:00Z):
  Traceback (most recent call last):
    File "train.py", line 3
  KeyError: 'lr'
`
	if out != want {
		t.Errorf("got %s", out)
	}
}

// Which of the last attempts was number 1 is not known, so all that is left is shown.
func TestLogsOfAnEarlierAttemptSayWhatIsLeft(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	aw := found(t, c, "red", "lost").AppWrapper
	aw.Status.LastAttempts = append(aw.Status.LastAttempts, v1beta2.AppWrapperAttempt{Cause: "Evicted", Ended: metav1.NewTime(now)})
	for _, attempt := range []int32{1, 3} {
		var out bytes.Buffer
		err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: aw}, work.Selection{Attempt: attempt}, &out)
		wording.OneSentence(t, "", err, "any more, and their logs are gone with them", "; what is left of the last attempts is above, and in status.lastAttempts of the AppWrapper")
		if !strings.Contains(out.String(), "\n  KeyError: 'lr'\n") || !strings.HasSuffix(out.String(), "\nNo last words of an attempt that ended because of Evicted (2026-01-01T10:00:00Z)\n") {
			t.Errorf("attempt %d: got %s", attempt, &out)
		}
	}
	var out bytes.Buffer
	err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: aw}, work.Selection{Attempt: 9}, &out)
	wording.OneSentence(t, out.String(), err, "AppWrapper lost has no attempt 9: the present one is 4")
}

func TestACommandRunsInThePodThatIsMeant(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	for _, row := range []struct {
		work   string
		wanted work.Selection
		pod    string
		says   string
	}{
		{"pulls", work.Selection{}, "pulls-master-0", ""},
		{"pulls", work.Selection{Rank: new(1)}, "", "pod pulls-worker-0 does not run: it is Pending: ImagePullBackOff: Back-off pulling image busybax"},
		{"pulls", work.Selection{Pod: "x"}, "", "AppWrapper pulls has no pod x: its pods are pulls-master-0 (rank 0), pulls-worker-0 (rank 1)"},
		{"waits", work.Selection{}, "", "AppWrapper waits has no pods yet: it is Suspended: see 'mlbatch why waits'"},
	} {
		pod, err := work.PodOf(t.Context(), c, found(t, c, "blue", row.work), row.wanted)
		if pod.Name != row.pod {
			t.Errorf("%s %+v: got pod %q, want %q", row.work, row.wanted, pod.Name, row.pod)
		}
		if row.says != "" {
			wording.OneSentence(t, "", err, row.says)
		} else if err != nil {
			t.Errorf("%s: %v", row.work, err)
		}
	}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "study"}, Status: v1alpha1.RunStatus{Phase: "Pending"}}
	_, err := work.PodOf(t.Context(), c, explain.Objects{Run: run}, work.Selection{})
	wording.Wanted(t, err, "Run study has no pods: it is Pending: see 'mlbatch why study'")
	run.Status.Steps = make([]v1alpha1.StepStatus, 1)
	_, err = work.PodOf(t.Context(), c, explain.Objects{Run: run}, work.Selection{})
	wording.Wanted(t, err, "Run study has steps: name the AppWrapper of one: 'mlbatch status study' lists them")
}

func TestLogsOfARunAreThoseOfItsWorkers(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "study"}}
	pod := podOf("a", "a-1", "1", 0)
	pod.SetLabels(map[string]string{v1alpha1.RunLabel: "study", "batch.kubernetes.io/job-completion-index": "1"})
	c := cluster(t, interceptor.Funcs{})
	for _, object := range []client.Object{run, pod} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	objects, err := why.Find(t.Context(), c, why.Target{Namespace: "blue", Name: "study"})
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Logs(t.Context(), c, logOf, objects, work.Selection{Rank: new(1)}, &out); err != nil || out.String() != "a-1/proxy\n" {
		t.Errorf("got %q, %v", &out, err)
	}
	err = work.Logs(t.Context(), c, logOf, explain.Objects{Run: run}, work.Selection{Step: "a"}, &out)
	wording.Wanted(t, err, "Run study has no steps: leave --step out")
	err = work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "train"}}}, work.Selection{Step: "a"}, &out)
	wording.Wanted(t, err, "only a workflow has steps, and train is no Run: leave --step out")
	err = work.Logs(t.Context(), c, logOf, explain.Objects{Run: run}, work.Selection{Pod: "a-1"}, &out)
	wording.Wanted(t, err, "the pods of a Run are chosen with --rank: use 'mlbatch logs study --rank N'")
}

func TestWithoutTheRightToListPodsASentenceNamesIt(t *testing.T) {
	c := cluster(t, mayNotList(&corev1.PodList{}))
	err := work.Logs(t.Context(), c, logOf, found(t, c, "blue", "pulls"), work.Selection{}, io.Discard)
	wording.OneSentence(t, "", err, "you may not list pods in namespace blue: ask an administrator for a role with this right")
	broken := func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return nil, errors.New("container pytorch\nis waiting to start")
	}
	c = cluster(t, interceptor.Funcs{})
	err = work.Logs(t.Context(), c, broken, found(t, c, "blue", "pulls"), work.Selection{}, io.Discard)
	wording.OneSentence(t, "", err, "cannot read the log of pod pulls-master-0, which is Running: container pytorch is waiting to start")
}

// resets is waits after a failure, of which pods are left.
func resets(reason string, phase v1beta2.AppWrapperPhase) *v1beta2.AppWrapper {
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "waits", UID: "uid-waits"}}
	aw.Status = v1beta2.AppWrapperStatus{Phase: phase, Retries: 2, Conditions: []metav1.Condition{{Type: string(v1beta2.Unhealthy), Status: metav1.ConditionTrue, Reason: reason}}}
	return aw
}

func TestAttemptsAreCounted(t *testing.T) {
	failed, migrates := v1beta2.ReasonFoundFailedPods, v1beta2.ReasonAutopilotNoExecute
	for name, row := range map[string]struct {
		work    *v1beta2.AppWrapper
		present int32
	}{
		"the third runs":                             {resets("", v1beta2.AppWrapperRunning), 3},
		"the third fails":                            {resets(failed, v1beta2.AppWrapperRunning), 3},
		"the second has failed":                      {resets(failed, v1beta2.AppWrapperResetting), 2},
		"the second has failed and loses its quota":  {resets(failed, v1beta2.AppWrapperSuspending), 2},
		"the third leaves a node, which is no retry": {resets(migrates, v1beta2.AppWrapperResetting), 3},
		"the last has failed":                        {resets(failed, v1beta2.AppWrapperFailed), 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{})
			if err := c.Create(t.Context(), podOf("a", "a", "0", 0)); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: row.work}, work.Selection{Attempt: row.present}, &out); err != nil || out.String() != "a/proxy\n" {
				t.Errorf("got %q, %v", &out, err)
			}
			err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: row.work}, work.Selection{Attempt: row.present + 1}, &out)
			wording.OneSentence(t, "", err, fmt.Sprintf("AppWrapper waits has no attempt %d: the present one is %d", row.present+1, row.present))
		})
	}
}

func TestOfAnAttemptThatIsGoneASentenceIsLeft(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	warning := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "e"}, Type: "Warning", Reason: "FoundFailedPods", Message: "1 pod failed:\na-0 ended with exit code 1"}
	warning.InvolvedObject.UID = "uid-waits"
	if err := c.Create(t.Context(), warning); err != nil {
		t.Fatal(err)
	}
	study := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "study"}, Status: v1alpha1.RunStatus{Phase: "Running"}}
	told := study.DeepCopy()
	told.Status.LastFailure = &v1alpha1.LastFailure{Attempt: 2}
	third, job := resets("", v1beta2.AppWrapperRunning), &unstructured.Unstructured{}
	job.SetKind("PyTorchJob")
	job.SetName("bare")
	for _, row := range []struct {
		objects explain.Objects
		wanted  int32
		says    string
	}{
		{explain.Objects{AppWrapper: third}, 1, "attempt 1 of AppWrapper waits has no pods any more, and their logs are gone with them: the present attempt is 3"},
		{explain.Objects{AppWrapper: third}, 2, "attempt 2 of AppWrapper waits has no pods any more, and their logs are gone with them; the last warning about it is FoundFailedPods: 1 pod failed: a-0 ended with exit code 1: the present attempt is 3"},
		{explain.Objects{AppWrapper: third, Run: told}, 2, "attempt 2 of Run study has no pods any more, and their logs are gone with them; the last lines of the first container that failed are in 'mlbatch status run/study': the present attempt is 3"},
		{explain.Objects{Run: study}, 1, "Run study has not begun an attempt: it is Running"},
		{explain.Objects{Job: job}, 1, "the attempts of a PyTorchJob that nothing wraps are not counted: leave --attempt out"},
	} {
		err := work.Logs(t.Context(), c, logOf, row.objects, work.Selection{Attempt: row.wanted}, io.Discard)
		wording.OneSentence(t, "", err, row.says)
	}
	c = cluster(t, mayNotList(&corev1.EventList{}))
	err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: third}, work.Selection{Attempt: 2}, io.Discard)
	wording.OneSentence(t, "", err, "attempt 2 of AppWrapper waits has no pods any more, and their logs are gone with them: the present attempt is 3")
}

// The API server lists events by name, so the newest may be on any page.
func TestTheLastWarningIsTheLastOfAllPages(t *testing.T) {
	warning := func(minute int, message string) corev1.Event {
		e := corev1.Event{Type: "Warning", Reason: "FoundFailedPods", Message: message, LastTimestamp: metav1.Unix(int64(60*minute), 0)}
		e.InvolvedObject.UID = "uid-waits"
		return e
	}
	c := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		events, ok := list.(*corev1.EventList)
		switch asked := (&client.ListOptions{}).ApplyOptions(options); {
		case !ok:
			return c.List(ctx, list, options...)
		case asked.Continue == "":
			events.Continue, events.Items = "more", []corev1.Event{warning(1, "the first attempt")}
		default:
			events.Items = []corev1.Event{warning(2, "the second attempt")}
		}
		return nil
	}})
	err := work.Logs(t.Context(), c, logOf, explain.Objects{AppWrapper: resets("", v1beta2.AppWrapperRunning)}, work.Selection{Attempt: 2}, io.Discard)
	wording.OneSentence(t, "", err, "attempt 2 of AppWrapper waits has no pods any more, and their logs are gone with them; the last warning about it is FoundFailedPods: the second attempt: the present attempt is 3")
}
