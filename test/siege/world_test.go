// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/counted/variation"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

const (
	nodes  = 24
	teams  = 12
	forces = 6 // attack at the same time
	// manager is the field manager of what is applied.
	manager = "siege"
)

// world is a cluster under siege.
type world struct {
	*testing.T
	cluster *localcluster.Cluster
	config  *rest.Config
	admin   client.WithWatch
	grammar grammar.Grammar
	// resources are the addresses of what the grammar names.
	resources map[string]schema.GroupVersionResource
	// see reads with all rights, acts has somebody's rights in a namespace.
	see   dynamic.Interface
	acts  map[string]dynamic.Interface
	who   attacker
	began map[string]int // restarts of the platform's pods
	ready time.Time      // what is older belongs to the teams
}

func start(t *testing.T) *world {
	t.Helper()
	admin, cluster := sandbox.StartEveryPart(t, "siege", 26721, nodes, sandbox.Values(t, filepath.Join("..", "e2e", "testdata", "platform.yaml")))
	w := &world{T: t, admin: admin, cluster: cluster, who: attackers[*by], acts: map[string]dynamic.Interface{}, resources: map[string]schema.GroupVersionResource{}}
	var err error
	if w.config, err = cluster.RESTConfig(); err != nil {
		t.Fatal(err)
	}
	w.config.QPS, w.config.WarningHandler = -1, rest.NoWarnings{}
	w.see = dynamic.NewForConfigOrDie(w.config)
	w.labelNodes()
	site := platform.Site{Cluster: cluster, Checkout: cluster.Config().Checkout, Progress: os.Stderr}
	if err := site.PackageCharts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := site.Onboard(t.Context(), filepath.Join("test", "siege", "testdata", "teams.yaml")); err != nil {
		t.Fatal(err)
	}
	w.arm()
	w.grammar.Costly = true
	w.learn()
	w.ready = time.Now().Add(-time.Second)
	if w.began, err = w.restarts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) as(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// team is a namespace.
func team(i int) string { return fmt.Sprintf("siege-%d", i) }

// labelNodes marks the nodes of the siege. A taint keeps the first one for another team.
func (w *world) labelNodes() {
	w.Helper()
	for i := range nodes {
		patch := `{"metadata":{"labels":{"siege.mlbatch.dev/node":"true"}}}`
		if i == 0 {
			patch = `{"metadata":{"labels":{"siege.mlbatch.dev/node":"true"}},"spec":{"taints":[{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"},{"key":"example.com/reserved-for","value":"others","effect":"NoSchedule"}]}}`
		}
		node := &corev1.Node{}
		node.Name = fmt.Sprintf("gpu-%d", i)
		if err := w.admin.Patch(w.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			w.Fatal(err)
		}
	}
}

// learn reads what a role lets its holder create and delete, and the schemas of that.
func (w *world) learn() {
	w.Helper()
	r := &rbacv1.ClusterRole{}
	if err := w.admin.Get(w.Context(), client.ObjectKey{Name: w.who.role}, r); err != nil {
		w.Fatal(err)
	}
	w.resources["workloads.kueue.x-k8s.io"] = kueue.SchemeGroupVersion.WithResource("workloads")
	bases := w.bases()
	schemas := w.schemas()
	for _, right := range grammar.Rights(r.Rules) {
		if !w.served(right.Resource) {
			continue
		}
		if !right.Create {
			w.grammar.Others = append(w.grammar.Others, right.Resource)
			continue
		}
		if base := bases[right.Resource]; base != nil {
			w.grammar.Created = append(w.grammar.Created, schemas(right.Resource, base))
		} else if w.who.role == memberRole {
			w.Fatalf("members may create %s: add an object that nobody refuses to testdata/bases.yaml", right.Resource)
		} else {
			w.Logf("nothing draws %s", right.Resource)
		}
	}
	for _, file := range w.files("kinds") {
		if base := w.objects(file)[0]; base["kind"] != "Rehearsal" { // which only test/e2e has
			w.grammar.Wrapped = append(w.grammar.Wrapped, schemas(w.resourceOf(base), base))
		}
	}
	w.Logf("the role %s may create objects of %d resources, and delete those of %d more; AppWrappers wrap %d kinds", w.who.role, len(w.grammar.Created), len(w.grammar.Others), len(w.grammar.Wrapped))
}

// bases are objects to begin with, by resource.
func (w *world) bases() map[string]map[string]any {
	w.Helper()
	all := map[string]map[string]any{}
	for _, file := range slices.Concat(w.files("kinds"), w.files("hostile"), []string{filepath.Join("testdata", "bases.yaml")}) {
		for _, o := range w.objects(file) {
			if at, is := o["metadata"].(map[string]any); is && at["name"] != grammar.Episode+"-a" {
				continue // an attack of one story
			}
			if o["kind"] == "Rehearsal" { // which only test/e2e has
				continue
			}
			if strings.HasSuffix(filepath.Dir(file), "hostile") {
				variation.Set(o, []string{"metadata", "labels", "kueue.x-k8s.io/queue-name"}, "default-queue")
			}
			all[w.resourceOf(o)] = o
		}
	}
	return all
}

func (w *world) files(folder string) []string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join("..", "e2e", "testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		w.Fatalf("there are no files in %s: %v", folder, err)
	}
	return files
}

