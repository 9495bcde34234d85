// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// look is what a test does before a look at the cluster, which counts from 1.
type look func(t *testing.T, c client.Client, number int) error

// watched is a cluster with the namespace blue, on which any request but a list fails the test.
func watched(t *testing.T, before look, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := submit.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	blue := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: map[string]string{quota.TeamLabel: "true"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(objects, blue)...).Build()
	looks := 0
	readOnly := interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind := list.GetObjectKind().GroupVersionKind().Kind; kind == "NamespaceList" {
				looks++
				if err := before(t, c, looks); err != nil {
					return err
				}
			}
			asked := (&client.ListOptions{}).ApplyOptions(options)
			asked.Raw = nil // the fake knows one revision only
			return c.List(ctx, list, asked)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			t.Error("it gets an object")
			return nil
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("it creates an object")
			return nil
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			t.Error("it updates an object")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("it patches an object")
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			t.Error("it deletes an object")
			return nil
		},
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			t.Error("it deletes objects")
			return nil
		},
	})
	return readOnly
}

func undisturbed(*testing.T, client.Client, int) error { return nil }

func stray() *corev1.Pod {
	p := given.Pod("stray")
	p.Labels, p.OwnerReferences = nil, nil
	return &p
}

// lowered is a queue that has less quota than its admitted work, and is younger.
func lowered(t *testing.T) []client.Object {
	t.Helper()
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "blue-cluster-queue", CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0))}}
	w := given.Admitted("1")
	w.Namespace = "red"
	return []client.Object{queue, &w}
}

const lookedAt = " AppWrappers and 0 Services in namespaces blue; "

func TestAudit(t *testing.T) {
	for name, row := range map[string]struct {
		objects []client.Object
		before  look
		format  string
		out     string
		err     error
	}{
		"nothing is found": {
			out: "0 finding(s), 0 note(s): looked at 0 pods, 0" + lookedAt + "0 Workloads, 0 ClusterQueues and 0 nodes of the cluster; at revision \n",
		},
		"something is found": {
			objects: []client.Object{stray()}, err: somethingFound,
			out: "no-quota: delete the object, or name it with --except if it is yours; enable policies.ownership and policies.lifecycle\n" +
				"  Pod blue/stray: no Workload holds quota for pods stray: nothing that controls them has a Workload\n" +
				"1 finding(s), 0 note(s): looked at 1 pods, 0" + lookedAt + "0 Workloads, 0 ClusterQueues and 0 nodes of the cluster; at revision \n",
		},
		"what is gone at the second look is nothing": {
			objects: []client.Object{stray()},
			before: func(t *testing.T, c client.Client, number int) error {
				if number == 1 {
					return nil
				}
				return c.Delete(t.Context(), stray())
			},
			out: "0 finding(s), 0 note(s): looked at 0 pods, 0" + lookedAt + "0 Workloads, 0 ClusterQueues and 0 nodes of the cluster; at revision \n",
		},
		"a note is no failure": {
			objects: lowered(t),
			out: "over-quota: find out who admitted the work: only Kueue may write the status of Workloads\n" +
				"  note: ClusterQueue blue-cluster-queue: its admitted work uses 1 nvidia.com/gpu of flavor h100, and may use 0: the quota was changed at 2001-09-09T01:46:40Z, after the last admission\n" +
				"0 finding(s), 1 note(s): looked at 0 pods, 0" + lookedAt + "1 Workloads, 1 ClusterQueues and 0 nodes of the cluster; at revision \n",
		},
		"the cluster cannot be read": {
			before: func(*testing.T, client.Client, int) error { return errors.New("connection refused") },
			err:    errors.New("cannot read the cluster: connection refused"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := row.before
			if before == nil {
				before = undisturbed
			}
			var out, progress bytes.Buffer
			err := auditor{output: output{format: "table"}}.run(t.Context(), watched(t, before, row.objects...), &out, &progress)
			if diff := cmp.Diff(row.out, out.String()); diff != "" {
				t.Error(diff)
			}
			if message(err) != message(row.err) {
				t.Errorf("it ends with %v, want %v", err, row.err)
			}
		})
	}
}

