// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package counted_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/counted/recount"
	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// kinds are those that make pods of templates. A Pod is one pod, whatever its fields are.
var kinds = []string{
	"job", "jobset", "pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob", "raycluster", "rayjob", "rayservice",
	"deployment", "statefulset", "replicaset", "leaderworkerset",
}

// mostTries bounds the search for specs that are accepted and get pods, for each that is wanted.
const mostTries = 10

// The real operators make no more pods, and give no more devices to them, than Kueue has counted
// at that moment, for specs of all kinds with random optional fields.
func TestNoMorePodsThanCounted(t *testing.T) {
	t.Logf("seed %d: repeat with -counted.seed=%[1]d", *seed)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			k := learn(t, kind)
			for try := 0; k.tally.withPods < *specs; try += lanes {
				if try >= *specs*mostTries {
					t.Fatalf("only %d of %d specs got pods\nwithout:\n%s\nrefused:\n%s", k.tally.withPods, try, strings.Join(k.tally.without, "\n"), strings.Join(k.tally.refused, "\n"))
				}
				k.tryMany(t, try)
			}
			t.Logf("%d specs got pods, at most %d at a time; %d got none, %d were refused", k.tally.withPods, k.tally.most, len(k.tally.without), len(k.tally.refused))
		})
	}
}

// variety is a kind, and what happened to its specs.
type variety struct {
	manifest string
	schemas  variation.Schemas
	schema   map[string]any
	tally    tally
}

type tally struct {
	sync.Mutex
	withPods, most   int
	without, refused []string
}

// learn reads a kind's manifest, and its schema from the API server.
func learn(t *testing.T, kind string) *variety {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "e2e", "testdata", "kinds", kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k := &variety{manifest: string(text)}
	gvk := k.base(t, "base").GroupVersionKind()
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewRoot(api.OpenAPIV3()).GVSpecAsMap(gvk.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	k.schemas = document
	if k.schema, err = k.schemas.Of(gvk.Group, gvk.Version, gvk.Kind); err != nil {
		t.Fatal(err)
	}
	return k
}

// base is an object of the kind that is known to run.
func (k *variety) base(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	replaced := os.Expand(k.manifest, func(variable string) string {
		return map[string]string{"NAME": name, "CODE": "0", "IMAGE": "simulated", "RAY": "simulated"}[variable]
	})
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(replaced), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// tryMany tries one spec in each lane.
func (k *variety) tryMany(t *testing.T, from int) {
	t.Helper()
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			random := rand.New(rand.NewPCG(*seed, uint64(from+lane)))
			object := k.base(t, fmt.Sprintf("try-%d", from+lane))
			spec := object.Object["spec"].(map[string]any)
			changes := k.schemas.Vary(spec, k.schema, random)
			giveDevices(spec, random.IntN(2) == 0)
			k.try(t, lane, object, changes)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (k *variety) try(t *testing.T, lane int, object *unstructured.Unstructured, changes []string) {
	l := &life{T: t, namespace: namespaceOf(lane), object: object, what: fmt.Sprintf("%s with %s", object.GetKind(), strings.Join(changes, ", "))}
	refusal := l.live(t.Context())
	k.tally.Lock()
	defer k.tally.Unlock()
	switch {
	case refusal != nil:
		k.tally.refused = append(k.tally.refused, fmt.Sprintf("%s: %v", l.what, refusal))
	case l.most == 0:
		k.tally.without = append(k.tally.without, l.what+": "+l.end)
	default:
		k.tally.withPods++
		k.tally.most = max(k.tally.most, l.most)
	}
}

// giveDevices gives each pod a device. Pods that are not restarted end quickly if wanted, so that
// operators make those that come after others.
func giveDevices(value any, ends bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			giveDevices(item, ends)
		}
	case map[string]any:
		if containers, _ := variation.Object(v["spec"])["containers"].([]any); len(containers) > 0 {
			variation.Set(v, []string{"spec", "containers", "0", "resources", "limits", string(recount.GPU)}, "1")
			variation.Set(v, []string{"spec", "containers", "0", "resources", "requests", string(recount.GPU)}, "1")
			if ends && variation.Object(v["spec"])["restartPolicy"] == "Never" {
				variation.Set(v, []string{"metadata", "annotations", "localcluster.mlbatch.dev/run-for"}, "1s")
			}
			return
		}
		// The Kubeflow kinds say it beside the template.
		if template := variation.Object(variation.Object(v["template"])["spec"]); template != nil && v["restartPolicy"] == "Never" {
			template["restartPolicy"] = "Never"
		}
		for _, below := range v {
			giveDevices(below, ends)
		}
	}
}

// asMember is a client with the rights of a member.
func asMember() (client.Client, error) {
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: member, Groups: []string{"system:authenticated"}}
	return client.New(impersonating, client.Options{})
}

func raw(object *unstructured.Unstructured) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // it was decoded from YAML
	}
	return text
}
