// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/json"
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// What is optional is not needed, wherever a pod names it; nor is what the AppWrapper brings along.
func TestPodsNeedWhatIsNotOptional(t *testing.T) {
	template := `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  volumes:
  - {name: a, secret: {secretName: volume}}
  - {name: b, secret: {secretName: spare, optional: true}}
  - {name: c, configMap: {name: files}}
  - {name: d, configMap: {name: spare, optional: true}}
  - {name: e, configMap: {name: wrapped}}
  - {name: f, projected: {sources: [{secret: {name: projected}}, {secret: {name: spare, optional: true}}, {configMap: {name: parts}}, {serviceAccountToken: {path: t}}]}}
  containers:
  - name: main
    image: i
    env:
    - {name: A, valueFrom: {secretKeyRef: {name: variable, key: k}}}
    - {name: B, valueFrom: {secretKeyRef: {name: spare, key: k, optional: true}}}
    - {name: C, valueFrom: {configMapKeyRef: {name: settings, key: k}}}
    - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: E, value: e}
`
	aw := &v1beta2.AppWrapper{}
	for _, text := range []string{template, "{apiVersion: v1, kind: ConfigMap, metadata: {name: wrapped}}"} {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{})
		aw.Spec.Components[len(aw.Spec.Components)-1].Template.Raw = json.RawMessage(data)
	}
	all, err := neededBy(aw)
	want := "[{Secret volume} {ConfigMap files} {Secret projected} {ConfigMap parts} {Secret variable} {ConfigMap settings}]"
	if err != nil || fmt.Sprint(all) != want {
		t.Errorf("got %v, %v, want %s", all, err, want)
	}
}
