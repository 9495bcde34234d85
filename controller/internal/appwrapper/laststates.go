// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// lastStates are the states in which components ended that are gone, as watches told them. They
// belong to the caches, which forget an object before anybody may have seen its end: a Job may
// remove itself at once. A new process has none.
type lastStates struct {
	objects *lru.Cache
}

// lastStatesKept is more than usually wait for a look. What was used last stays.
const lastStatesKept = 1000

func newLastStates() lastStates {
	return lastStates{lru.New(lastStatesKept)}
}

type lastStateKey struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

// get returns nil if no such component has ended and gone since one of that name appeared.
func (l lastStates) get(kind kinds.Kind, name types.NamespacedName) client.Object {
	if found, ok := l.objects.Get(lastStateKey{kind.GVK, name}); ok {
		return found.(client.Object)
	}
	return nil
}

// note is a handler that comes before another one, so that who is woken finds the state.
func (l lastStates) note(kind kinds.Kind, next toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	key := func(object client.Object) lastStateKey {
		return lastStateKey{kind.GVK, client.ObjectKeyFromObject(object)}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initially bool) {
			if component, ok := object.(client.Object); ok {
				l.objects.Remove(key(component))
			}
			next.OnAdd(object, initially)
		},
		UpdateFunc: next.OnUpdate,
		DeleteFunc: func(object any) {
			if component, ok := removed(object); ok && ended(verdict(kind, component)) {
				l.objects.Add(key(component), component)
			}
			next.OnDelete(object)
		},
	}
}

// removed is the last known state of an object that is gone.
func removed(object any) (client.Object, bool) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	component, ok := object.(client.Object)
	return component, ok
}

func ended(v kinds.Verdict) bool {
	return v == kinds.Succeeded || v == kinds.Failed
}
