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

// manner is how a call goes wrong.
type manner string

const (
	// fails: an error comes, and nothing has happened.
	fails manner = "fails"
	// lost: it has happened, and an error comes instead of the answer.
	lost manner = "lost"
	// outrun: just before the call somebody else changes the AppWrapper.
	outrun manner = "outrun"
	// dies: the process ends before the call, and so after the one before it.
	dies manner = "dies"
	// evicted and deleted: just before the call Kueue takes the quota back, or the user
	// deletes the AppWrapper. That is the end of the story.
	evicted manner = "evicted"
	deleted manner = "deleted"
)

// What can go wrong with a call. That a process dies before it reads, or somebody
// changes something, is the same as at its next write.
var (
	reading   = []manner{fails}
	ascertain = []manner{fails, outrun, evicted, deleted}
	writing   = []manner{fails, lost, outrun, dies, evicted, deleted}
)

// passing are those after which a story goes on.
var passing = []manner{fails, lost, outrun, dies}

// trouble is a call that goes wrong, and the answer that comes then.
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

// answer is an error that an API server, or a network, gives now and then.
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

// call is something that the controller wants of the API server.
type call struct {
	name    string
	manners []manner
}

// death is the end of a process in the midst of its work.
type death struct{}

// wire counts the calls of a life, over all its processes, and cuts some of them.
type wire struct {
	calls    []call
	troubles map[int]trouble // by the number of the call, the first being 1
	// outrun lets others be faster than the controller.
	outrun func(manner)
	// lags is asked whether a cache that could hear the news does not.
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
		return err // this answer came
	}
	return t.answer.err
}

// String lists the calls, and how some went wrong.
func (w *wire) String() string {
	var text strings.Builder
	for i, c := range w.calls {
		fmt.Fprintf(&text, "  %3d %s %s\n", i+1, c.name, w.troubles[i+1])
	}
	return text.String()
}

// unreliable is a client on the wire.
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
	client.SubResourceWriter // nil: nobody asks for more than is here
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

// unreliableMapper knows every kind that it is asked for.
type unreliableMapper struct {
	meta.RESTMapper // nil: nobody asks for more than is here
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