// objects reads a file of objects of an episode.
func (w *world) objects(file string) []map[string]any {
	return w.objectsNamed(file, grammar.Episode+"-a")
}

// objectsNamed reads a file. Every pod gets a device.
func (w *world) objectsNamed(file, name string) (all []map[string]any) {
	w.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	replaced := os.Expand(string(text), func(variable string) string {
		return map[string]string{"NAME": name, "CODE": "0", "IMAGE": "simulated", "RAY": "simulated"}[variable]
	})
	for part := range strings.SplitSeq(replaced, "\n---\n") {
		o := &unstructured.Unstructured{}
		inJSON, err := yaml.YAMLToJSON([]byte(part))
		if err == nil {
			err = o.UnmarshalJSON(inJSON)
		}
		if err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		all = append(all, grammar.WithDevices(o.Object))
	}
	return all
}

// resourceOf is the resource of an object, with its group.
func (w *world) resourceOf(o map[string]any) string {
	w.Helper()
	kind := (&unstructured.Unstructured{Object: o}).GroupVersionKind()
	m, err := w.admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		w.Fatal(err)
	}
	name := strings.TrimSuffix(m.Resource.Resource+"."+m.Resource.Group, ".")
	w.resources[name] = m.Resource
	return name
}

// served reports whether the API server knows a resource. The values of the platform have a kind that only test/e2e
// makes.
func (w *world) served(resource string) bool {
	w.Helper()
	found, err := w.admin.RESTMapper().ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		w.Fatal(err)
	}
	if err == nil {
		w.resources[resource] = found
	}
	return err == nil
}

// schemas reads the schema of each kind once from the API server.
func (w *world) schemas() func(resource string, base map[string]any) grammar.Kind {
	w.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		w.Fatal(err)
	}
	root := openapi3.NewRoot(api.OpenAPIV3())
	read := map[schema.GroupVersion]variation.Schemas{}
	return func(resource string, base map[string]any) grammar.Kind {
		kind := (&unstructured.Unstructured{Object: base}).GroupVersionKind()
		if read[kind.GroupVersion()] == nil {
			document, err := root.GVSpecAsMap(kind.GroupVersion())
			if err != nil {
				w.Fatal(err)
			}
			read[kind.GroupVersion()] = document
		}
		k := grammar.Kind{Resource: resource, Base: base, Schemas: read[kind.GroupVersion()]}
		if k.Spec, err = k.Schemas.Of(kind.Group, kind.Version, kind.Kind); err != nil {
			w.Fatal(err)
		}
		return k
	}
}

// restarts are those of the platform's pods, by name.
func (w *world) restarts(ctx context.Context) (map[string]int, error) {
	pods, all := &corev1.PodList{}, map[string]int{}
	err := w.admin.List(ctx, pods, client.InNamespace(platform.Namespace))
	for _, p := range pods.Items {
		all[p.Name] = 0
		for _, c := range p.Status.ContainerStatuses {
			all[p.Name] += int(c.RestartCount)
		}
	}
	return all, err
}
