// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

var now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// cluster has the objects of testdata/world.yaml.
func cluster(t *testing.T, calls interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	phase := func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }
	kind := func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }
	stored := fake.NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(objects...).WithIndex(&corev1.Pod{}, "status.phase", phase).WithIndex(&corev1.Event{}, "type", kind).
		WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} }).Build()
	if calls.SubResourceGet == nil {
		calls.SubResourceGet = positionsAreNotServed
	}
	return interceptor.NewClient(stored, calls)
}

// positionsAreNotServed answers as an API server does on which Kueue's visibility API is off.
func positionsAreNotServed(_ context.Context, _ client.Client, name string, o client.Object, _ client.Object, _ ...client.SubResourceGetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: name}, o.GetName())
}

// mayNotList are the calls of a user who may not list these.
func mayNotList(forbidden ...client.ObjectList) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if slices.ContainsFunc(forbidden, func(no client.ObjectList) bool { return reflect.TypeOf(no) == reflect.TypeOf(list) }) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "these"}, "", errors.New("no role"))
		}
		return c.List(ctx, list, options...)
	}}
}

func TestListSaysWhatThereIs(t *testing.T) {
	var all bytes.Buffer
	for _, row := range []struct {
		who, namespace string
		forbidden      []client.ObjectList
		columns        work.Columns
	}{
		{who: "an administrator", columns: work.Columns{Namespace: true, Wide: true}},
		{who: "a member", namespace: "blue", forbidden: []client.ObjectList{&kueue.ClusterQueueList{}}},
		{who: "a member where CodeFlare is off", namespace: "blue", forbidden: []client.ObjectList{&v1alpha1.RunList{}, &kueue.ClusterQueueList{}}},
		{who: "a member without a right on Runs, of which AppWrappers are there", namespace: "red", forbidden: []client.ObjectList{&v1alpha1.RunList{}, &kueue.ClusterQueueList{}}},
		{who: "one who may not read Workloads", namespace: "blue", forbidden: []client.ObjectList{&kueue.WorkloadList{}, &kueue.ClusterQueueList{}}},
	} {
		overview, err := work.List(t.Context(), cluster(t, mayNotList(row.forbidden...)), row.namespace, now)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("# " + row.who + "\n")
		if err := overview.WriteTable(&all, row.columns, now); err != nil {
			t.Fatal(err)
		}
		for _, unknown := range overview.Unknown {
			all.WriteString("note: " + unknown + "\n")
		}
		all.WriteString("\n")
	}
	golden.Compare(t, "testdata/list.out.txt", all.Bytes())
}

func TestWithoutTheRightToListAppWrappersASentenceNamesIt(t *testing.T) {
	for namespace, want := range map[string]string{
		"red": "you may not list appwrappers in namespace red: ask an administrator for a role with this right",
		"":    "you may not list appwrappers in all namespaces: ask an administrator for a role with this right",
	} {
		_, err := work.List(t.Context(), cluster(t, mayNotList(&v1beta2.AppWrapperList{})), namespace, now)
		wording.OneSentence(t, "", err, want)
	}
}
