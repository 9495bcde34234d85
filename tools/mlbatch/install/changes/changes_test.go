// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/changes"
)

const before = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kueue
  namespace: sys
  labels: {app.kubernetes.io/version: v1, helm.sh/chart: kueue-1, team: a}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - {name: manager, image: "kueue:v1", args: [--a, --b]}
        - {name: proxy, image: "proxy:v1"}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: sys}
data: {token: b2xk}
---
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: kueue, namespace: sys}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gone, namespace: sys}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: old, annotations: {helm.sh/resource-policy: keep}}
`

func objects(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func TestChanges(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(before) }
	const manager, proxy = `- {name: manager, image: "kueue:v1", args: [--a, --b]}`, `- {name: proxy, image: "proxy:v1"}`
	many := "team: a"
	for i := range 21 {
		many += fmt.Sprintf(", label%d: new", i)
	}
	var out bytes.Buffer
	for _, row := range []struct{ name, after string }{
		{"nothing", before},
		{"only another release", replace("version: v1,", "version: v2,", "kueue-1", "kueue-2")},
		{"a Deployment", replace("replicas: 1", "replicas: 2", "kueue:v1", "kueue:v2", ", --b]", "]", "team: a", "team: b", "        "+proxy+"\n", "")},
		{"another order of containers", replace(manager, proxy, proxy, manager)},
		{"the content of a Secret", replace("b2xk", "bmV3")},
		{"another version of a kind", replace("policy/v1beta1", "policy/v1")},
		{"what is gone, and what is kept", before[:strings.Index(before, "---\napiVersion: v1\nkind: ConfigMap")-1]},
		{"something new", before + "---\napiVersion: v1\nkind: Service\nmetadata: {name: new}\n"},
		{"more than is printed", replace("team: a", many)},
	} {
		out.WriteString("# " + row.name + "\n")
		changes.Write(&out, changes.Between(objects(t, before), objects(t, row.after)))
		out.WriteString("\n")
	}
	golden.Compare(t, "testdata/changes.txt", out.Bytes())
}
