// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow tells of all objects of a kind, one after the other, until the test ends: after each change,
// and when one is gone. The API server closes the watch of a client that is slow for a moment, as
// this one is when a thousand objects change at once. Then another watch goes on at the same place,
// and some objects may be told of again.
func Follow[T client.Object](t *testing.T, admin client.WithWatch, list client.ObjectList, hear func(object T, gone bool), of ...client.ListOption) {
	t.Helper()
	var kind T
	tell := func(object any, gone bool) {
		if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unseen.Obj
		}
		if o, ok := object.(T); ok {
			hear(o, gone)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				into, _ := list.DeepCopyObject().(client.ObjectList)
				return into, admin.List(ctx, into, append(of[:len(of):len(of)], &client.ListOptions{Raw: &options})...)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return admin.Watch(ctx, list, append(of[:len(of):len(of)], &client.ListOptions{Raw: &options})...)
			},
		},
		ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { tell(object, false) },
			UpdateFunc: func(_, object any) { tell(object, false) },
			DeleteFunc: func(object any) { tell(object, true) },
		},
	})
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatalf("%T cannot be followed", list)
	}
}
