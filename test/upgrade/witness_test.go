// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/patience"
)

// watched has the kinds that running work consists of, and what an upgrade must not change:
// fields, and the status of conditions.
var watched = []struct {
	apiVersion, kind   string
	fields, conditions []string
}{
	{"v1", "Namespace", []string{"status.phase"}, nil},
	{"v1", "Pod", []string{"status.phase", "spec.nodeName", "status.containerStatuses.restartCount"}, nil},
	{"batch/v1", "Job", []string{"spec.suspend", "status.active"}, nil},
	{"kubeflow.org/v1", "PyTorchJob", []string{"spec.runPolicy.suspend"}, []string{"Running", "Suspended"}},
	{"ray.io/v1", "RayCluster", []string{"spec.suspend", "status.state"}, nil},
	{
		"workload.codeflare.dev/v1beta2", "AppWrapper",
		[]string{"spec.suspend", "status.phase", "status.resettingCount", "status.retries"}, []string{"QuotaReserved"},
	},
	{"kueue.x-k8s.io/v1beta2", "Workload", []string{"spec.active"}, []string{"QuotaReserved", "Admitted", "Evicted"}},
	{"kueue.x-k8s.io/v1beta2", "LocalQueue", []string{"status.flavorsReservation", "status.flavorsUsage"}, nil},
	{
		"kueue.x-k8s.io/v1beta2", "ClusterQueue",
		[]string{"status.flavorsReservation", "status.flavorsUsage", "status.reservingWorkloads", "status.admittedWorkloads"}, nil,
	},
}

// witness watches work and quota, and records every change.
type witness struct {
	*site
	stop context.CancelFunc
	ways sync.WaitGroup

	mu     sync.Mutex
	before map[string]string
	seen   map[string]bool // what has changed
}

// witness starts watching. Everything that exists must stay as it is.
func (s *site) witness() *witness {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	w := &witness{site: s, stop: stop, before: s.atRest(), seen: map[string]bool{}}
	for i := range watched {
		w.ways.Go(func() {
			for ctx.Err() == nil {
				w.follow(ctx, i)
			}
		})
	}
	return w
}

// resting is how long nothing may change before the test begins something: Kueue counts what queues use later, and
// pods start after their AppWrapper is Running.
const resting = 3 * time.Second

// atRest returns the states of all objects once they have not changed for a while.
func (s *site) atRest() (last map[string]string) {
	s.Helper()
	var since time.Time
	s.until("nothing changes any more", func(ctx context.Context) error {
		now, err := s.states(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(last, now); diff != "" {
			last, since = now, time.Now()
			return errors.New(diff)
		}
		if at := time.Since(since); at < patience.For(resting) {
			return fmt.Errorf("nothing has changed for %s", at)
		}
		return nil
	})
	return last
}

func (s *site) states(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for i, kind := range watched {
		list := listOf(kind.apiVersion, kind.kind)
		if err := s.admin.List(ctx, list); err != nil {
			return nil, err
		}
		for _, object := range list.Items {
			if ours(&object) {
				all[nameOf(&object)] = stateOf(&object, i)
			}
		}
	}
	return all, nil
}

// follow watches a kind until its watch is closed, as happens when its CRD changes.
func (w *witness) follow(ctx context.Context, kind int) {
	list, err := w.look(ctx, kind)
	if err != nil {
		return
	}
	events, err := w.admin.Watch(ctx, listOf(watched[kind].apiVersion, watched[kind].kind), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return
		}
		w.hear(object, kind, event.Type == watch.Deleted)
	}
}

// look compares all objects of a kind.
func (w *witness) look(ctx context.Context, kind int) (*unstructured.UnstructuredList, error) {
	list := listOf(watched[kind].apiVersion, watched[kind].kind)
	if err := w.admin.List(ctx, list); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[nameOf(&list.Items[i])] = true
		w.hear(&list.Items[i], kind, false)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.before {
		if strings.HasPrefix(name, watched[kind].kind+" ") && !there[name] {
			w.seen[name+" is gone"] = true
		}
	}
	return list, nil
}

// ours reports whether an object belongs to a watched team.
func ours(object *unstructured.Unstructured) bool {
	team := object.GetNamespace()
	if team == "" {
		team, _, _ = strings.Cut(object.GetName(), "-")
	}
	return team == "blue" || team == "green"
}

func (w *witness) hear(object *unstructured.Unstructured, kind int, deleted bool) {
	if !ours(object) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := nameOf(object)
	is, was := stateOf(object, kind), w.before[name]
	switch {
	case deleted:
		w.seen[name+" was deleted"] = true
	case was == "":
		w.seen[name+" came to be: "+is] = true
	case is != was:
		w.seen[fmt.Sprintf("%s\n  was %s\n  and is %s", name, was, is)] = true
	}
}

// sawNothing ends the watch. Any recorded change fails the test.
func (w *witness) sawNothing(while string) {
	w.Helper()
	w.stop()
	w.ways.Wait()
	for i := range watched {
		_, err := w.look(w.Context(), i)
		w.must(err)
	}
	for _, what := range slices.Sorted(maps.Keys(w.seen)) {
		w.Errorf("while %s: %s", while, what)
	}
	w.Logf("while %s: %d objects were watched, %d changes were seen", while, len(w.before), len(w.seen))
	for _, name := range slices.Sorted(maps.Keys(w.before)) {
		w.Logf("%s: %s", name, w.before[name])
	}
}

func listOf(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	return list
}

func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

// stateOf returns what must not change.
func stateOf(object *unstructured.Unstructured, kind int) string {
	state := []string{"UID " + string(object.GetUID())}
	if object.GetDeletionTimestamp() != nil {
		state = append(state, "being deleted")
	}
	for _, field := range watched[kind].fields {
		text, _ := json.Marshal(dig(object.Object, strings.Split(field, ".")))
		state = append(state, field+" "+string(text))
	}
	for _, condition := range watched[kind].conditions {
		state = append(state, condition+" "+statusOf(object, condition))
	}
	return strings.Join(state, ", ")
}

// dig follows a path. In a list, it continues with every item.
func dig(value any, path []string) any {
	if list, ok := value.([]any); ok && len(path) > 0 {
		var all []any
		for _, item := range list {
			all = append(all, dig(item, path))
		}
		return all
	}
	fields, ok := value.(map[string]any)
	if !ok || len(path) == 0 {
		return value
	}
	return dig(fields[path[0]], path[1:])
}

func statusOf(object *unstructured.Unstructured, condition string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == condition {
			return fmt.Sprint(c["status"])
		}
	}
	return "none"
}
