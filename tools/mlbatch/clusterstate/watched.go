// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watched is a client for a page that is open for long. What it has listed or read once it watches, and answers from
// memory, so that nothing is requested while nothing changes, however often it is asked. What has not been asked for
// in a while is not watched any more.
type Watched struct {
	client.WithWatch
	ctx  context.Context
	pace Pace

	mutex sync.Mutex
	lists map[string]*watchedList
	// answers are those that cannot be watched, and refusals.
	answers map[string]*answer
	changed chan struct{}
	// changes counts what was seen to change. What was answered before the last change may be another answer now.
	changes int
	// rechecked is when it was last unknown what the user may read.
	rechecked time.Time
}

// Pace is how long answers count.
type Pace struct {
	// Doubt is how old an answer must be to be asked for again after a change: is it still allowed, or allowed now?
	Doubt time.Duration
	// Poll is the age at which that is asked again which cannot be watched, or has failed.
	Poll time.Duration
	// Idle is how long a list is watched that nobody asks for.
	Idle time.Duration
}

// Usual is the pace for people.
func Usual() Pace { return Pace{Doubt: 8 * time.Second, Poll: 5 * time.Second, Idle: 90 * time.Second} }

// Watch returns a client that watches until the context ends.
func Watch(ctx context.Context, c client.WithWatch, pace Pace) *Watched {
	return &Watched{
		WithWatch: c, ctx: ctx, pace: pace, lists: map[string]*watchedList{}, answers: map[string]*answer{}, changed: make(chan struct{}),
	}
}

// Changed is closed at the next change of anything that is watched.
func (w *Watched) Changed() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.changed
}

// Changes counts the changes so far.
func (w *Watched) Changes() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.changes
}

// Doubt makes what is asked next ask again for what is old: somebody looks, and rights may have changed.
func (w *Watched) Doubt() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.changes++
}

func (w *Watched) ring() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.changes++
	close(w.changed)
	w.changed = make(chan struct{})
}

// List answers from memory, in pages as the API server does. A list at a revision is not watched.
func (w *Watched) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if asked.Raw != nil {
		return w.WithWatch.List(ctx, list, asked)
	}
	l, err := w.listOf(list, asked)
	if err != nil {
		return err
	}
	return l.answer(list, asked.Limit, asked.Continue)
}

// listOf is the list that has the objects of a kind and a selection.
func (w *Watched) listOf(list client.ObjectList, asked *client.ListOptions) (*watchedList, error) {
	kind, err := w.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	which := client.ListOptions{Namespace: asked.Namespace, LabelSelector: asked.LabelSelector, FieldSelector: asked.FieldSelector}
	key := keyOf(kind, list, which.AsListOptions().String(), which.Namespace)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.lists[key] == nil {
		empty := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
		empty.GetObjectKind().SetGroupVersionKind(kind)
		w.lists[key] = &watchedList{of: w, key: key, kind: empty, which: which}
	}
	return w.lists[key], nil
}

func keyOf(kind schema.GroupVersionKind, as any, selection, namespace string) string {
	return fmt.Sprintf("%s %T %s in %q", kind, as, selection, namespace)
}

// Get answers from a list that has the object, or else watches the object.
func (w *Watched) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	kind, list, err := w.listFor(object)
	if err != nil {
		return w.WithWatch.Get(ctx, key, object, options...)
	}
	all := w.whole(kind, list, key.Namespace)
	if all == nil {
		one := (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}})
		if all, err = w.listOf(list, one); err != nil {
			return err
		}
	}
	found, err := all.get(key)
	switch {
	case apierrors.IsForbidden(err): // the right to get may be there
		return w.remember("get "+keyOf(kind, object, key.String(), ""), object, func() error { return w.WithWatch.Get(ctx, key, object, options...) })
	case err != nil:
		return err
	case found == nil:
		return apierrors.NewNotFound(w.resource(kind), key.Name)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// listFor is a list that can have the object.
func (w *Watched) listFor(object client.Object) (kind schema.GroupVersionKind, list client.ObjectList, err error) {
	if kind, err = w.GroupVersionKindFor(object); err != nil {
		return kind, nil, err
	}
	of := kind.GroupVersion().WithKind(kind.Kind + "List")
	switch object.(type) {
	case *metav1.PartialObjectMetadata:
		list = &metav1.PartialObjectMetadataList{}
	case *unstructured.Unstructured:
		list = &unstructured.UnstructuredList{}
	default:
		made, err := w.Scheme().New(of)
		if err != nil {
			return kind, nil, err
		}
		list = made.(client.ObjectList)
	}
	list.GetObjectKind().SetGroupVersionKind(of)
	return kind, list, nil
}

// whole is the list of a namespace, or of all, if there is one.
func (w *Watched) whole(kind schema.GroupVersionKind, list client.ObjectList, namespace string) *watchedList {
	of, none := kind.GroupVersion().WithKind(kind.Kind+"List"), (&client.ListOptions{}).AsListOptions().String()
	for _, in := range []string{namespace, ""} {
		w.mutex.Lock()
		l := w.lists[keyOf(of, list, none, in)]
		w.mutex.Unlock()
		if l != nil && l.has() {
			return l
		}
	}
	return nil
}

func (w *Watched) resource(kind schema.GroupVersionKind) schema.GroupResource {
	mapping, err := w.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		return resource.GroupResource()
	}
	return mapping.Resource.GroupResource()
}

// SubResource reads what cannot be watched, and asks again only after a change.
func (w *Watched) SubResource(name string) client.SubResourceClient {
	return &watchedSubResource{w.WithWatch.SubResource(name), name, w}
}

type watchedSubResource struct {
	client.SubResourceClient
	name string
	of   *Watched
}

// Get reads a part of an object.
func (s *watchedSubResource) Get(ctx context.Context, object, part client.Object, options ...client.SubResourceGetOption) error {
	kind, err := s.of.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	key := s.name + " of " + keyOf(kind, object, client.ObjectKeyFromObject(object).String(), "")
	return s.of.remember(key, part, func() error { return s.SubResourceClient.Get(ctx, object, part, options...) })
}

// answer is what was read and cannot be watched.
type answer struct {
	mutex   sync.Mutex
	object  client.Object
	err     error
	at      time.Time
	changes int
}

// remember reads into an object, or answers as the last time if nothing has changed since.
func (w *Watched) remember(key string, into client.Object, read func() error) error {
	w.mutex.Lock()
	now := w.changes
	a := w.answers[key]
	if a == nil {
		w.forgetAnswers()
		a = &answer{}
		w.answers[key] = a
	}
	w.mutex.Unlock()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.at.IsZero() || now != a.changes && time.Since(a.at) > w.pace.Poll || w.outdated(a.at) {
		a.at, a.changes = time.Now(), now
		a.err = read()
		a.object = into.DeepCopyObject().(client.Object)
		return a.err
	}
	if a.err == nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(a.object.DeepCopyObject()).Elem())
	}
	return a.err
}

// mostAnswers bounds what is remembered of objects at which nobody may look any more.
const mostAnswers = 1000

func (w *Watched) forgetAnswers() {
	if len(w.answers) >= mostAnswers {
		clear(w.answers)
	}
}
