// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

func TestAWatchThatEndsIsOpenedAgain(t *testing.T) {
	api := fakeapiserver.Start(corev1.SchemeGroupVersion.WithKind("Pod"))
	t.Cleanup(api.Stop)
	admin, err := client.NewWithWatch(api.Config(), client.Options{Mapper: api.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	opened, heard := make(chan watch.Interface, 10), make(chan string, 10)
	admin = interceptor.NewClient(admin, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			if err == nil {
				opened <- w
			}
			return w, err
		},
	})
	put(t, api, "first")
	sandbox.Follow(t, admin, &corev1.PodList{}, func(pod *corev1.Pod, gone bool) { heard <- fmt.Sprintf("%s %t", pod.Name, gone) }, client.InNamespace("team"))
	await(t, heard, "first false")
	next(t, opened).Stop() // the API server closes the connection of who is slow
	next(t, opened)
	put(t, api, "second")
	await(t, heard, "second false")
	api.Delete("pods", types.NamespacedName{Namespace: "team", Name: "first"})
	await(t, heard, "first true")
}

func put(t *testing.T, api *fakeapiserver.Server, name string) {
	t.Helper()
	text := fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team", "name": %q}}`, name)
	if err := api.Put(text); err != nil {
		t.Fatal(err)
	}
}

// await may hear before what it has heard already.
func await(t *testing.T, heard <-chan string, text string) {
	t.Helper()
	for next(t, heard) != text {
	}
}

func next[T any](t *testing.T, from <-chan T) (it T) {
	t.Helper()
	select {
	case it = <-from:
	case <-time.After(patience.For(patience.Short)):
		t.Fatal("nothing came within a minute")
	}
	return it
}
