// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Without the guard, the webhook works ten seconds on the first: with more digits it would not end.
var endlessAmounts = []string{"1e-20000000", "1e5000000", " 1E+5000000 ", "1e100", "1.5e-100", "1e0000000001", strings.Repeat("9", 41), "." + strings.Repeat("9", 40) + "e1", "1." + strings.Repeat("0", 40) + "Gi"}

func TestCreateRefusesAmountsThatTakeForEver(t *testing.T) {
	const where = "spec.components[0].template: Invalid value: \"…\": spec.template.spec.containers[0].resources.requests.cpu: an amount has at most 40 characters and 2 digits in its exponent"
	for _, amount := range endlessAmounts {
		aw := appWrapper(t, component(strings.Replace(job, "image: i", `image: i, resources: {requests: {cpu: "`+amount+`"}}`, 1)))
		began := time.Now()
		DeclarePodSets(aw)
		problems := ValidateCreate(aw, DefaultLimits)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q takes %s", amount, took)
		}
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), where) {
			t.Errorf("of %q it says %v", amount, problems)
		}
	}
}

func TestAmountsAreLookedAtWhereverTheyMayBe(t *testing.T) {
	for name, template := range map[string]string{
		"limits of an init container": `{spec: {initContainers: [{resources: {limits: {nvidia.com/gpu: BAD}}}]}}`,
		"the limit of a volume":       `{spec: {volumes: [{emptyDir: {sizeLimit: BAD}}]}}`,
		"a claim for each pod":        `{spec: {volumes: [{ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: BAD}}}}}}]}}`,
		"the unit of a variable":      `{spec: {containers: [{env: [{valueFrom: {resourceFieldRef: {divisor: BAD}}}]}]}}`,
		"the overhead of a sandbox":   `{spec: {overhead: {cpu: BAD}}}`,
		"the least of a group":        `{spec: {runPolicy: {schedulingPolicy: {minResources: {cpu: BAD}}}}}`,
		"a claim":                     `{spec: {capacity: {storage: BAD}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for amount, refused := range map[string]bool{`"1e5000000"`: true, "1.5Gi": false, "8": false, `"1e99"`: false} {
				aw := appWrapper(t, component("{apiVersion: v1, kind: Any, "+strings.Replace(template[1:], "BAD", amount, 1)))
				if _, err := Template(&aw.Spec.Components[0]); (err != nil) != refused {
					t.Errorf("%s: got %v", amount, err)
				}
			}
		})
	}
}

func TestTextIsNoAmount(t *testing.T) {
	for _, template := range []string{
		`{spec: {containers: [{args: ["1e5000000"], env: [{name: A, value: "1e5000000"}]}]}}`,
		`{metadata: {annotations: {a: "1e5000000"}}}`,
		`{rules: [{resources: [an-amount-of-letters-that-would-be-too-long-for-a-number]}]}`,
		`{spec: {rayStartParams: {resources: '{"a": 1e5000000}'}}}`,
		`{spec: {resources: {digest: 0123456789abcdef0123456789abcdef0123456789abcdef}}}`,
	} {
		aw := appWrapper(t, component("{apiVersion: v1, kind: Any, "+template[1:]))
		if _, err := Template(&aw.Spec.Components[0]); err != nil {
			t.Errorf("%s: got %v", template, err)
		}
	}
}

// A new Kubernetes may have quantities in other fields.
func TestEveryQuantityOfAPodIsLookedAt(t *testing.T) {
	found := 0
	var walk func(reflect.Type, string, bool)
	walk = func(of reflect.Type, path string, looked bool) {
		switch {
		case of == reflect.TypeFor[resource.Quantity]():
			if found++; !looked {
				t.Errorf("holdAmounts has no part of %s", path)
			}
		case of.Kind() == reflect.Pointer, of.Kind() == reflect.Slice, of.Kind() == reflect.Map:
			walk(of.Elem(), path, looked)
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				field := of.Field(i)
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				walk(field.Type, path+"."+name, looked || holdAmounts[name])
			}
		}
	}
	walk(reflect.TypeFor[corev1.PodSpec](), "spec", false)
	if found < 10 {
		t.Errorf("there are %d", found)
	}
}
