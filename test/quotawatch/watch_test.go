// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
)

// history is an API server that remembers every revision, as etcd does.
type history struct {
	client.WithWatch
	mu      sync.Mutex
	moments []audit.Moment // the n-th is that of revision n, starting with 1
	refuse  []error        // the answers to the next requests
	lies    int            // how many answers omit the Workloads
	owners  map[int][]metav1.PartialObjectMetadata
	pods    *watch.FakeWatcher
	quota   *watch.FakeWatcher
}

// newHistory starts empty, at revision 1.
func newHistory() *history {
	return &history{moments: make([]audit.Moment, 1), pods: watch.NewFakeWithChanSize(10, false), quota: watch.NewFakeWithChanSize(10, false)}
}

// change is the object that a revision changes, and the state after it.
type change struct {
	of client.Object
	audit.Moment
}

func pods(m audit.Moment) change      { return change{&corev1.Pod{}, m} }
func admission(m audit.Moment) change { return change{&kueue.Workload{}, m} }

// happen adds revisions. No request can see them before all are added.
func (h *history) happen(changes ...change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		h.moments = append(h.moments, c.Moment)
		c.of.SetResourceVersion(strconv.Itoa(len(h.moments)))
		if _, pod := c.of.(*corev1.Pod); pod {
			h.pods.Modify(c.of)
			continue
		}
		h.quota.Modify(c.of)
	}
}

// end waits until the watch has checked all revisions or has failed, and ends it.
func (h *history) end(t *testing.T, w *Watch) error {
	t.Helper()
	w.waitUntil(t, func() bool { return w.tally.moments == len(h.moments) || w.blind != nil })
	return w.End(t.Context())
}

// waitUntil waits for a state of the watch.
func (w *Watch) waitUntil(t *testing.T, reached func() bool) {
	t.Helper()
	err := patience.PollFor(t.Context(), time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return reached(), nil
	})
	if err != nil {
		t.Fatalf("not every revision was looked at: %v", err)
	}
}

// answer makes the next requests fail.
func (h *history) answer(refusals ...error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = refusals
}

func (h *history) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.refuse) > 0 {
		err := h.refuse[0]
		h.refuse = h.refuse[1:]
		return err
	}
	asked := (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	at := len(h.moments)
	if asked.ResourceVersion != "" {
		at, _ = strconv.Atoi(asked.ResourceVersion)
	}
	selector, err := labels.Parse(asked.LabelSelector)
	if err != nil {
		return err
	}
	switch list := list.(type) {
	case *corev1.PodList:
		list.Items = slices.DeleteFunc(slices.Clone(h.moments[at-1].Pods), func(p corev1.Pod) bool { return !selector.Matches(labels.Set(p.Labels)) })
	case *metav1.PartialObjectMetadataList:
		list.Items = h.owners[at]
	case *kueue.WorkloadList:
		if h.lies > 0 && len(h.moments[at-1].Pods) > 0 {
			h.lies--
			break
		}
		list.Items = slices.DeleteFunc(slices.Clone(h.moments[at-1].Workloads), func(w kueue.Workload) bool { return !selector.Matches(labels.Set(w.Labels)) })
	}
	list.SetResourceVersion(strconv.Itoa(at))
	return nil
}

func (h *history) Watch(_ context.Context, list client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	if _, pods := list.(*corev1.PodList); pods {
		return h.pods, nil
	}
	return h.quota, nil
}

func start(t *testing.T, h *history) (*Watch, *strings.Builder) {
	t.Helper()
	out := &strings.Builder{}
	w, err := Start(t.Context(), h, out)
	if err != nil {
		t.Fatal(err)
	}
	return w, out
}

var (
	allRight = audit.Moment{Pods: []corev1.Pod{given.Pod("a"), given.Pod("b")}, Workloads: []kueue.Workload{given.Admitted("2")}}
	nothing  = audit.Moment{}
)

func TestAJobThatKeepsToItsQuotaIsCounted(t *testing.T) {
	h := newHistory()
	w, out := start(t, h)
	h.happen(
		admission(audit.Moment{Workloads: []kueue.Workload{given.Admitted("2")}}),
		pods(audit.Moment{Pods: []corev1.Pod{given.Pod("a"), given.Pod("b", given.Unbound)}, Workloads: []kueue.Workload{given.Admitted("2")}}),
		pods(allRight), pods(nothing),
	)
	if err := h.end(t, w); err != nil {
		t.Error(err)
	}
	const want = "-- quota: 6 moments, 2 pods of 1 AppWrappers; at most nvidia.com/gpu 2 of 2; violations: 0, " +
		"excused: 0 (a pod ends beside the one that replaces it), 0 (the Workload was deactivated), " +
		"0 (the owner of the pod was gone already, and the garbage collector deletes the pod); planted: 0\n"
	if out.String() != want {
		t.Errorf("got %s", out)
	}
}

// Comparing the current pods with the current Workloads would never detect it.
func TestAnExcessOfOneRevisionIsFoundWhateverHasHappenedSince(t *testing.T) {
	h := newHistory()
	w, out := start(t, h)
	h.happen(admission(audit.Moment{Pods: allRight.Pods, Workloads: []kueue.Workload{given.Admitted("1")}}), admission(allRight), pods(nothing))
	err := h.end(t, w)
	if err == nil || !strings.Contains(err.Error(), "uses 2 nvidia.com/gpu with pods a, b, and 1 of flavor h100 are held") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"-- quota, revision 2: AppWrapper blue/train uses 2",
		`   pod b: version , Running, on "gpu-0", pod set "train-0", of   first-attempt, created `,
		`   Workload appwrapper-train: version , not deleted, QuotaReserved=True `,
		`"resourceUsage":{"nvidia.com/gpu":"1"}`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q was not printed when it was found: %s", want, out)
		}
	}
}

