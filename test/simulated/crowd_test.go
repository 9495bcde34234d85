// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// crowdLimit is the limit for thousands of objects.
const crowdLimit = 20 * time.Minute

// authors is how many clients write at the same time.
const authors = 8

// crowd is a namespace of AppWrappers of one Job with one pod each. They are in no queue, so
// that only our controller and the Job controller affect the results.
type crowd struct {
	*testing.T
	admin     client.WithWatch
	namespace string

	mu   sync.Mutex
	last map[string]*workload.AppWrapper // as received by the watch
	seen func(before, after *workload.AppWrapper)
}

func newCrowd(t *testing.T, admin client.WithWatch, namespace string) *crowd {
	t.Helper()
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	c := &crowd{T: t, admin: admin, namespace: namespace, last: map[string]*workload.AppWrapper{}}
	sandbox.Follow(t, admin, &workload.AppWrapperList{}, c.hear, client.InNamespace(namespace))
	return c
}

func (c *crowd) hear(aw *workload.AppWrapper, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.last[aw.Name]; before != nil && c.seen != nil {
		c.seen(before, aw)
	}
	c.last[aw.Name] = aw
	if gone {
		delete(c.last, aw.Name)
	}
}

// each calls do for every number, several at a time.
func (c *crowd) each(from, to int, do func(ctx context.Context, i int) error) {
	c.Helper()
	all, ctx := errgroup.WithContext(c.Context())
	next := atomic.Int64{}
	next.Store(int64(from))
	for range authors {
		all.Go(func() error {
			for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		c.Fatal(err)
	}
}

func nameOf(i int) string { return fmt.Sprintf("crowd-%05d", i) }

// forever is for pods that do not end by themselves.
const forever = ""

// create creates AppWrappers whose pods run for so long.
func (c *crowd) create(from, to int, suspend bool, runFor string) {
	c.Helper()
	c.each(from, to, func(ctx context.Context, i int) error {
		annotations := "{}"
		if runFor != forever {
			annotations = `{"localcluster.mlbatch.dev/run-for": "` + runFor + `"}`
		}
		job := fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q}, "spec": {"backoffLimit": 0, "template": {
			"metadata": {"annotations": %s},
			"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/work:1", "resources": {"requests": {"cpu": "10m"}}}]}
		}}}`, nameOf(i), annotations)
		return c.admin.Create(ctx, &workload.AppWrapper{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: nameOf(i)},
			Spec: workload.AppWrapperSpec{Suspend: suspend, Components: []workload.AppWrapperComponent{
				{Template: runtime.RawExtension{Raw: []byte(job)}},
			}},
		})
	})
}

// await waits until so many AppWrappers are in a phase, and no others exist.
func (c *crowd) await(phase workload.AppWrapperPhase, n int) {
	c.Helper()
	awaitFor(c.T, crowdLimit, fmt.Sprintf("%d are %s", n, phase), func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, aw := range c.last {
			if aw.Status.Phase != phase {
				return fmt.Errorf("%d are there, and %s is %q", len(c.last), aw.Name, aw.Status.Phase)
			}
		}
		if len(c.last) != n {
			return fmt.Errorf("%d are there", len(c.last))
		}
		return nil
	})
}

// clear deletes all AppWrappers and waits until they are gone.
func (c *crowd) clear() {
	c.Helper()
	c.mu.Lock()
	names := slices.Collect(maps.Keys(c.last))
	c.mu.Unlock()
	c.each(0, len(names), func(ctx context.Context, i int) error { // a single request for all would time out
		return c.admin.Delete(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: names[i]}})
	})
	c.await("", 0)
	awaitFor(c.T, crowdLimit, "no pod is left", func(ctx context.Context) error {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := c.admin.List(ctx, pods, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return errors.New(pods.Items[0].Name + " is left")
		}
		return nil
	})
}
