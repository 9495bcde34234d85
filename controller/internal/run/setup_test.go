// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/patience"
)

// cluster is an API server in memory and the whole controller, with caches, queue and workers.
type cluster struct {
	*testing.T
	api   *fakeapiserver.Server
	asked []string // by news
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	runs := func(kind string) schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(kind) }
	c := &cluster{T: t, api: fakeapiserver.Start(
		runs(v1alpha1.RunKind), runs(v1alpha1.ApplicationKind), runs(v1alpha1.DataSetKind), runs(v1alpha1.RunSizeConfigurationKind),
		v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), corev1.SchemeGroupVersion.WithKind("Pod"))}
	t.Cleanup(c.api.Stop)
	c.start()
	return c
}

func (c *cluster) start() {
	c.Helper()
	caches, err := CacheOptions()
	if err != nil {
		c.Fatal(err)
	}
	c.api.Manage(c, ctrl.Options{Scheme: scheme(c), Cache: caches}, func(mgr ctrl.Manager) error {
		return Setup(mgr, runplan.DefaultSettings(), accessreview.NewAuthors(mgr.GetClient()), true)
	})
}

func (c *cluster) put(kind string, object client.Object) {
	c.Helper()
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	text, err := json.Marshal(object)
	if err == nil {
		err = c.api.Put(text)
	}
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) status() (status v1alpha1.RunStatus) {
	_ = json.Unmarshal(c.api.Get("runs", theRun).Fields["status"], &status) // it may be missing
	return status
}

// await waits until the Run has a message.
func (c *cluster) await(message string) {
	c.Helper()
	err := patience.PollFor(context.Background(), 10*time.Millisecond, patience.Short,
		func(context.Context) (bool, error) { return strings.Contains(c.status().Message, message), nil })
	if err != nil {
		c.Fatalf("timed out waiting for %q: %+v; the requests were\n%s", message, c.status(), strings.Join(c.api.Requests(), "\n"))
	}
}

// A Run may be the first of all objects.
func TestARunIsWokenByWhatItWaitsFor(t *testing.T) {
	c := newCluster(t)
	c.put(v1alpha1.RunKind, givenRun())
	c.await("there is no Application digits in namespace blue yet")
	app := givenApplication()
	app.Spec.Inputs = []v1alpha1.Input{{Name: "pictures"}}
	c.put(v1alpha1.ApplicationKind, app)
	c.await("there is no size xs, nor any other")
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	c.await("there is no DataSet pictures in namespace blue")
	data := &v1alpha1.DataSet{}
	data.Name, data.Namespace = "pictures", theRun.Namespace
	data.Spec.PVC = &v1alpha1.PVCSource{ClaimName: "pictures"}
	c.put(v1alpha1.DataSetKind, data)
	c.await("it waits for quota")
	aw := c.api.Get("appwrappers", theRun)
	for label, want := range map[string]string{
		v1beta2.UserLabel: "alice_example.com", v1beta2.UserIDLabel: "uid-of-alice", v1alpha1.RunLabel: theRun.Name,
	} {
		if got := aw.Labels[label]; got != want {
			t.Errorf("the label %s of the AppWrapper is %q, want %q", label, got, want)
		}
	}
	if got := aw.OwnerReferences; len(got) != 1 || got[0].UID != "uid-of-run" || got[0].Controller == nil || got[0].BlockOwnerDeletion != nil {
		t.Errorf("the owners of the AppWrapper are %v", got)
	}
	if resolved := c.status().Resolved; resolved == nil || resolved.Size != "xs" || resolved.Workers != 1 || resolved.PriorityClass != "default-priority" {
		t.Errorf("it got %+v", resolved)
	}
}

