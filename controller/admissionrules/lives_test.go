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