// Members choose the owners and the folders of their pods, and an administrator reads of them.
func TestATerminalDoesNotObeyAFinding(t *testing.T) {
	f := audit.Finding{Rule: "no-quota", Object: "Job\x1b]0;mine\a blue/train", Evidence: "it has the folder /\u009b2J\nred"}
	var out bytes.Buffer
	printFindings(&out, audit.Moment{}, []audit.Finding{f})
	auditor{output: output{format: "table"}}.printChanges(&out, time.Unix(0, 0), "found", []audit.Finding{f})
	const want = "Job ]0;mine blue/train: it has the folder / 2J red"
	if strings.ContainsAny(out.String(), "\x1b\a\u009b") || strings.Count(out.String(), want) != 2 {
		t.Errorf("got %q", &out)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAuditAsJSON(t *testing.T) {
	var out bytes.Buffer
	err := auditor{output: output{format: "json"}}.run(t.Context(), watched(t, undisturbed, stray()), &out, &out)
	if !errors.Is(err, somethingFound) {
		t.Error(err)
	}
	var got audit.Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Items) != 1 || got.Items[0].Object != "Pod blue/stray" || got.LookedAt["pods"] != 1 {
		t.Errorf("got %s", &out)
	}
	out.Reset()
	if err := (auditor{output: output{format: "json"}}).run(t.Context(), watched(t, undisturbed), &out, &out); err != nil || !strings.Contains(out.String(), `"items": []`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// The pod appears at the second look and is gone at the fifth; the API server is away once.
func TestAuditWatches(t *testing.T) {
	for format, want := range map[string]string{
		"table": `TIME found no-quota: Pod blue/stray: no Workload holds quota for pods stray: nothing that controls them has a Workload: delete the object, or name it with --except if it is yours; enable policies.ownership and policies.lifecycle
TIME gone no-quota: Pod blue/stray: no Workload holds quota for pods stray: nothing that controls them has a Workload
`,
		"json": `{"apiVersion":"mlbatch.dev/v1","kind":"AuditChange","time":"TIME","event":"found","items":[{"rule":"no-quota","object":"Pod blue/stray","evidence":"no Workload holds quota for pods stray: nothing that controls them has a Workload","remedy":"delete the object, or name it with --except if it is yours; enable policies.ownership and policies.lifecycle"}]}
{"apiVersion":"mlbatch.dev/v1","kind":"AuditChange","time":"TIME","event":"gone","items":[{"rule":"no-quota","object":"Pod blue/stray","evidence":"no Workload holds quota for pods stray: nothing that controls them has a Workload","remedy":"delete the object, or name it with --except if it is yours; enable policies.ownership and policies.lifecycle"}]}
`,
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		c := watched(t, func(t *testing.T, c client.Client, number int) error {
			switch number {
			case 2:
				return c.Create(t.Context(), stray())
			case 4:
				return errors.New("connection refused")
			case 5:
				return c.Delete(t.Context(), stray())
			case 7:
				interrupt()
			}
			return nil
		})
		var out, progress bytes.Buffer
		err := auditor{output: output{format: format}, watch: true}.run(ctx, c, &out, &progress)
		if !errors.Is(err, somethingFound) {
			t.Errorf("it ends with %v", err)
		}
		got := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)`).ReplaceAllString(out.String(), "TIME")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if progress.String() != "cannot read the cluster: connection refused; trying again\n" {
			t.Errorf("it tells %s", &progress)
		}
	}
}

func TestAWatchEndsAsItWentOn(t *testing.T) {
	refused := errors.New("connection refused")
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", nil)
	for name, row := range map[string]struct {
		answers []error // the last one comes with the interrupt
		want    string
	}{
		"nothing was found":                {answers: []error{nil, nil}},
		"the first look fails":             {answers: []error{refused, nil}, want: "cannot read the cluster: connection refused"},
		"the API server was away for good": {answers: []error{nil, refused, nil}, want: "exit status 1"},
		"the right was taken away":         {answers: []error{nil, denied, nil}, want: "you may not list namespaces: bind the ClusterRole mlbatch-audit to yourself"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			c := watched(t, func(_ *testing.T, _ client.Client, number int) error {
				if number == len(row.answers) {
					interrupt()
				}
				return row.answers[number-1]
			})
			err := auditor{output: output{format: "table"}, watch: true}.run(ctx, c, &bytes.Buffer{}, &bytes.Buffer{})
			if message(err) != row.want {
				t.Errorf("it ends with %v, want %s", err, row.want)
			}
		})
	}
}
