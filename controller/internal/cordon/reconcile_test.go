// SPDX-License-Identifier: Apache-2.0

package cordon

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// world is a cluster with the nodes a, b and c, and a controller that may cordon one of them.
type world struct {
	*testing.T
	*reconciler
	api      client.WithWatch
	recorded *events.FakeRecorder
	clock    time.Time
}

func newWorld(t *testing.T, calls interceptor.Funcs) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var nodes []client.Object
	for _, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"keep": "me"}}})
	}
	w := &world{T: t, recorded: events.NewFakeRecorder(100), clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodes...).WithStatusSubresource(&v1beta2.AppWrapper{}).Build()
	w.restart(calls)
	return w
}

// restart begins with a controller that remembers nothing.
func (w *world) restart(calls interceptor.Funcs) {
	seen := interceptor.NewClient(w.api, calls)
	w.reconciler = &reconciler{
		Settings: Settings{Cordoning: nodehealth.Cordoning{Nodes: 1, AppWrappers: 3, Teams: 2}, Remembered: time.Hour},
		cached:   seen, live: seen, client: seen, recorder: w.recorded, counts: newCounts(), now: func() time.Time { return w.clock },
	}
}

// fails lets a node reject the pods of three AppWrappers of two teams now.
func (w *world) fails(node string) {
	w.Helper()
	for i, team := range []string{"blue", "blue", "green"} {
		aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("%s-%d-%d", node, i, w.clock.Unix())}}
		aw.Status.AvoidedNodes = []v1beta2.AvoidedNode{{Name: node, Cause: "PodRejected UnexpectedAdmissionError", Until: metav1.Time{Time: w.clock.Add(time.Hour)}}}
		if err := w.api.Create(w.Context(), aw); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) settle() {
	w.Helper()
	for range 10 {
		result, err := w.Reconcile(w.Context(), ctrl.Request{})
		if err != nil {
			w.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			return
		}
	}
	w.Fatal("it comes to no end")
}

func (w *world) node(name string) *corev1.Node {
	w.Helper()
	n := &corev1.Node{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: name}, n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) set(name string, cordoned bool) {
	w.Helper()
	n := w.node(name)
	n.Spec.Unschedulable = cordoned
	if err := w.api.Update(w.Context(), n); err != nil {
		w.Fatal(err)
	}
}

// expect compares which nodes are cordoned, and what has been said since the last call.
func (w *world) expect(cordoned string, said ...string) {
	w.Helper()
	var got string
	for _, name := range []string{"a", "b", "c"} {
		if w.node(name).Spec.Unschedulable {
			got += name
		}
	}
	if got != cordoned {
		w.Errorf("cordoned are %q, want %q", got, cordoned)
	}
	for len(w.recorded.Events) > 0 {
		event := <-w.recorded.Events
		if len(said) == 0 || !strings.HasPrefix(event, said[0]) {
			w.Errorf("it says %q", event)
		} else {
			said = said[1:]
		}
	}
	if len(said) > 0 {
		w.Errorf("it does not say %q", said)
	}
}

func (w *world) counted(result string) float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.counts)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == result {
			return m.GetCounter().GetValue()
		}
	}
	return -1
}

const theReason = "pods of 3 AppWrappers of 2 teams were rejected or did not start here lately, at last with PodRejected UnexpectedAdmissionError"

