// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"testing"

	"github.com/mlbatch/mlbatch/setup"
)

func TestADeploymentIsToldByItsName(t *testing.T) {
	for name, c := range map[string]struct{ deployment, want string }{
		"Kueue's own manifests":                 {"kueue-controller-manager", "kueue"},
		"Kueue's chart as a release of a name":  {"queues-kueue-controller-manager", "kueue"},
		"the training operator of OpenShift AI": {"kubeflow-training-operator", "training-operator"},
		"JobSet's manifests":                    {"jobset-controller-manager", "jobset"},
		"JobSet's chart":                        {"jobset-controller", "jobset"},
		"one half of the Coscheduler":           {"scheduler-plugins-controller", "coscheduler"},
		"KubeRay's dashboard is no operator":    {"kuberay-dashboard", ""},
		"a name that only ends like it":         {"mytraining-operator", ""},
		"something else":                        {"coredns", ""},
	} {
		t.Run(name, func(t *testing.T) {
			part, found := Of(c.deployment)
			if part.Name != c.want || found != (c.want != "") {
				t.Errorf("got %q, %t", part.Name, found)
			}
		})
	}
}

func TestAPartIsOnIfItsValuesSaySo(t *testing.T) {
	kueue, _ := Named("kueue")
	for name, c := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"on":           {map[string]any{"kueue": map[string]any{"enabled": true}}, true},
		"off":          {map[string]any{"kueue": map[string]any{"enabled": false}}, false},
		"not a word":   {map[string]any{}, false},
		"no such room": {map[string]any{"kueue": "yes"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kueue.Enabled(c.values); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestTheTableAndTheVersionsAreOfTheSameParts(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range All {
		for _, i := range p.Images {
			if Tag(p.Reference(i, versions)) == "" {
				t.Errorf("the image @%s@ of %s has no tag: is its name in setup/versions.yaml?", i.Token, p.Name)
			}
		}
		if o := p.Operator(versions); o.Module == "" || o.Version == "" {
			t.Errorf("setup/versions.yaml has no module and version of %s", p.Name)
		}
	}
	for name := range versions.Platform {
		if _, known := Named(name); !known {
			t.Errorf("setup/versions.yaml has the operator %s, which is no part", name)
		}
	}
}

func TestATagIsWhatFollowsTheName(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/kueue/kueue:v0.19.2":   "v0.19.2",
		"localhost:5000/kueue":                  "",
		"localhost:5000/kueue:v1@sha256:abcdef": "v1",
		"kueue@sha256:abcdef":                   "",
		"kueue":                                 "",
	} {
		if got := Tag(image); got != want {
			t.Errorf("Tag(%q) = %q, want %q", image, got, want)
		}
	}
}
