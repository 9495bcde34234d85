// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// wrappers are written in turn, writesOfABlock times in a block of one way.
	wrappers       = 20
	writesOfABlock = 400
	blocks         = 5
	// onlyMetadata asks for an answer as our controller does.
	onlyMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	wholeObject  = "application/json"
)

// way is a way to write a status.
type way struct {
	name, verb, contentType, accept string
	// spec is whether the write has the whole object, as typed clients send it.
	spec bool
	// applied is whether the AppWrappers were applied on the server's side, and not just created.
	applied bool
}

var ways = []way{
	{"PATCH what changed, answered with metadata (ours)", "PATCH", "application/merge-patch+json", onlyMetadata, false, false},
	{"the same of what was applied on the server", "PATCH", "application/merge-patch+json", onlyMetadata, false, true},
	{"PATCH what changed, answered with all", "PATCH", "application/merge-patch+json", wholeObject, false, true},
	{"PUT without spec, answered with metadata", "PUT", "application/json", onlyMetadata, false, true},
	{"PUT of all, answered with all (usual clients)", "PUT", "application/json", wholeObject, true, true},
}

// TestWaysToWriteAStatus measures what a write of an AppWrapper's status costs the API server, by the
// way in which it is sent. Blocks of writes alternate. It asserts that each way has the same effect.
func TestWaysToWriteAStatus(t *testing.T) {
	admin, cluster := sandbox.Start(t, "writes", 26641, 1, nil)
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.APIPath, config.GroupVersion = -1, "/apis", &workload.GroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	w := writer{T: t, rest: api, admin: admin, cost: map[string]map[string][]float64{}}
	for i := range wrappers {
		w.create(i, false)
		w.create(i, true)
	}
	for range blocks {
		for _, way := range ways {
			w.block(way, processes{cluster: cluster.Dir()})
		}
	}
	w.print()
}

type writer struct {
	*testing.T
	rest  rest.Interface
	admin client.Client
	// cost is milliseconds of each write, by way, and by process or "wall", of each block.
	cost map[string]map[string][]float64
	sent int
}

// nameOf one of the AppWrappers.
func nameOf(i int, applied bool) string { return fmt.Sprintf("life-%d-%t", i, applied) }

// create creates an AppWrapper that no controller looks after, or applies it on the server's side.
func (w *writer) create(i int, applied bool) {
	w.Helper()
	l := &lives{T: w.T, namespace: metav1.NamespaceDefault, Scenario: bench.Scenario{Pods: 1}}
	aw := l.object(i).(*workload.AppWrapper)
	aw.Name = nameOf(i, applied)
	another := "example.com/nobody"
	aw.TypeMeta = metav1.TypeMeta{APIVersion: workload.GroupVersion.String(), Kind: workload.AppWrapperKind}
	aw.Spec.ManagedBy, aw.Spec.Suspend = &another, true
	text, err := json.Marshal(aw)
	if err != nil {
		w.Fatal(err)
	}
	if !applied {
		err = w.admin.Create(w.Context(), aw)
	} else {
		err = w.rest.Patch("application/apply-patch+yaml").Namespace(aw.Namespace).Resource("appwrappers").Name(aw.Name).
			Param("fieldManager", "git").Body(text).Do(w.Context()).Error()
	}
	if err != nil {
		w.Fatal(err)
	}
}

// status is the n-th: between two of them, what changes is what a usual step changes.
func status(n int) workload.AppWrapperStatus {
	running := []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue}[n%2]
	now := metav1.NewTime(time.Unix(int64(1_800_000_000+n), 0).UTC())
	s := workload.AppWrapperStatus{Phase: []workload.AppWrapperPhase{workload.AppWrapperResuming, workload.AppWrapperRunning}[n%2]}
	for _, kind := range []workload.AppWrapperCondition{workload.QuotaReserved, workload.ResourcesDeployed, workload.PodsReady, workload.Unhealthy} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: string(kind), Status: running, Reason: string(s.Phase), Message: fmt.Sprintf("written %d times", n), LastTransitionTime: now,
		})
	}
	s.ComponentStatus = []workload.AppWrapperComponentStatus{{Name: "life", Kind: "Job", APIVersion: "batch/v1", PodSets: []workload.AppWrapperPodSet{{Path: "template.spec.template"}}}}
	return s
}

