// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/jsonwatch"
	"github.com/mlbatch/mlbatch/test/fakeapiserver"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/patience"
)

// cluster is an API server in memory with Jobs that have pods, and the whole controller as main
// starts it, with caches, queue and workers.
type cluster struct {
	testing.TB
	api  *fakeapiserver.Server
	pods int // of each Job
	// moved, if not nil, is called when an AppWrapper enters a phase or is gone.
	moved func(name string, phase v1beta2.AppWrapperPhase, gone bool)
	stop  func()
	// cached is where the controller reads.
	cached client.Reader
	// last is alive as long as the caches of the last controller are.
	last weak.Pointer[ownMapper]
}

// ownMapper is the mapper of one controller.
type ownMapper struct{ meta.RESTMapper }

func newCluster(t testing.TB, pods int) *cluster {
	t.Helper()
	c := &cluster{TB: t, pods: pods, stop: func() {}}
	c.api = fakeapiserver.Start(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind), jobKind, podKind, nodeKind)
	c.api.Heard = c.play
	t.Cleanup(func() {
		c.stop()
		c.api.Stop()
	})
	return c
}

// play plays the Job controller, the kubelet and the garbage collector.
func (c *cluster) play(change fakeapiserver.Change) {
	switch {
	case change.Resource == "jobs" && change.Before == nil:
		job := change.After
		for i := range c.pods {
			c.addPod(job, i)
		}
	case change.Resource == "jobs" && change.After == nil:
		for i := range c.pods {
			c.api.Delete("pods", keyOf(podName(change.Before, i)))
		}
	case change.Resource == "appwrappers" && c.moved != nil && phaseOf(change.After) != phaseOf(change.Before):
		object := cmp.Or(change.After, change.Before)
		c.moved(object.GetName(), phaseOf(object), change.After == nil)
	}
}

func (c *cluster) addPod(job *fakeapiserver.Object, i int, changes ...string) {
	c.put(podText, append(changes, "NAME", podName(job, i), "OWNER", job.GetName(), "UID", string(job.GetUID()))...)
}

func podName(job *fakeapiserver.Object, i int) string {
	return fmt.Sprintf("%s-%d", job.GetName(), i)
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: given.Namespace, Name: name}
}

func phaseOf(aw *fakeapiserver.Object) v1beta2.AppWrapperPhase {
	if aw == nil {
		return ""
	}
	var status struct{ Phase v1beta2.AppWrapperPhase }
	_ = json.Unmarshal(aw.Fields["status"], &status) // the status may be missing
	return status.Phase
}

// start starts the controller, or a new one after the last has stopped.
func (c *cluster) start() {
	c.Helper()
	leads := c.wait()
	leads()
}

// wait starts a replica that waits to be the leader, and returns what makes it the leader.
func (c *cluster) wait() (leads func()) {
	c.Helper()
	caches, err := CacheOptions(config.Default().AppWrapper)
	if err != nil {
		c.Fatal(err)
	}
	mapper := &ownMapper{c.api.Mapper()}
	c.last = weak.Make(mapper)
	reconciles := ctrlmetrics.Registry // of this process, which heap counts
	stop := c.api.Manage(c, ctrl.Options{
		Scheme: scheme(c), NewCache: jsonwatch.New, Cache: caches,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	}, func(mgr ctrl.Manager) error {
		c.cached = mgr.GetCache()
		heard, err := Hear(context.Background(), mgr.GetFieldIndexer(), mgr.GetCache())
		own := ctrlmetrics.Registry
		leads = func() {
			ctrlmetrics.Registry = own
			defer func() { ctrlmetrics.Registry = reconciles }()
			if err := Setup(mgr, config.Default(), noEvictions{}, nil, heard); err != nil {
				c.Error(err)
			}
		}
		return err
	})
	c.stop = func() { stop(); c.cached = nil }
	ctrlmetrics.Registry = reconciles
	return leads
}

func (c *cluster) await(what string, condition func() bool) {
	c.Helper()
	err := patience.PollFor(context.Background(), 10*time.Millisecond, 3*time.Minute,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		requests := c.api.Requests()
		c.Fatalf("timed out waiting for %s; the last requests were\n%s", what, strings.Join(requests[max(0, len(requests)-20):], "\n"))
	}
}

// submit creates AppWrappers as kubectl apply and a mutating webhook leave them.
func (c *cluster) submit(from, to int) {
	for i := from; i < to; i++ {
		c.put(appWrapperText, "NAME", fmt.Sprintf("train-%05d", i))
	}
}

func (c *cluster) count(phase v1beta2.AppWrapperPhase) int {
	n := 0
	for _, aw := range c.api.All("appwrappers") {
		if phaseOf(aw) == phase {
			n++
		}
	}
	return n
}

// JSON of objects, as in a real cluster.
var (
	appWrapperText = sync.OnceValues(func() (string, error) { return jsonOf("testdata/live/appwrapper.yaml") })
	podText        = sync.OnceValues(func() (string, error) { return jsonOf("testdata/live/pod.yaml") })
)

func jsonOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	return string(text), err
}

// put stores an object with other names.
func (c *cluster) put(text func() (string, error), names ...string) {
	whole, err := text()
	if err == nil {
		err = c.api.Put([]byte(strings.NewReplacer(names...).Replace(whole)))
	}
	if err != nil {
		c.Error(err)
	}
}
