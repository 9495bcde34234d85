// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// An object that exists but was not in the previous revision was retained from an earlier release.
func TestWhatWasKeptIsSetAsTheReleaseSays(t *testing.T) {
	const was, wanted = `{weight: 1, quota: [{gpu: 8}], cohort: all}`, `{weight: 1, quota: [{gpu: 12}]}`
	for name, c := range map[string]struct {
		is, inReleaseBefore, rendered, want string
		takeOwnership                       bool
	}{
		"a queue of a team that comes back": {
			is: queue("kept", was), rendered: queue("kept", wanted), want: wanted,
		},
		"a queue that Helm has upgraded, and that somebody has changed since": {
			is: queue("kept", was), inReleaseBefore: queue("kept", wanted), rendered: queue("kept", wanted), want: was,
		},
		"a queue of another release": {
			is: strings.Replace(queue("kept", was), "here", "elsewhere", 1), rendered: queue("kept", wanted), want: was,
		},
		"a queue of another release that is taken": {
			is: strings.Replace(queue("kept", was), "here", "elsewhere", 1), rendered: queue("kept", wanted), want: wanted, takeOwnership: true,
		},
		"a queue of no release that is taken": {
			is: strings.Replace(queue("kept", was), "meta.helm.sh", "example.com", 2), rendered: queue("kept", wanted), want: wanted, takeOwnership: true,
		},
		"a queue of no release that an earlier command took without changing it": {
			is: strings.Replace(queue("kept", was), "meta.helm.sh", "example.com", 2), inReleaseBefore: queue("kept", wanted), rendered: queue("kept", wanted),
			want: wanted, takeOwnership: true,
		},
		"a queue of no release that is not taken": {
			is: strings.Replace(queue("kept", was), "meta.helm.sh", "example.com", 2), rendered: queue("kept", wanted), want: was,
		},
		"a queue of this release that somebody has changed, while others are taken": {
			is: queue("kept", was), inReleaseBefore: queue("kept", wanted), rendered: queue("kept", wanted), want: was, takeOwnership: true,
		},
		"a queue that is not there": {
			is: strings.Replace(queue("kept", was), "blue", "red", 1), rendered: queue("kept", wanted), want: was,
		},
		"what the release would not keep": {
			is: queue("", was), rendered: queue("", wanted), want: was,
		},
		"a definition, which Helm sees to, and in which others write": {
			is: definition(queue("kept", was)), rendered: definition(queue("kept", wanted)), want: was,
		},
		"a flavor without anything": {
			is: queue("kept", `{labels: a}`), rendered: queue("kept", `null`), want: `null`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(parsed(t, c.is)...).Build()
			d := &delivery{Release: helmrelease.Release{Name: "teams", Namespace: "here"}, takeOwnership: c.takeOwnership}
			if err := d.updateThose(t.Context(), api, objects(t, c.inReleaseBefore), objects(t, c.rendered)); err != nil {
				t.Fatal(err)
			}
			is, got := objects(t, c.is)[0], &unstructured.Unstructured{}
			got.SetGroupVersionKind(is.GroupVersionKind())
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(is), got); err != nil {
				t.Fatal(err)
			}
			want := objects(t, queue("", c.want))[0]
			if diff := cmp.Diff(text(t, want.Object["spec"]), text(t, got.Object["spec"])); diff != "" {
				t.Errorf("the specification (-want +got):\n%s", diff)
			}
			if c.takeOwnership && !d.Owns(got) {
				t.Errorf("it does not belong to the release: %v", got.GetAnnotations())
			}
			if set := c.want == wanted; set && got.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
				t.Errorf("Helm would not take it for its own: %v", got.GetLabels())
			}
		})
	}
}

// Webhooks of an operator that is gone would refuse what Helm creates before it comes to them.
func TestWebhooksOfOthersAreTakenBeforeHelm(t *testing.T) {
	const was, wanted = `[{name: gone.example.com, failurePolicy: Fail}]`, `[{name: new.example.com, failurePolicy: Ignore}]`
	for name, c := range map[string]struct {
		owner, want   string
		takeOwnership bool
	}{
		"of no release":                   {owner: "{}", want: wanted, takeOwnership: true},
		"of no release, and not taken":    {owner: "{}", want: was},
		"of this release":                 {owner: `{meta.helm.sh/release-name: mlbatch, meta.helm.sh/release-namespace: here}`, want: was, takeOwnership: true},
		"of a release of another's":       {owner: `{meta.helm.sh/release-name: kueue, meta.helm.sh/release-namespace: here}`, want: wanted, takeOwnership: true},
		"of a release that is left alone": {owner: `{meta.helm.sh/release-name: kueue, meta.helm.sh/release-namespace: here}`, want: was},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := func(owner, webhooks string) string {
				return `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: all, annotations: ` + owner + `}, webhooks: ` + webhooks + `}`
			}
			api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(parsed(t, configuration(c.owner, was))...).Build()
			d := &delivery{Release: helmrelease.Release{Name: "mlbatch", Namespace: "here"}, takeOwnership: c.takeOwnership}
			if err := d.updateThose(t.Context(), api, nil, objects(t, configuration("{}", wanted))); err != nil {
				t.Fatal(err)
			}
			got := objects(t, configuration("{}", was))[0]
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(got), got.Unstructured); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(t, objects(t, configuration("{}", c.want))[0].Object["webhooks"]), text(t, got.Object["webhooks"])); diff != "" {
				t.Errorf("the webhooks (-want +got):\n%s", diff)
			}
			if c.takeOwnership && !d.Owns(got) {
				t.Errorf("they do not belong to the release: %v", got.GetAnnotations())
			}
		})
	}
}

func queue(kept, spec string) string {
	const owner = `meta.helm.sh/release-name: teams, meta.helm.sh/release-namespace: here`
	policy := map[string]string{"kept": `, helm.sh/resource-policy: keep`}[kept]
	return `{apiVersion: example.com/v1, kind: Queue, metadata: {name: blue, annotations: {` + owner + policy + `}}, spec: ` + spec + `}`
}

func definition(queue string) string {
	return strings.Replace(queue, "example.com/v1, kind: Queue", "apiextensions.k8s.io/v1, kind: CustomResourceDefinition", 1)
}

func objects(t *testing.T, manifest string) []helmrelease.Object {
	t.Helper()
	if manifest == "" {
		return nil
	}
	one := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &one.Object); err != nil {
		t.Fatal(err)
	}
	if one.Object["spec"] == nil {
		delete(one.Object, "spec")
	}
	return []helmrelease.Object{{Unstructured: one}}
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func parsed(t *testing.T, manifest string) (all []client.Object) {
	t.Helper()
	for _, o := range objects(t, manifest) {
		all = append(all, o.Unstructured)
	}
	return all
}
