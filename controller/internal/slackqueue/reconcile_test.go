// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func queueOf(name string) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.CohortName = "research"
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{{Name: "all",
		Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: resource.MustParse("16")}}}}}}
	return q
}

func cordoned() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	n.Status.Capacity = corev1.ResourceList{gpu: resource.MustParse("8")}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

// reconcilerOf has a cordoned node and the queues one and two.
func reconcilerOf(t *testing.T, fails interceptor.Funcs) (*reconciler, client.WithWatch) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(queueOf("one"), queueOf("two"), cordoned(),
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "all"}}).Build()
	broken := interceptor.NewClient(cluster, fails)
	s := Settings{Queues: []string{"one", "two"}, Namespace: "mlbatch-system"}
	return &reconciler{Settings: s, cached: broken, client: broken, settle: time.Second, report: &report{}, now: time.Now}, cluster
}

func lends(t *testing.T, c client.Client, queue string) string {
	t.Helper()
	q := &kueue.ClusterQueue{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: queue}, q); err != nil {
		t.Fatal(err)
	}
	if limit := q.Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit; limit != nil {
		return limit.String()
	}
	return ""
}

var group = schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "clusterqueues"}

// failing makes the patch of a queue fail.
func failing(queue string, err error) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetName() == queue {
			return err
		}
		return c.Patch(ctx, o, p, opts...)
	}}
}

func TestWhatAFailedWriteMeans(t *testing.T) {
	for what, row := range map[string]struct {
		err   error
		again time.Duration
		says  string
	}{
		"the queue has changed": {apierrors.NewConflict(group, "one", errors.New("changed")), time.Second, ""},
		"the queue is gone":     {apierrors.NewNotFound(group, "one"), 0, ""},
		"a refusal":             {apierrors.NewForbidden(group, "one", errors.New("no right")), 0, "cannot write the lending limits of ClusterQueue one: "},
	} {
		t.Run(what, func(t *testing.T) {
			r, cluster := reconcilerOf(t, failing("one", row.err))
			result, err := r.Reconcile(t.Context(), ctrl.Request{})
			if result.RequeueAfter != row.again || (row.says == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), row.says) {
				t.Errorf("got %v, %v", result, err)
			}
			if one, two := lends(t, cluster, "one"), lends(t, cluster, "two"); one != "" || two != "8" {
				t.Errorf("one lends %q, the other %q", one, two)
			}
		})
	}
}

func TestWhatCannotBeReadChangesNothing(t *testing.T) {
	no := errors.New("no answer")
	for what, fails := range map[string]interceptor.Funcs{
		"nodes": {List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, is := l.(*corev1.NodeList); is {
				return no
			}
			return c.List(ctx, l, opts...)
		}},
		"flavors": {List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, is := l.(*kueue.ResourceFlavorList); is {
				return no
			}
			return c.List(ctx, l, opts...)
		}},
		"queues": {List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, is := l.(*kueue.ClusterQueueList); is {
				return no
			}
			return c.List(ctx, l, opts...)
		}},
		"what is remembered": {Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.ConfigMap); is {
				return no
			}
			return c.Get(ctx, k, o, opts...)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			r, cluster := reconcilerOf(t, fails)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, no) {
				t.Errorf("got %v", err)
			}
			if got := lends(t, cluster, "one"); got != "" {
				t.Errorf("it lends %s", got)
			}
		})
	}
}

// A missing right to write what is remembered does not stop the limits.
func TestLimitsAreWrittenAlsoIfNothingCanBeRemembered(t *testing.T) {
	no := errors.New("no right")
	r, cluster := reconcilerOf(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return no }})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if got := lends(t, cluster, "one"); got != "8" {
		t.Errorf("it lends %q", got)
	}
}

func TestAQueueThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	r, cluster := reconcilerOf(t, interceptor.Funcs{})
	one := queueOf("one")
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		t.Fatal(err)
	}
	one.Finalizers = []string{"kueue.x-k8s.io/resource-in-use"}
	if err := errors.Join(cluster.Update(t.Context(), one), cluster.Delete(t.Context(), one)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || lends(t, cluster, "one") != "" {
		t.Errorf("%v, it lends %s", err, lends(t, cluster, "one"))
	}
}

func TestWhichChangesOfAQueueMatter(t *testing.T) {
	queue := func(pending int32, version string) *kueue.ClusterQueue {
		q := queueOf("one")
		q.ResourceVersion, q.Status.PendingWorkloads = version, pending
		q.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: version}}
		return q
	}
	capped := queue(1, "2")
	limit := resource.MustParse("1")
	capped.Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = &limit
	for what, row := range map[string]struct {
		after *kueue.ClusterQueue
		want  bool
	}{
		"what Kueue counts": {queue(2, "2"), false},
		"a limit":           {capped, true},
	} {
		if got := nodewatch.Changed(slackquota.SlimQueue(queue(1, "1")), slackquota.SlimQueue(row.after)); got != row.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// One of two slack queues has 8 of 16 GPUs, and a team 4. The only node is cordoned.
func TestWhatIsReported(t *testing.T) {
	r, cluster := reconcilerOf(t, interceptor.Funcs{})
	team := queueOf("team")
	team.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("4")
	if err := cluster.Create(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, the limits are there
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	if err := r.report.register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if value := series.GetGauge().GetValue(); value != 0 {
				labels := series.GetLabel()
				text := fmt.Sprintf("%s %v", family.GetName(), value)
				if labels[0].GetName() == "cause" {
					text += " " + labels[0].GetValue()
				}
				got = append(got, text)
			}
		}
	}
	want := []string{"mlbatch_flavor_lent 16", "mlbatch_flavor_quota 36", "mlbatch_flavor_slack 32", "mlbatch_flavor_total 8", "mlbatch_flavor_unusable 8 NodeCordoned"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
