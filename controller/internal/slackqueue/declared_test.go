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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
	"github.com/mlbatch/mlbatch/test/patience"
)

const (
	removeA = "DELETE /apis/kueue.x-k8s.io/v1beta2/clusterqueues/slack-a"
	nominal = `{"data": {"slack-a": "{cohortName: cohort-a, resourceGroups: [{coveredResources: [nvidia.com/gpu],
		flavors: [{name: a, resources: [{name: nvidia.com/gpu, nominalQuota: %d}]}]}]}"}}`
)

// declare writes what the chart teams does for a file with these GPUs in slack-a.
func (a *api) declare(gpus int) {
	a.Helper()
	a.put(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "mlbatch-system", "name": "mlbatch-slack-queues"}, %s`,
		strings.ReplaceAll(fmt.Sprintf(nominal, gpus)[1:], "\n\t\t", ""))
}

func (a *api) redeclare(gpus int) {
	a.Helper()
	key := types.NamespacedName{Namespace: "mlbatch-system", Name: slackquota.DeclaredName}
	if err := a.Patch("configmaps", key, strings.ReplaceAll(fmt.Sprintf(nominal, gpus), "\n\t\t", "")); err != nil {
		a.Fatal(err)
	}
}

// exists waits until there is a queue slack-a, or none.
func (a *api) exists(want bool) {
	a.Helper()
	err := patience.PollFor(a.Context(), 5*time.Millisecond, patience.Short, func(context.Context) (bool, error) {
		return (a.Get("clusterqueues", types.NamespacedName{Name: "slack-a"}) != nil) == want, nil
	})
	if err != nil {
		a.Fatalf("the queue exists: %t; the requests were %q", !want, a.Requests())
	}
}

func TestAQueueOfTheTeamsFileIsMadeAndRemoved(t *testing.T) {
	a := newAPI(t).with()
	a.Delete("clusterqueues", types.NamespacedName{Name: "slack-a"})
	a.declare(80)
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	stop := a.start(long)
	a.lends("slack-a", "72")
	a.remembered(20)
	a.mustHaveSent(ofA, create) // an apply is a PATCH
	a.redeclare(60)
	a.patch("nodes", "a1", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-a", "44")
	a.mustHaveSent(ofA)
	stop()
	// Meanwhile, a node is back, and the file has changed. Whatever others keep in the namespace does not matter.
	a.patch("nodes", "a0", `{"spec": {"unschedulable": null}}`)
	a.redeclare(80)
	a.start(long)
	a.lends("slack-a", "72")
	a.mustHaveSent(ofA)
	a.put(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "mlbatch-system", "name": "other"}, "data": {"slack-a": "{"}}`)
	a.put(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "mlbatch-system", "name": "` + slackquota.DeclaredName + `"}}`)
	a.exists(false)
	a.mustHaveSent(removeA)
	if a.Get("clusterqueues", types.NamespacedName{Name: "slack-b"}) == nil {
		t.Error("an administrator's queue is gone, too")
	}
}

// Whatever is written at rest would be there before the write that follows.
func TestAtRestAQueueOfTheTeamsFileIsNotWritten(t *testing.T) {
	a := newAPI(t).with()
	a.Delete("clusterqueues", types.NamespacedName{Name: "slack-a"})
	a.declare(80)
	a.start(time.Millisecond)
	a.exists(true)
	a.remembered(20)
	a.patch("nodes", "a0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-a", "72")
	// One watch has both queues: when this apply is corrected, the cache has what was written to slack-a.
	// Before, the controller may write that again, in vain.
	a.patch("nodes", "b0", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-b", "72")
	a.patch("clusterqueues", "slack-b", `{"spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"],
		"flavors": [{"name": "b", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "60"}]}]}]}}`)
	a.lends("slack-b", "52")
	a.Requests()
	for i := range 10 {
		a.patch("clusterqueues", "slack-a", fmt.Sprintf(`{"status": {"pendingWorkloads": %d}}`, i))
	}
	a.patch("nodes", "b1", `{"spec": {"unschedulable": true}}`)
	a.lends("slack-b", "44")
	sent := slices.DeleteFunc(a.Requests(), func(request string) bool { return request == create || strings.HasPrefix(request, "GET ") })
	if !slices.Equal(slices.Compact(sent), []string{ofB}) {
		t.Errorf("the requests are %q", sent)
	}
}

// declaring adds the ConfigMap of the chart to the cluster.
func declaring(t *testing.T, c client.Client, name string) {
	t.Helper()
	err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mlbatch-system", Name: slackquota.DeclaredName}, Data: map[string]string{
		name: "{cohortName: research, resourceGroups: [{flavors: [{name: all, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]}]}",
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatAQueueThatCannotBeMadeMeans(t *testing.T) {
	for what, row := range map[string]struct {
		err  error
		says string
	}{
		"somebody has made it meanwhile": {apierrors.NewConflict(group, "three", errors.New("made")), ""},
		"a refusal":                      {apierrors.NewForbidden(group, "three", errors.New("no right")), "cannot make ClusterQueue three: "},
	} {
		t.Run(what, func(t *testing.T) {
			r, cluster := reconcilerOf(t, failing("three", row.err))
			r.Queues = append(r.Queues, "three")
			declaring(t, cluster, "three")
			_, err := r.Reconcile(t.Context(), ctrl.Request{})
			if (row.says == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), row.says) {
				t.Errorf("got %v", err)
			}
			if one := lends(t, cluster, "one"); one != "8" {
				t.Errorf("another queue lends %q", one)
			}
		})
	}
}

// If it were taken for a file without queues, the quota would be gone.
func TestAFileThatCannotBeReadRemovesNothing(t *testing.T) {
	no := errors.New("no answer")
	r, cluster := reconcilerOf(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if k.Name == slackquota.DeclaredName {
			return no
		}
		return c.Get(ctx, k, o, opts...)
	}})
	one := queueOf("one")
	one.Annotations = map[string]string{"workload.codeflare.dev/declared-lending-limits": "{}"}
	if err := errors.Join(cluster.Delete(t.Context(), queueOf("one")), cluster.Create(t.Context(), one)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, no) || !strings.Contains(err.Error(), slackquota.DeclaredName) {
		t.Errorf("got %v", err)
	}
	if lends(t, cluster, "one") != "" {
		t.Error("it was written")
	}
}

// Somebody may have deleted the ConfigMap by mistake, or a GitOps tool replaces it. Without the queue, the cohort
// would lose its slack quota at once, and whoever has borrowed it would be preempted.
func TestAFileThatHasGoneRemovesItsQueuesLater(t *testing.T) {
	r, cluster := reconcilerOf(t, interceptor.Funcs{})
	now := time.Now()
	r.now = func() time.Time { return now }
	one := queueOf("one")
	one.Annotations = map[string]string{"workload.codeflare.dev/declared-lending-limits": "{}"}
	if err := errors.Join(cluster.Delete(t.Context(), queueOf("one")), cluster.Create(t.Context(), one)); err != nil {
		t.Fatal(err)
	}
	looks := func(after time.Duration, want time.Duration, stays bool) {
		t.Helper()
		now = now.Add(after)
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("it looks again after %s, want %s (%v)", result.RequeueAfter, want, err)
		}
		err = cluster.Get(t.Context(), client.ObjectKeyFromObject(one), &kueue.ClusterQueue{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != stays {
			t.Errorf("the queue stays: %t, want %t (%v)", err == nil, stays, err)
		}
	}
	looks(0, 10*time.Minute, true)
	if lends(t, cluster, "two") == "" {
		t.Error("meanwhile, the limits of other queues are not written")
	}
	looks(9*time.Minute, time.Minute, true)
	declaring(t, cluster, "one") // it comes back
	looks(2*time.Minute, 0, true)
	if err := cluster.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mlbatch-system", Name: slackquota.DeclaredName}}); err != nil {
		t.Fatal(err)
	}
	looks(time.Minute, 10*time.Minute, true)
	looks(10*time.Minute, 0, false)
}
