// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"sync"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// apiServer stores Workloads. It has every namespace, labelled with its name, and nothing else.
type apiServer struct {
	client.Client // nil: the scheduler calls nothing but the methods below

	mutex     sync.Mutex // Kueue preempts several Workloads at once
	workloads map[client.ObjectKey]*queue.Workload
	// changed has the Workloads that were patched since the last look, as they were before.
	changed map[client.ObjectKey]*queue.Workload
}

func (a *apiServer) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch object := object.(type) {
	case *core.Namespace:
		object.Name = key.Name
		object.Labels = map[string]string{core.LabelMetadataName: key.Name}
		return nil
	case *queue.Workload:
		if w := a.workloads[key]; w != nil {
			w.DeepCopyInto(object)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (*apiServer) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (a *apiServer) Status() client.SubResourceWriter { return statusWriter{apiServer: a} }

type statusWriter struct {
	client.SubResourceWriter // nil, too
	*apiServer
}

// Patch is the server-side apply of a status, of which Kueue owns all.
func (a statusWriter) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	old := a.workloads[key]
	if a.changed[key] == nil {
		a.changed[key] = old
	}
	patched := old.DeepCopy()
	object.(*queue.Workload).Status.DeepCopyInto(&patched.Status)
	a.workloads[key] = patched
	patched.DeepCopyInto(object.(*queue.Workload))
	return nil
}

// noEvents is a recorder of events.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
