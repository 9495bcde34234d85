// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// bells ring when something changes that is watched. What changed is read again in any case, so all rings are the
// same. What cannot be watched does not ring.
type bells struct {
	client client.WithWatch
	rung   chan struct{}
	mutex  sync.Mutex
	hung   map[string]bool
}

func newBells(c client.WithWatch) *bells {
	return &bells{client: c, rung: make(chan struct{}, 1), hung: map[string]bool{}}
}

// hang watches the work, its Workload and its pods until the context is canceled. A watch that has ended is opened
// again. The first ring of each watch tells of what is there already, so no change is lost in between.
func (b *bells) hang(ctx context.Context, namespace string, o explain.Objects) {
	in := client.InNamespace(namespace)
	named := func(name string) client.ListOption {
		return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	}
	if o.Run != nil {
		b.hangOne(ctx, "Run "+o.Run.Name, &v1alpha1.RunList{}, in, named(o.Run.Name))
	}
	if o.AppWrapper != nil {
		b.hangOne(ctx, "AppWrapper "+o.AppWrapper.Name, &v1beta2.AppWrapperList{}, in, named(o.AppWrapper.Name))
	}
	if o.Workload != nil {
		b.hangOne(ctx, "Workload "+o.Workload.Name, &kueue.WorkloadList{}, in, named(o.Workload.Name))
	}
	for _, step := range o.Steps {
		b.hang(ctx, namespace, step.Objects)
	}
	if label, name := podLabel(o); label != "" {
		b.hangOne(ctx, "pods of "+name, &corev1.PodList{}, in, client.MatchingLabels{label: name})
	}
}

func (b *bells) hangOne(ctx context.Context, what string, list client.ObjectList, options ...client.ListOption) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.hung[what] {
		return
	}
	w, err := b.client.Watch(ctx, list, options...)
	if err != nil {
		return
	}
	b.hung[what] = true
	go func() {
		b.ring(ctx, w)
		w.Stop()
		b.mutex.Lock()
		defer b.mutex.Unlock()
		delete(b.hung, what)
	}()
}

// ring rings for each change until the watch ends.
func (b *bells) ring(ctx context.Context, w watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return
			}
		}
		select {
		case b.rung <- struct{}{}:
		default: // it rings already
		}
	}
}

// wait returns after a ring or the longest pause, but not before the shortest.
func (b *bells) wait(ctx context.Context, pace Pace) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(pace.Least):
	}
	select {
	case <-ctx.Done():
	case <-b.rung:
	case <-time.After(pace.Most - pace.Least):
	}
}
