// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

func TestAShortLifeIsAWarningOnCreate(t *testing.T) {
	const (
		job      = "apiVersion: batch/v1, kind: Job, metadata: {name: c}, "
		ofJob    = "spec.components[1].template.spec.ttlSecondsAfterFinished is "
		ofPolicy = "spec.components[1].template.spec.runPolicy.ttlSecondsAfterFinished is "
	)
	for sentence, tc := range map[string]struct{ component, want string }{
		"no time at all":          {"{" + job + "spec: {ttlSecondsAfterFinished: 0}}", ofJob + "0"},
		"less than a minute":      {"{" + job + "spec: {ttlSecondsAfterFinished: 59}}", ofJob + "59"},
		"a minute is enough":      {"{" + job + "spec: {ttlSecondsAfterFinished: 60}}", ""},
		"without end is, too":     {"{" + job + "spec: {}}", ""},
		"what is no number":       {"{" + job + "spec: {ttlSecondsAfterFinished: soon}}", ""},
		"a JobSet":                {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: c}, spec: {ttlSecondsAfterFinished: 0}}", ofJob + "0"},
		"a PyTorchJob":            {"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: c}, spec: {runPolicy: {ttlSecondsAfterFinished: 0}}}", ofPolicy + "0"},
		"the cluster of a RayJob": {"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: c}, spec: {ttlSecondsAfterFinished: 0}}", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := strings.Join(WarningsOnCreate(appWrapper(t, component(service), component(tc.component))), "\n")
			if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want a text that starts with %q", got, tc.want)
			}
		})
	}
}

func TestAnUnknownFieldIsAWarningOnCreate(t *testing.T) {
	const aJob = "apiVersion: batch/v1, kind: Job, metadata: {name: c}"
	for sentence, tc := range map[string]struct{ component, want string }{
		"a misspelt one":            {"{" + aJob + ", spec: {paralelism: 2}}", "spec.components[0].template.spec.paralelism has no effect: a Job has no such field"},
		"a wrong case":              {"{" + aJob + ", spec: {backofflimit: 2}}", "spec.components[0].template.spec.backofflimit has no effect: a Job has no such field"},
		"beside spec":               {"{" + aJob + ", x-common: {}, spec: {}}", "spec.components[0].template.x-common has no effect: a Job has no such field"},
		"in a list":                 {"{" + aJob + ", spec: {podFailurePolicy: {rules: [{}, {acton: Ignore}]}}}", "spec.components[0].template.spec.podFailurePolicy.rules[1].acton has no effect: a Job has no such field"},
		"names and amounts are not": {"{" + aJob + ", spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{resources: {limits: {a/b: 1}}}]}}}}", ""},
		"an operator's kind":        {"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: c}, spec: {a: b}}", ""},
		"of many, some":             {"{" + aJob + ", a: 1, b: 2, c: 3, d: 4, e: 5}", "spec.components[0].template.a has no effect: a Job has no such field\nspec.components[0].template.b has no effect: a Job has no such field\nspec.components[0].template.c has no effect: a Job has no such field"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := strings.Join(WarningsOnCreate(appWrapper(t, component(tc.component))), "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