// Applications of other namespaces wake Runs, too, and those of the same name in its own do not count.
func TestARunIsWokenByAnApplicationOfAnotherNamespace(t *testing.T) {
	c := newCluster(t)
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	c.put(v1alpha1.ApplicationKind, givenApplication())
	run := givenRun()
	run.Spec.Application.Namespace = "red"
	c.put(v1alpha1.RunKind, run)
	c.await("there is no Application digits in namespace red yet")
	sequence, program := givenApplication(), givenApplication()
	sequence.Namespace, program.Namespace, program.Name = "red", "red", theProgram
	sequence.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{theProgram}}
	c.put(v1alpha1.ApplicationKind, sequence)
	c.await("step step0: there is no Application program in namespace red yet")
	c.put(v1alpha1.ApplicationKind, program)
	c.await("step step0 is Queued")
	if aw := c.api.Get("appwrappers", client.ObjectKey{Namespace: theRun.Namespace, Name: theRun.Name + "-step0"}); aw.Labels[v1alpha1.RunLabel] != theRun.Name {
		t.Errorf("the labels of the AppWrapper are %v", aw.Labels)
	}
}

// Before a workflow is accepted, nothing about the Run names the Applications of its steps.
func TestAWorkflowIsWokenByWhatItsStepsWaitFor(t *testing.T) {
	c := newCluster(t)
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	sequence, program := givenApplication(), givenApplication()
	sequence.Spec = v1alpha1.ApplicationSpec{API: v1alpha1.APISequence, Steps: []string{theProgram, "later"}}
	program.Name = theProgram
	c.put(v1alpha1.ApplicationKind, sequence)
	c.put(v1alpha1.ApplicationKind, program)
	c.put(v1alpha1.RunKind, givenRun())
	c.await("step step1: there is no Application later in namespace blue yet")
	later := givenApplication()
	later.Name = "later"
	c.put(v1alpha1.ApplicationKind, later)
	c.await("step step0 is Queued")
	if aw := c.api.Get("appwrappers", client.ObjectKey{Namespace: theRun.Namespace, Name: theRun.Name + "-step0"}); aw.Labels[v1alpha1.StepLabel] != "step0" {
		t.Errorf("the labels of the AppWrapper are %v", aw.Labels)
	}
	step := func(phase v1alpha1.RunPhase) v1alpha1.StepStatus {
		s := v1alpha1.StepStatus{Phase: phase}
		s.Application.Name = string(phase)
		return s
	}
	run := givenRun()
	run.Status.Steps = []v1alpha1.StepStatus{step(v1alpha1.StepWaiting), step(v1alpha1.RunRunning), step(v1alpha1.RunPending), step(v1alpha1.StepSkipped)}
	if got := strings.Join(waitsFor(run), " "); got != "* blue/Pending blue/Waiting" {
		t.Errorf("a workflow is woken by %s", got)
	}
}

func TestARunFollowsItsAppWrapperAndIsQuiet(t *testing.T) {
	c := newCluster(t)
	sizes := runplan.DefaultSizes()
	c.put(v1alpha1.RunSizeConfigurationKind, &sizes)
	c.put(v1alpha1.ApplicationKind, givenApplication())
	c.put(v1alpha1.RunKind, givenRun())
	c.await("it waits for quota")
	c.patch(`{"status":{"phase":"Resuming"}}`)
	c.await("its pods start")
	c.patch(`{"status":{"phase":"Running","conditions":[{"type":"PodsReady","status":"True","reason":"X","lastTransitionTime":"2030-01-01T12:00:00Z"}]}}`)
	c.await("all pods are ready")
	c.settled()
	// What changes for others is no reason to ask.
	c.put(v1alpha1.ApplicationKind, givenApplication())
	c.patch(`{"status":{"resettingCount":0}}`)
	time.Sleep(300 * time.Millisecond) // there is no sign of a request that does not come
	if requests := c.news(); len(requests) > 0 {
		t.Errorf("a quiet Run causes requests:\n%s", strings.Join(requests, "\n"))
	}
	c.patch(`{"status":{"phase":"Succeeded"}}`)
	c.await("it has succeeded")
}

func (c *cluster) patch(patch string) {
	c.Helper()
	if err := c.api.Patch("appwrappers", theRun, patch); err != nil {
		c.Fatal(err)
	}
}

// settled waits until there was no request for a while: the last one has no other sign.
func (c *cluster) settled() {
	for last := time.Now(); time.Since(last) < max(time.Second, patience.For(time.Second/2)); {
		time.Sleep(50 * time.Millisecond)
		if len(c.news()) > 0 {
			last = time.Now()
		}
	}
}

// news are the requests since its last call.
func (c *cluster) news() []string {
	news := c.api.Requests()
	c.asked = append(c.asked, news...)
	return news
}
