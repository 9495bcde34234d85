// SPDX-License-Identifier: Apache-2.0

// Package jsonwatch makes caches that decode what they watch in one go. API servers send custom resources as JSON
// only. A usual watch goes over each event ten times: to find its end, to find out what it is, to copy the object
// out of it, and then the same with the object. This one goes over it twice. Lists are decoded as usual.
package jsonwatch

import (
	"context"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// New is cache.New with these watches. The options must have a client, a scheme and a mapper. What they select, they
// select by labels, in all namespaces. Of unstructured objects, events have the metadata, without managed fields, and
// the status.
func New(config *rest.Config, options cache.Options) (cache.Cache, error) {
	options.NewInformer = func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if inJSON(of) {
			from = &toolscache.ListWatch{
				ListWithContextFunc:  toolscache.ToListerWithContext(from).ListWithContext,
				WatchFuncWithContext: watcher{config, options, of}.watch,
			}
		}
		return toolscache.NewSharedIndexInformer(from, of, resync, indexers)
	}
	return cache.New(config, options)
}

// inJSON: the usual watch would be in JSON, too. Whatever has a binary form is sent in that.
func inJSON(of runtime.Object) bool {
	_, binary := of.(interface{ Unmarshal(text []byte) error })
	return !binary
}

// watcher watches objects of the type of one.
type watcher struct {
	config  *rest.Config
	options cache.Options
	of      runtime.Object
}

// watch opens a watch, as an informer does now and then.
func (w watcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	kind, err := apiutil.GVKForObject(w.of, w.options.Scheme)
	if err != nil {
		return nil, err
	}
	mapping, err := w.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	client, err := apiutil.RESTClientForGVK(kind, true, false, w.config, serializer.NewCodecFactory(w.options.Scheme), w.options.HTTPClient)
	if err != nil {
		return nil, err
	}
	options.Watch = true
	if selector := w.selector(); selector != nil {
		options.LabelSelector = selector.String()
	}
	body, err := client.Get().Resource(mapping.Resource.Resource).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(newEvents(body, w.fresh), apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
}

// selector is nil if all objects are selected.
func (w watcher) selector() labels.Selector {
	for object, by := range w.options.ByObject {
		if reflect.TypeOf(object) == reflect.TypeOf(w.of) && by.Label != nil {
			return by.Label
		}
	}
	return w.options.DefaultLabelSelector
}

// fresh is an object to decode into.
func (w watcher) fresh() object {
	if _, ok := w.of.(*unstructured.Unstructured); ok {
		return &slim{}
	}
	return typed{reflect.New(reflect.TypeOf(w.of).Elem()).Interface().(runtime.Object)}
}
