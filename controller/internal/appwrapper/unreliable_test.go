// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// manner is how a call fails.
type manner string

const (
	// fails: the call returns an error, and nothing has happened.
	fails manner = "fails"
	// lost: the call has succeeded, but returns an error.
	lost manner = "lost"
	// outrun: another client changes the AppWrapper just before the call.
	outrun manner = "outrun"
	// dies: the process dies before the call, which is the same as after the previous one.
	dies manner = "dies"
	// evicted and deleted: just before the call, Kueue takes the quota back, or the user
	// deletes the AppWrapper. This ends the story.
	evicted manner = "evicted"
	deleted manner = "deleted"
)

// What can go wrong with a call. If the process dies or another client changes something before
// a read, the effect is the same as before the next write.
var (
	reading   = []manner{fails}
	ascertain = []manner{fails, outrun, evicted, deleted}
	writing   = []manner{fails, lost, outrun, dies, evicted, deleted}
)

// passing are the manners after which a story continues.
var passing = []manner{fails, lost, outrun, dies}

// trouble is how a call fails, and with which error.
type trouble struct {
	manner manner
	answer answer
}

func (t trouble) String() string {
	if t.answer.name == "" {
		return string(t.manner)
	}
	return string(t.manner) + "_" + t.answer.name
}

// answer is an error that an API server or a network returns occasionally.
type answer struct {
	name string
	err  error
}

var answers = []answer{
	{"500", apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed"))},
	{"504", apierrors.NewTimeoutError("the request did not complete in time", 0)},
	{"429", apierrors.NewTooManyRequestsError("too many requests")},
	{"refused", fmt.Errorf("dial tcp 10.0.0.1:443: connect: %w", syscall.ECONNREFUSED)},
}

// call is a request to the API server.
type call struct {
	name    string
	manners []manner
}

// death is the panic that ends a process in the middle of its work.
type death struct{}

// wire counts the calls of a life, across all of its processes, and makes some of them fail.
type wire struct {
	calls    []call
	troubles map[int]trouble // by the number of the call, starting with 1
	// outrun lets other clients be faster than the controller.
	outrun func(manner)
	// lags reports whether a cache stays stale for now.
	lags func(cached string) bool
}

func (w *wire) carry(name string, manners []manner, happen func() error) error {
	w.calls = append(w.calls, call{name, manners})
	t, troubled := w.troubles[len(w.calls)]
	if !troubled || !slices.Contains(manners, t.manner) {
		return happen()
	}
	switch t.manner {
	case fails:
		return t.answer.err
	case outrun, evicted, deleted:
		w.outrun(t.manner)
		return happen()
	case dies:
		panic(death{})
	}
	if err := happen(); err != nil {
		return err // a real error comes first
	}
	return t.answer.err
}

// String lists the calls, and which of them failed.
func (w *wire) String() string {
	var text strings.Builder
	for i, c := range w.calls {
		fmt.Fprintf(&text, "  %3d %s %s\n", i+1, c.name, w.troubles[i+1])
	}
	return text.String()
}

// unreliable is a client that uses the wire.
type unreliable struct {
	*apiServer
	wire    *wire
	process *process
}

func (u unreliable) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	manners := reading
	_, itself := into.(*v1beta2.AppWrapper)
	if _, metadata := into.(*metav1.PartialObjectMetadata); itself || metadata {
		manners = ascertain
	}
	err := u.wire.carry("get "+key.Name, manners, func() error { return u.apiServer.Get(ctx, key, into, options...) })
	if itself && err == nil {
		u.process.assured = !u.theOne().Spec.Suspend
	}
	return err
}

func (u unreliable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return u.wire.carry("list", reading, func() error { return u.apiServer.List(ctx, list, options...) })
}

func (u unreliable) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return u.wire.carry("create "+object.GetName(), writing, func() error { return u.apiServer.Create(ctx, object, options...) })
}

func (u unreliable) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return u.wire.carry("delete "+object.GetName(), writing, func() error { return u.apiServer.Delete(ctx, object, options...) })
}

func (u unreliable) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return u.wire.carry("patch "+object.GetName(), writing, func() error { return u.apiServer.Patch(ctx, object, patch, options...) })
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
	return u.wire.carry("patch status of "+object.GetName(), writing, func() error { return u.patchStatus(object, patch) })
}

func (u unreliable) IsObjectNamespaced(object runtime.Object) (namespaced bool, err error) {
	err = u.wire.carry("discover", reading, func() error {
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
	wire            *wire
}

func (m unreliableMapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	err = m.wire.carry("discover "+kind.Kind, reading, func() error {
		gvk := kind.WithVersion(versions[0])
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		mapping = &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}
		return nil
	})
	return mapping, err
}