func TestAnExcessThatLastsIsOneViolation(t *testing.T) {
	h := newHistory()
	w, _ := start(t, h)
	excess := audit.Moment{Pods: allRight.Pods, Workloads: []kueue.Workload{given.Admitted("1")}}
	h.happen(pods(excess), pods(excess), pods(excess), pods(nothing))
	if err := h.end(t, w); err == nil || !strings.Contains(err.Error(), "(at 3 moments, first seen at revision 2), and 0 more") {
		t.Errorf("got %v", err)
	}
}

// A violation that is not found again says nothing about the controller.
func TestAServerThatGivesTwoAnswersIsBlamed(t *testing.T) {
	h := newHistory()
	w, out := start(t, h)
	h.mu.Lock()
	h.lies = 1
	h.mu.Unlock()
	h.happen(pods(allRight), pods(nothing))
	err := h.end(t, w)
	if err == nil || !strings.Contains(err.Error(), "the API server gave two answers for revision 2") || !strings.Contains(out.String(), "violations: 0") {
		t.Errorf("got %v: %s", err, out)
	}
}

// Pods of one revision and Workloads of another never existed together.
func TestThatOneKindIsReadLaterThanTheOtherDoesNoHarm(t *testing.T) {
	h := newHistory()
	w, _ := start(t, h)
	h.happen(
		admission(audit.Moment{Workloads: []kueue.Workload{given.Admitted("1")}}),
		pods(audit.Moment{Pods: []corev1.Pod{given.Pod("a")}, Workloads: []kueue.Workload{given.Admitted("1")}}),
		pods(audit.Moment{Workloads: []kueue.Workload{given.Admitted("1")}}),
		admission(nothing),
	)
	if err := h.end(t, w); err != nil {
		t.Error(err)
	}
}

func TestWhatATestPlantsIsSetAside(t *testing.T) {
	for _, name := range []types.NamespacedName{given.Train, {Namespace: given.Train.Namespace}} {
		h := newHistory()
		w, out := start(t, h)
		planted := w.Expect(name)
		h.happen(pods(audit.Moment{Pods: []corev1.Pod{given.Pod("a")}}), pods(nothing))
		if err := h.end(t, w); err != nil {
			t.Error(err)
		}
		if len(planted()) == 0 || !strings.Contains(out.String(), "violations: 0") || !strings.Contains(out.String(), "planted: 1") {
			t.Errorf("%d findings were set aside: %s", len(planted()), out)
		}
	}
}

func TestAnExcuseIsPrintedAndCounted(t *testing.T) {
	h := newHistory()
	w, out := start(t, h)
	h.happen(pods(audit.Moment{Pods: []corev1.Pod{given.Pod("a", given.Ending), given.Pod("b")}, Workloads: []kueue.Workload{given.Admitted("1")}}), pods(nothing))
	if err := h.end(t, w); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"which is excused: a pod ends beside the one that replaces it\n", "excused: 1 ("} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing: %s", want, out)
		}
	}
}

// Kubernetes' controllers may create a pod of an owner that they do not know to be gone. What has an owner was left
// too early by somebody who could have waited.
func TestAPodWithoutItsOwnerIsExcusedForAWhile(t *testing.T) {
	owner := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: metav1.GetControllerOf(new(given.Pod("a"))).UID}}
	for name, c := range map[string]struct {
		age     time.Duration
		owners  map[int][]metav1.PartialObjectMetadata
		excused bool
	}{
		"gone":                 {0, map[int][]metav1.PartialObjectMetadata{1: {owner}, 3: {owner}}, true},
		"there":                {0, map[int][]metav1.PartialObjectMetadata{2: {owner}}, false},
		"gone for a long time": {24 * time.Hour, nil, false},
	} {
		h := newHistory()
		h.owners = c.owners
		w, out := start(t, h)
		pod := given.Pod("a")
		pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-c.age))
		h.happen(pods(audit.Moment{Pods: []corev1.Pod{pod}}), pods(nothing))
		if err := h.end(t, w); (err == nil) != c.excused || strings.Contains(out.String(), "excused: "+string(LeftBehind)) != c.excused {
			t.Errorf("its owner is %s: %v, %s", name, err, out)
		}
	}
}

func TestAServerThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	h := newHistory()
	w, _ := start(t, h)
	h.answer(errors.New("connection refused"), errors.New("connection refused"))
	h.happen(pods(audit.Moment{Pods: []corev1.Pod{given.Pod("a")}}), pods(nothing))
	if err := h.end(t, w); err == nil || !strings.Contains(err.Error(), "no quota is held") || strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

func TestWhoMissedSomethingSaysSo(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old resource version")
	for name, misfortune := range map[string]func(*history){
		"a watch lost its place": func(h *history) { h.pods.Error(&gone.ErrStatus) },
		"a revision is gone":     func(h *history) { h.answer(gone); h.happen(pods(nothing)) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			w, _ := start(t, h)
			misfortune(h)
			w.waitUntil(t, func() bool { return w.blind != nil })
			if err := h.end(t, w); err == nil || !strings.Contains(err.Error(), "quota was not watched all the time") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAWatchThatNeverBeganEndsWell(t *testing.T) {
	var w *Watch
	if err := w.End(t.Context()); err != nil {
		t.Error(err)
	}
}
