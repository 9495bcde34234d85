// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/counted/variation"
	"github.com/mlbatch/mlbatch/test/siege/grammar"
)

// crds are those of AppWrappers and of what members may create beside them: the resource, the module, the file.
var crds = [][3]string{
	{grammar.AppWrappers, "github.com/mlbatch/mlbatch", "charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml"},
	{"pytorchjobs.kubeflow.org", "github.com/kubeflow/training-operator", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
	{"rayclusters.ray.io", "github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"},
	{"rayjobs.ray.io", "github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayjobs.yaml"},
}

// work is what the siege draws from, without the kinds that are only wrapped.
func work(t *testing.T) (g grammar.Grammar) {
	t.Helper()
	for _, crd := range crds {
		folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", crd[1]).Output()
		if err != nil {
			t.Fatal(err)
		}
		k := grammar.Kind{Resource: crd[0], Base: map[string]any{"spec": map[string]any{}}}
		versions, _ := variation.At(object(t, filepath.Join(strings.TrimSpace(string(folder)), crd[2])), []string{"spec", "versions"}).([]any)
		for _, v := range versions {
			k.Spec = variation.Object(variation.At(v, []string{"schema", "openAPIV3Schema", "properties", "spec"}))
		}
		if k.Resource != grammar.AppWrappers {
			kind, _, _ := strings.Cut(k.Resource, "s.")
			k.Base = grammar.WithDevices(object(t, filepath.Join("..", "..", "e2e", "testdata", "hostile", kind+".yaml")))
			g.Wrapped = append(g.Wrapped, k)
		}
		g.Created = append(g.Created, k)
	}
	g.Others = []string{"pods"}
	return g
}

func object(t *testing.T, file string) (o map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	seeds = 10
	// most calls of one seed until the decisive call of an attack is drawn, and often is how many it may be on average:
	// docs/testing.md says so.
	most, often = 4000, 400
)

// The grammar draws the decisive call of each attack, although it knows none. How many more calls it takes until the
// call meets work that runs is measured on a cluster.
func TestTheGrammarDrawsTheDecisiveCallOfEachAttack(t *testing.T) {
	g := work(t)
	for _, a := range All {
		total := 0
		for seed := range uint64(seeds) {
			sent := untilDrawn(g, seed, a.Call)
			if sent > most {
				t.Errorf("%s: seed %d does not draw it within %d calls", a.Name, seed, most)
			}
			total += sent
		}
		t.Logf("%s: %d calls on average", a.Name, total/seeds)
		if total > often*seeds {
			t.Errorf("%s: that is more than %d", a.Name, often)
		}
	}
}

// untilDrawn counts the calls up to the first decisive one.
func untilDrawn(g grammar.Grammar, seed uint64, decisive func(grammar.Call) bool) (sent int) {
	for number := 1; sent <= most; number++ {
		for _, c := range g.Episode(seed, number, 16) {
			for twin := &c; twin != nil && twin.Verb != grammar.Wait; twin = twin.Twin {
				if sent++; decisive(*twin) {
					return sent
				}
			}
		}
	}
	return sent
}
