// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchedList has the objects of a kind and a selection, as far as the API server has told of changes.
type watchedList struct {
	of    *Watched
	key   string
	kind  client.ObjectList // an empty one
	which client.ListOptions

	mutex sync.Mutex
	// objects are by namespace and name; nil if they are not known, because of err.
	objects map[string]client.Object
	err     error
	// sorted are the names of objects as the API server sorts them; nil after a change.
	sorted []string
	// at is when the API server was last asked whether we may list, and changes what had changed until then.
	at      time.Time
	changes int
	// asked is when somebody last wanted the list.
	asked time.Time
	// polled is set if the list cannot be watched.
	polled bool
	stop   context.CancelFunc
}

// patience is how long the API server may take to answer.
const patience = 30 * time.Second

// has reports whether the objects are known.
func (l *watchedList) has() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.objects != nil
}

// answer is a page of the list.
func (l *watchedList) answer(into client.ObjectList, limit int64, after string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.refresh(); err != nil {
		return err
	}
	if l.sorted == nil {
		l.sorted = slices.Sorted(maps.Keys(l.objects))
	}
	names := l.sorted
	if after != "" {
		names = names[place(names, after):]
	}
	if limit > 0 && int64(len(names)) > limit {
		names = names[:limit]
		into.SetContinue(names[limit-1])
	}
	page := make([]runtime.Object, len(names))
	for i, name := range names {
		page[i] = l.objects[name].DeepCopyObject()
	}
	return meta.SetList(into, page)
}

// place is where the names after one begin. It may be gone.
func place(names []string, after string) int {
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	return i
}

// get is an object, or nil if there is none.
func (l *watchedList) get(key client.ObjectKey) (client.Object, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l.objects[key.String()], nil
}

// refresh lists what is not known, and asks whether what is known may still be listed.
func (l *watchedList) refresh() error {
	l.asked = time.Now()
	age, changes := time.Since(l.at), l.of.Changes()
	outdated := l.of.outdated(l.at)
	doubtful := outdated || age > l.of.pace.Doubt && changes != l.changes
	switch {
	case !doubtful && l.failsStill(age):
		return l.err
	case l.objects == nil, l.polled && (outdated || age > l.of.pace.Poll):
		return l.list(changes)
	case doubtful && !l.polled:
		return l.ask(changes)
	}
	return nil
}

// failsStill reports whether the objects are not known, and the last error counts.
func (l *watchedList) failsStill(age time.Duration) bool {
	return l.objects == nil && l.err != nil && (refused(l.err) || age <= l.of.pace.Poll)
}

// refused reports whether an error stays until an administrator does something.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// ask lists one object, to see whether that is still allowed.
func (l *watchedList) ask(changes int) error {
	l.at, l.changes = time.Now(), changes // of before the answer: rights may change meanwhile
	err := l.one()
	if err != nil {
		l.drop(err)
	}
	return err
}

// one lists one object.
func (l *watchedList) one() error {
	ctx, cancel := context.WithTimeout(l.of.ctx, patience)
	defer cancel()
	which := l.which
	which.Limit = 1
	return l.of.WithWatch.List(ctx, l.empty(), &which)
}

// list reads all objects, and begins to watch.
func (l *watchedList) list(changes int) error {
	l.drop(nil)
	ctx, cancel := context.WithTimeout(l.of.ctx, patience)
	defer cancel()
	l.at, l.changes = time.Now(), changes
	objects, version, next := map[string]client.Object{}, "", ""
	for {
		page, which := l.empty(), l.which
		which.Limit, which.Continue = Page, next
		err := l.of.WithWatch.List(ctx, page, &which)
		if err != nil {
			l.err = err
			return err
		}
		if err := meta.EachListItem(page, func(o runtime.Object) error { keep(objects, o); return nil }); err != nil {
			return err
		}
		version, next = page.GetResourceVersion(), page.GetContinue()
		if next == "" {
			break
		}
	}
	l.objects, l.sorted = objects, nil
	if !l.polled {
		var watching context.Context
		watching, l.stop = context.WithCancel(l.of.ctx)
		go l.follow(watching, version)
	}
	return nil
}

func (l *watchedList) empty() client.ObjectList { return l.kind.DeepCopyObject().(client.ObjectList) }

// keep keeps what answers need of an object.
func keep(objects map[string]client.Object, o runtime.Object) {
	object := o.(client.Object)
	object.SetManagedFields(nil)
	objects[client.ObjectKeyFromObject(object).String()] = object
}

// drop forgets the objects because of an error, or to list them again.
func (l *watchedList) drop(err error) {
	l.objects, l.sorted, l.err = nil, nil, err
	if l.stop != nil {
		l.stop()
	}
}

// follow watches until the context ends. If changes may have been missed, the objects are listed again when they are
// wanted.
func (l *watchedList) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		which := l.which
		which.Raw = &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
		events, err := l.of.Watch(ctx, l.empty(), &which)
		refused := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
		if err == nil {
			version, err = l.take(ctx, events, version)
			events.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second): // whatever ends watches at once
		}
		if err == nil { // a watch that cannot be opened may look as if it had ended
			err = l.one()
		}
		if err != nil {
			l.lose(ctx, refused)
			return
		}
	}
}

// errMissed is of a watch that may have missed changes.
var errMissed = errors.New("changes were missed")

// take keeps what a watch tells, until it ends. The version is that of the last change.
func (l *watchedList) take(ctx context.Context, events watch.Interface, version string) (string, error) {
	look := time.NewTicker(max(l.of.pace.Idle/3, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case <-look.C:
			l.forgetIfIdle()
		case e, open := <-events.ResultChan():
			if !open {
				return version, nil
			}
			object, is := e.Object.(client.Object)
			if !is || e.Type == watch.Error {
				return version, errMissed
			}
			version = cmp.Or(object.GetResourceVersion(), version)
			if e.Type != watch.Bookmark && l.apply(ctx, e.Type, object) {
				l.of.ring()
			}
		}
	}
}

// apply reports whether something has changed.
func (l *watchedList) apply(ctx context.Context, event watch.EventType, object client.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.objects == nil || ctx.Err() != nil {
		return false
	}
	l.sorted = nil
	if event == watch.Deleted {
		delete(l.objects, client.ObjectKeyFromObject(object).String())
		return true
	}
	keep(l.objects, object)
	return true
}

// lose forgets the objects, unless another watch has begun, or they have to be asked for again and again.
func (l *watchedList) lose(ctx context.Context, polled bool) {
	l.mutex.Lock()
	if ctx.Err() != nil {
		l.mutex.Unlock()
		return
	}
	if l.polled = polled; !polled {
		l.drop(nil)
	}
	l.mutex.Unlock()
	l.of.ring()
}

// forgetIfIdle ends the watch of a list that nobody wants.
func (l *watchedList) forgetIfIdle() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if time.Since(l.asked) <= l.of.pace.Idle {
		return
	}
	l.drop(nil)
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	if l.of.lists[l.key] == l {
		delete(l.of.lists, l.key)
	}
}