// block sends writes one after the other, and adds what they cost.
func (w *writer) block(way way, p processes) {
	w.Helper()
	read := map[string]*workload.AppWrapper{}
	for i := range wrappers {
		aw := &workload.AppWrapper{}
		if err := w.admin.Get(w.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: nameOf(i, way.applied)}, aw); err != nil {
			w.Fatal(err)
		}
		read[aw.Name] = aw
	}
	names := make([]string, 0, wrappers)
	for name := range read {
		names = append(names, name)
	}
	slices.Sort(names)
	before, begin := p.seconds(w.T), time.Now()
	for n := range writesOfABlock {
		aw := read[names[n%wrappers]]
		answer, err := w.request(way, aw, w.sent+n/wrappers).DoRaw(w.Context())
		if err == nil {
			aw.ResourceVersion, err = version(way.accept, answer)
		}
		if err != nil {
			w.Fatalf("%s: %v", way.name, err)
		}
	}
	wall := time.Since(begin)
	w.add(way, "wall", wall.Seconds())
	for process, seconds := range p.seconds(w.T) {
		w.add(way, process, seconds-before[process])
	}
	w.sent += writesOfABlock / wrappers
	w.isWritten(way, names)
}

func (w *writer) add(way way, process string, seconds float64) {
	if w.cost[way.name] == nil {
		w.cost[way.name] = map[string][]float64{}
	}
	w.cost[way.name][process] = append(w.cost[way.name][process], 1000*seconds/writesOfABlock)
}

// version is the resourceVersion in the answer to a write.
func version(accept string, answer []byte) (string, error) {
	var meta metav1.PartialObjectMetadata
	if accept == wholeObject {
		err := json.Unmarshal(answer, &meta)
		return meta.ResourceVersion, err
	}
	var envelope runtime.Unknown // as Kubernetes sends protobuf, after four bytes that say so
	err := envelope.Unmarshal(bytes.TrimPrefix(answer, []byte("k8s\x00")))
	if err == nil {
		err = meta.Unmarshal(envelope.Raw)
	}
	return meta.ResourceVersion, err
}

// request prepares a write of the n-th status, with the resourceVersion of the answer to the one before.
func (w *writer) request(way way, aw *workload.AppWrapper, n int) *rest.Request {
	w.Helper()
	var body any = map[string]any{"metadata": map[string]any{"resourceVersion": aw.ResourceVersion}, "status": status(n)}
	switch {
	case way.spec:
		whole := aw.DeepCopy()
		whole.TypeMeta = metav1.TypeMeta{APIVersion: workload.GroupVersion.String(), Kind: workload.AppWrapperKind}
		whole.Status = status(n)
		body = whole
	case way.verb == "PUT":
		body = map[string]any{"apiVersion": workload.GroupVersion.String(), "kind": workload.AppWrapperKind, "metadata": aw.ObjectMeta, "status": status(n)}
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	return w.rest.Verb(way.verb).Namespace(aw.Namespace).Resource("appwrappers").Name(aw.Name).SubResource("status").
		SetHeader("Content-Type", way.contentType).SetHeader("Accept", way.accept).Body(text)
}

// isWritten checks that the last status is there, and that nothing else went.
func (w *writer) isWritten(way way, names []string) {
	w.Helper()
	for _, name := range names {
		aw := &workload.AppWrapper{}
		if err := w.admin.Get(w.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, aw); err != nil {
			w.Fatal(err)
		}
		if want := status(w.sent - 1).Conditions[0].Message; len(aw.Status.Conditions) != 4 || aw.Status.Conditions[0].Message != want {
			w.Errorf("%s: %s has %v, not %q", way.name, name, aw.Status.Conditions, want)
		}
		if len(aw.Spec.Components) != 1 || len(aw.ManagedFields) > 0 != way.applied {
			w.Errorf("%s: %s has lost its components, or its managed fields are %v", way.name, name, aw.ManagedFields)
		}
	}
}

func (w *writer) print() {
	w.Helper()
	w.Logf("%-50s %-22s %-22s %-22s", "milliseconds of a write: median (least, most)", "kube-apiserver", "etcd", "wall")
	for _, way := range ways {
		columns := make([]any, 0, 4)
		columns = append(columns, way.name)
		for _, process := range []string{"kube-apiserver", "etcd", "wall"} {
			all := slices.Sorted(slices.Values(w.cost[way.name][process]))
			if len(all) == 0 {
				w.Fatalf("there is no process %s", process)
			}
			columns = append(columns, fmt.Sprintf("%.2f (%.2f, %.2f)", all[len(all)/2], all[0], all[len(all)-1]))
		}
		w.Logf("%-50s %-22s %-22s %-22s", columns...)
	}
}
