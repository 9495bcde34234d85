// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// gitops renders the charts and applies the result repeatedly, as Argo CD and Flux do.
type gitops struct {
	*testing.T
	admin   client.Client
	objects []*unstructured.Unstructured
	applied time.Time
	// before is the state of each object after the first time.
	before map[string]string
}

// between is how long the controllers have time to change the applied objects.
const between = 2 * time.Minute

// newGitops applies for the first time.
func newGitops(t *testing.T, p person, admin client.Client) *gitops {
	t.Helper()
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	g := &gitops{T: t, admin: admin}
	made := filepath.Join(p.dir(), "platform")
	for name, files := range map[string][]string{
		"mlbatch": {filepath.Join(checkout, "setup", "profiles", "localcluster.yaml"), filepath.Join(made, "controller.yaml")},
		"teams":   {filepath.Join(checkout, "setup", "teams", "simulated.yaml")},
	} {
		values := chartutil.Values{}
		for _, file := range files {
			more, err := chartutil.ReadValuesFile(file)
			if err != nil {
				t.Fatal(err)
			}
			values = chartutil.CoalesceTables(more, values)
		}
		chart, err := loader.Load(filepath.Join(made, "charts", fmt.Sprintf("%s-%s.tgz", name, versions.Version)))
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := packaging.Render(t.Context(), chart, name, platform.Namespace, itsVersion(t, p), values)
		if err != nil {
			t.Fatal(err)
		}
		g.decode(rendered.Manifest)
	}
	g.takesOver()
	return g
}

// takesOver takes the fields that Helm owns, and waits until nobody else writes to what is new, such as Kueue its
// finalizers: then two results are the same.
func (g *gitops) takesOver() {
	g.Helper()
	await(g.T, "what was applied is at rest", func(context.Context) error {
		now := g.apply(client.ForceOwnership)
		changed := cmp.Diff(g.before, now)
		g.before, g.applied = now, time.Now()
		if changed != "" {
			return errors.New(changed)
		}
		return nil
	})
}

// itsVersion is the version of Kubernetes that the cluster has: such tools ask for it, and render for it.
func itsVersion(t *testing.T, p person) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.dir(), "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := asker.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

func (g *gitops) decode(manifest string) {
	g.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			g.Fatal(err)
		}
		if len(object.Object) > 0 {
			g.objects = append(g.objects, object)
		}
	}
}

// apply does what kubectl apply --server-side does, and returns the resulting state of each
// object.
func (g *gitops) apply(options ...client.PatchOption) map[string]string {
	g.Helper()
	after := map[string]string{}
	for _, object := range g.objects {
		object = object.DeepCopy()
		name := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		//nolint:staticcheck // the typed Apply requires a type
		if err := g.admin.Patch(g.Context(), object, client.Apply, append(options, client.FieldOwner("gitops"))...); err != nil {
			g.Errorf("cannot apply %s: %v", name, err)
			continue
		}
		after[name] = g.owned(object)
	}
	return after
}

// owned describes how often an object's spec has changed, and which manager owns which of its
// fields. It ignores the status, which belongs to controllers.
func (g *gitops) owned(object *unstructured.Unstructured) string {
	g.Helper()
	var fields []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "status" {
			fields = append(fields, entry)
		}
	}
	text, err := json.MarshalIndent(fields, "", " ")
	if err != nil {
		g.Fatal(err)
	}
	return fmt.Sprintf("generation %d\n%s", object.GetGeneration(), text)
}

// appliesAgain checks that applying again later changes nothing. It does not force conflicts,
// so that a field that another manager has changed is an error.
func (g *gitops) appliesAgain() {
	g.Helper()
	select {
	case <-time.After(time.Until(g.applied.Add(between))):
	case <-g.Context().Done():
	}
	after := g.apply()
	g.Logf("%d objects were applied twice, %s apart", len(after), time.Since(g.applied).Round(time.Second))
	if diff := cmp.Diff(g.before, after); diff != "" {
		g.Errorf("owners of fields have changed (-first time +second time):\n%s", diff)
	}
}
