// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSamplesOfAllModulesAreFound(t *testing.T) {
	all, err := Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count, seen := map[string]int{}, map[string]bool{}
	for _, c := range all {
		module, _, _ := strings.Cut(c.Name, "-")
		count[module]++
		if seen[c.Name] || len(c.Name) > 58 {
			t.Errorf("the name %q is there twice, or too long", c.Name)
		}
		seen[c.Name] = true
	}
	t.Logf("%d samples: %v", len(all), count)
	for module, least := range map[string]int{"kuberay": 70, "training": 25, "lws": 16, "jobset": 1, "kueue": 3, "appwrapper": 10, "mpi": 5, "kubernetes": 5} {
		if count[module] < least {
			t.Errorf("%d samples of %s", count[module], module)
		}
	}
}

func TestASampleIsMadeSmall(t *testing.T) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: batch/v1
kind: Job
metadata: {generateName: train-, namespace: team, labels: {kueue.x-k8s.io/queue-name: team, app: train}}
spec:
  parallelism: 100
  suspend: true
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {disk: ssd}
      containers: [{name: main, image: "busybox:1", resources: {limits: {google.com/tpu: "8"}}}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.Object["spec"].(map[string]any)["parallelism"] = int64(100) // as the decoder of files does
	Scale(o)
	got, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: batch/v1
kind: Job
metadata:
  labels:
    app: train
  name: train
spec:
  parallelism: 3
  template:
    metadata:
      annotations:
        same.mlbatch.dev/play: start=2s ready=1s run=8s
    spec:
      containers:
      - image: simulated
        name: main
        resources:
          limits:
            cpu: 10m
            memory: 64Mi
            nvidia.com/gpu: "1"
          requests:
            cpu: 10m
            memory: 64Mi
            nvidia.com/gpu: "1"
      restartPolicy: Never
      volumes:
      - emptyDir: {}
        name: data
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