// A node is cordoned once, says why, and is left to the administrator. Then it starts afresh.
func TestANodeIsCordonedUntilAnAdministratorUncordonsIt(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.settle()
	w.expect("")
	w.fails("a")
	w.settle()
	w.expect("a", "Warning Cordoned Cordoned: "+theReason)
	want := map[string]string{v1beta2.CordonedAnnotation: "2026-03-01T12:00:00Z " + theReason}
	if diff := cmp.Diff(want, w.node("a").Annotations); diff != "" || w.node("a").Labels["keep"] != "me" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.clock = w.clock.Add(2 * time.Hour) // nobody remembers
	w.restart(interceptor.Funcs{})
	w.settle()
	w.expect("a")

	w.fails("a") // what its last pods did
	w.set("a", false)
	w.settle()
	w.expect("")
	if diff := cmp.Diff(map[string]string{v1beta2.UncordonedAnnotation: "2026-03-01T14:00:00Z"}, w.node("a").Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.clock = w.clock.Add(time.Minute)
	w.restart(interceptor.Funcs{})
	w.settle()
	w.expect("")
	w.fails("a")
	w.settle()
	w.expect("a", "Warning Cordoned")
}

// A status says since when a node is blamed, also after an administrator has changed for how long nodes are remembered.
func TestABlameIsAsOldAsItIs(t *testing.T) {
	for sentence, row := range map[string]struct {
		since, until time.Duration
		cordoned     bool
	}{
		"before the node started afresh, with a longer period": {-90 * time.Minute, 40 * time.Minute, false},
		"after the node started afresh, with a shorter period": {-10 * time.Minute, time.Minute, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{})
			n := w.node("a")
			n.Annotations = map[string]string{v1beta2.UncordonedAnnotation: w.clock.Add(-30 * time.Minute).Format(time.RFC3339)}
			if err := w.api.Update(w.Context(), n); err != nil {
				t.Fatal(err)
			}
			for i, team := range []string{"blue", "blue", "green"} {
				aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprint("blames-", i)}}
				since, until := metav1.NewTime(w.clock.Add(row.since)), metav1.NewTime(w.clock.Add(row.until))
				aw.Status.AvoidedNodes = []v1beta2.AvoidedNode{{Name: "a", Cause: "PodRejected UnexpectedAdmissionError", Since: &since, Until: until}}
				if err := w.api.Create(w.Context(), aw); err != nil {
					t.Fatal(err)
				}
			}
			w.settle()
			if got := w.node("a").Spec.Unschedulable; got != row.cordoned {
				t.Errorf("it is cordoned: %t", got)
			}
		})
	}
}

// A job that fails everywhere does not empty the cluster, and administrators hear why no more is
// cordoned.
func TestNoMoreNodesAreCordonedThanMayBe(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for _, name := range []string{"a", "b", "c"} {
		w.fails(name)
	}
	w.settle()
	w.expect("a", "Warning Cordoned", "Warning NotCordoned Not cordoned, because as many nodes are as nodeHealth.cordon.nodes allows (1): "+theReason, "Warning NotCordoned")
	w.settle()
	w.expect("a")
	if cordons, spared := w.counted("Cordoned"), w.counted("LimitReached"); cordons != 1 || spared != 2 {
		t.Errorf("it counts %v cordons, and %v nodes that are spared", cordons, spared)
	}
	w.clock = w.clock.Add(time.Minute)
	w.set("a", false)
	w.settle()
	w.expect("b", "Warning Cordoned")
}

// What others have cordoned stays as it is, also when they uncordon it.
func TestNodesThatOthersCordonAreLeftAlone(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.set("a", true)
	w.fails("a")
	before := w.node("a")
	w.settle()
	w.expect("a")
	if diff := cmp.Diff(before, w.node("a")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// A node that somebody changes at that moment is read again.
func TestOneOfTwoWritersWins(t *testing.T) {
	var w *world
	outrun := true
	w = newWorld(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		if outrun {
			outrun = false
			w.set("a", true)
		}
		return c.Patch(ctx, o, p, options...)
	}})
	w.fails("a")
	w.settle()
	w.expect("a")
	if _, ours := w.node("a").Annotations[v1beta2.CordonedAnnotation]; ours || outrun {
		t.Error("it claims a node that an administrator cordoned")
	}
}

// The cache does not know yet what another controller has just done.
func TestTheBoundCountsWhatTheCacheDoesNotKnow(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.fails("a")
	w.settle()
	w.expect("a", "Warning Cordoned")
	w.fails("b")
	w.cached = interceptor.NewClient(w.api, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, list, options...)
		if nodes, ok := list.(*corev1.NodeList); ok {
			for i := range nodes.Items {
				nodes.Items[i].Spec.Unschedulable, nodes.Items[i].Annotations = false, nil
			}
		}
		return err
	}})
	if _, err := w.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Fatal(err)
	}
	w.expect("a")
}

// Without the right, the error says what could not be done.
func TestAFailedWriteIsAnError(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return fmt.Errorf("forbidden")
	}})
	w.fails("a")
	_, err := w.Reconcile(t.Context(), ctrl.Request{})
	if err == nil || err.Error() != "cannot mark node a as cordoned or uncordoned: forbidden" {
		t.Errorf("got %v", err)
	}
	w.expect("")
}
