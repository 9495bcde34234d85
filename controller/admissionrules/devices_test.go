// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDevicesThatKueueDoesNotCountAreRefused(t *testing.T) {
	pod := func(spec string) string { return strings.Replace(job, podTemplate, "{spec: {"+spec+"}}", 1) }
	for name, tc := range map[string]struct{ components, field string }{
		"extended resources":            {component(pod(`containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]`)), ""},
		"a claim of the pod":            {component(pod(`containers: [{name: c}], resourceClaims: [{name: gpus, resourceClaimTemplateName: eight}]`)), "spec.components[0].template.spec.template.spec.resourceClaims"},
		"a claim of a container":        {component(pod(`containers: [{name: c, resources: {claims: [{name: gpus}]}}]`)), "spec.components[0].template.spec.template.spec.resourceClaims"},
		"a class of devices":            {component(pod(`containers: [{name: c, resources: {limits: {deviceclass.resource.kubernetes.io/gpu: 8}}}]`)), "spec.components[0].template.spec.template.spec"},
		"a class that a side-car wants": {component(pod(`containers: [{name: c}], initContainers: [{name: s, restartPolicy: Always, resources: {requests: {deviceclass.resource.kubernetes.io/gpu: 8}}}]`)), "spec.components[0].template.spec.template.spec"},
		"a class that the pod wants":    {component(pod(`containers: [{name: c}], resources: {limits: {deviceclass.resource.kubernetes.io/gpu: 8}}`)), "spec.components[0].template.spec.template.spec"},
		"a claim in a kind that nobody knows": {declared("[{path: 'template.spec.pods[0].template'}]",
			strings.Replace(custom, podTemplate, "{spec: {containers: [{name: c}], resourceClaims: [{name: gpus}]}}", 1)), "spec.components[0].template.spec.pods[0].template.spec.resourceClaims"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := ValidateCreate(appWrapper(t, tc.components), DefaultLimits)
			if (len(problems) > 0) != (tc.field != "") {
				t.Fatal(problems.ToAggregate())
			}
			if tc.field != "" && (problems[0].Type != field.ErrorTypeForbidden || problems[0].Field != tc.field) {
				t.Error(problems.ToAggregate())
			}
		})
	}
}
