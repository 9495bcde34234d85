// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// evicted and deleted: just before the call, Kueue takes the quota back, or the user deletes the
// AppWrapper. This ends the story.
const (
	evicted troubles.Manner = "evicted"
	deleted troubles.Manner = "deleted"
)

// What can go wrong with a call. If the process dies or another client changes something before
// a read, the effect is the same as before the next write.
var (
	reading   = []troubles.Manner{troubles.Fails}
	ascertain = []troubles.Manner{troubles.Fails, troubles.Outrun, evicted, deleted}
	writing   = []troubles.Manner{troubles.Fails, troubles.Lost, troubles.Outrun, troubles.Dies, evicted, deleted}
)

// unreliable is a client that uses the wire.
type unreliable struct {
	*apiServer
	wire    *troubles.Wire
	process *process
}

func (u unreliable) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	manners := reading
	_, itself := into.(*v1beta2.AppWrapper)
	if _, metadata := into.(*metav1.PartialObjectMetadata); itself || metadata {
		manners = ascertain
	}
	err := u.carry("get "+key.Name, manners, func() error { return u.apiServer.Get(ctx, key, into, options...) })
	if itself && err == nil {
		u.process.assured = !u.theOne().Spec.Suspend
	}
	return err
}

// carry makes any request but a creation or a discovery. After it, what an earlier answer has told
// of the quota may be wrong.
func (u unreliable) carry(name string, manners []troubles.Manner, happen func() error) error {
	u.process.assured = false
	return u.wire.Carry(name, manners, happen)
}

func (u unreliable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return u.carry("list", reading, func() error { return u.apiServer.List(ctx, list, options...) })
}

func (u unreliable) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return u.wire.Carry(verbOf(options)+" "+object.GetName(), writing, func() error { return u.apiServer.Create(ctx, object, options...) })
}

func (u unreliable) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return u.carry("delete "+object.GetName(), writing, func() error { return u.apiServer.Delete(ctx, object, options...) })
}

func (u unreliable) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return u.carry("patch "+object.GetName(), writing, func() error { return u.apiServer.Patch(ctx, object, patch, options...) })
}

func (u unreliable) Status() client.SubResourceWriter {
	return unreliableStatus{unreliable: u}
}

type unreliableStatus struct {
	client.SubResourceWriter // nil: only the methods here are used
	unreliable               unreliable
}

func (s unreliableStatus) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	u := s.unreliable
	err := u.carry("patch status of "+object.GetName(), writing, func() error { return u.patchStatus(object, patch) })
	if err == nil { // it named the resourceVersion
		u.process.assured = !u.theOne().Spec.Suspend
	}
	return err
}

func (u unreliable) IsObjectNamespaced(object runtime.Object) (namespaced bool, err error) {
	err = u.wire.Carry("discover", reading, func() error {
		namespaced, err = u.apiServer.IsObjectNamespaced(object)
		return err
	})
	return namespaced, err
}

func (u unreliable) RESTMapper() meta.RESTMapper {
	return unreliableMapper{wire: u.wire}
}

// unreliableMapper knows every requested kind.
type unreliableMapper struct {
	meta.RESTMapper // nil: only the methods here are used
	wire            *troubles.Wire
}

func (m unreliableMapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	err = m.wire.Carry("discover "+kind.Kind, reading, func() error {
		gvk := kind.WithVersion(versions[0])
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		mapping = &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}
		return nil
	})
	return mapping, err
}
