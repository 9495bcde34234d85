// SPDX-License-Identifier: Apache-2.0

package jsonwatch

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/json"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const appWrapper = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","Kind":"other","metadata":{"name":"a","namespace":"n",
"uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-11-26T12:00:00Z","deletionTimestamp":"2026-11-26T12:00:05Z",
"labels":{"l":"m"},"annotations":{"x":"y"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"p"}],
"managedFields":[{"manager":"kueue","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
"spec":{"suspend":true,"Suspend":false,"unknown":[{}],"components":[{"template":{"kind":"Job","spec":{"a":[1,2.5,"}"]}}}]},
"status":{"phase":"Running","conditions":[{"type":"PodsReady","status":"True"}],"componentStatus":[{"name":"j","podSets":[{"path":"p","replicas":2}]}]}}`

const unwrapped = `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"j","namespace":"n","uid":"u","labels":{"l":"m"},"annotations":{"a":"b"},
"creationTimestamp":"2026-11-26T12:00:00Z","finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"p","controller":true}]},
"status":{"active":1,"share":0.5,"conditions":[{"type":"Complete","status":"True"}],"terminating":null}}`

func ofAppWrappers() object { return watcher{of: &v1beta2.AppWrapper{}}.fresh() }
func ofJobs() object        { return watcher{of: &unstructured.Unstructured{}}.fresh() }

// eventsIn reads a watch.
func eventsIn(text string, fresh func() object) *events {
	return newEvents(io.NopCloser(strings.NewReader(text)), fresh)
}

// usual decodes as all of Kubernetes does.
func usual(t *testing.T, text string, into runtime.Object) runtime.Object {
	t.Helper()
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// with is an object with one more field.
func with(text, field string) string { return strings.Replace(text, "{", "{"+field+",", 1) }

func TestAnObjectIsDecodedAsUsual(t *testing.T) {
	managed := strings.Replace(unwrapped, `"metadata":{`, `"metadata":{"managedFields":[{"manager":"m"}],`, 1)
	for name, tc := range map[string]struct {
		fresh func() object
		sent  string
		want  runtime.Object
	}{
		"an AppWrapper":             {ofAppWrappers, appWrapper, usual(t, appWrapper, &v1beta2.AppWrapper{})},
		"an unstructured object":    {ofJobs, unwrapped, usual(t, unwrapped, &unstructured.Unstructured{})},
		"without a spec":            {ofJobs, with(unwrapped, `"spec":{"template":{"a":{}}}`), usual(t, unwrapped, &unstructured.Unstructured{})},
		"without managed fields":    {ofJobs, managed, usual(t, unwrapped, &unstructured.Unstructured{})},
		"one that has no status":    {ofJobs, `{"kind":"K","apiVersion":"v1","metadata":{"name":"a"}}`, usual(t, `{"kind":"K","apiVersion":"v1","metadata":{"name":"a"}}`, &unstructured.Unstructured{})},
		"an error":                  {ofJobs, `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`, nil},
		"an error of an AppWrapper": {ofAppWrappers, `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kind := watch.Modified
			if tc.want == nil {
				kind = watch.Error
			}
			// Two of them, in different layouts.
			e := eventsIn(fmt.Sprintf(`{"type":%q,"object":%s}`+"\n"+` { "type" : %q,`+"\n"+`"object" :%s } `, kind, tc.sent, kind, tc.sent), tc.fresh)
			for range 2 {
				got, object, err := e.Decode()
				if err != nil || got != kind {
					t.Fatalf("%s, %v", got, err)
				}
				if kind == watch.Error {
					if err := apierrors.FromObject(object); !apierrors.IsResourceExpired(err) {
						t.Errorf("got %v", err)
					}
				} else if diff := cmp.Diff(tc.want, object); diff != "" {
					t.Errorf("(-usual +got)\n%s", diff)
				}
			}
			if _, _, err := e.Decode(); err != io.EOF { //nolint:errorlint // who watches compares it
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

// A reflector goes by what the last bookmark of its beginning says.
func TestABookmarkSaysThatTheBeginningIsComplete(t *testing.T) {
	for _, fresh := range []func() object{ofAppWrappers, ofJobs} {
		_, object, err := eventsIn(`{"type":"BOOKMARK","object":{"kind":"Job","apiVersion":"batch/v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`, fresh).Decode()
		if err != nil {
			t.Fatal(err)
		}
		metadata := object.(metav1.Object)
		if metadata.GetResourceVersion() != "9" || metadata.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			t.Errorf("got %v", object)
		}
	}
}

// No part of an event is taken for a whole one, and no watch seems to end in the middle of one.
func TestAWatchThatBreaksOffIsAnError(t *testing.T) {
	text := `{"type":"ADDED","object":` + unwrapped + `}`
	for cut := 1; cut < len(text); cut++ {
		_, object, err := eventsIn(text[:cut], ofJobs).Decode()
		if object != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("after %s: %v, %v", text[:cut], object, err)
		}
	}
}

func TestWhatIsNoEventIsAnError(t *testing.T) {
	for _, text := range []string{
		`[]`, `{}`, `"a"`, `{"object":{},"type":"ADDED"}`, `{"type":"ADDED"}`, `{"type":1,"object":{}}`, `{"type":"ADDED","object":[]}`,
		`{"type":"ADDED","object":{"metadata":7}}`, `{"type":"ADDED","object":{},"more":1}`, `{"type":"ADDED","object":{}`, `}`,
	} {
		if _, object, err := eventsIn(text, ofJobs).Decode(); err == nil || object != nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, %v", text, object, err)
		}
	}
}

// Whoever adds a field to AppWrappers gets it from a watch, too.
func TestTypedObjectsAreDecodedWhole(t *testing.T) {
	into, ok := ofAppWrappers().fields().(*v1beta2.AppWrapper)
	if !ok || !reflect.ValueOf(into).Elem().IsZero() {
		t.Errorf("decodes into %v", into)
	}
}
