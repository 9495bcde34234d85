// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
)

func TestWhatIsCountedOfAnAppWrapper(t *testing.T) {
	for name, row := range map[string]struct {
		pod      string
		resource string
		want     map[string]string // the hours of three pods
	}{
		"devices, and not the cores beside them": {
			pod:  `containers: [{resources: {requests: {cpu: 4, nvidia.com/gpu: 2, example.com/nic: 1}}}]`,
			want: map[string]string{"nvidia.com/gpu": "6.00", "example.com/nic": "3.00"},
		},
		"a limit is a request": {
			pod:  `containers: [{resources: {limits: {cpu: 4, nvidia.com/gpu: 2}}}]`,
			want: map[string]string{"nvidia.com/gpu": "6.00"},
		},
		"a request is less than a limit": {
			pod:  `containers: [{resources: {requests: {cpu: 500m}, limits: {cpu: 4}}}]`,
			want: map[string]string{"cpu": "1.50"},
		},
		"init containers run before the others, and sidecars with them": {
			pod: `initContainers: [{resources: {requests: {cpu: 5}}}, {restartPolicy: Always, resources: {requests: {cpu: 2}}}], ` +
				`containers: [{resources: {requests: {cpu: 1}}}]`,
			want: map[string]string{"cpu": "15.00"},
		},
		"a whole pod": {
			pod:  `resources: {limits: {cpu: 2}}, containers: [{resources: {requests: {cpu: 1}}}]`,
			want: map[string]string{"cpu": "6.00"},
		},
		"pods that request nothing": {
			pod:  `containers: [{}]`,
			want: map[string]string{"pods": "3.00"},
		},
		"no device": {
			pod:  `containers: [{resources: {requests: {nvidia.com/gpu: 0, cpu: 1}}}]`,
			want: map[string]string{"cpu": "3.00"},
		},
		"a template that cannot be read": {
			pod:  `containers: none`,
			want: map[string]string{"pods": "3.00"},
		},
		"memory in GiB": {
			pod: `containers: [{resources: {requests: {memory: 1536Mi, nvidia.com/gpu: 2}}}]`, resource: "memory",
			want: map[string]string{"memory": "4.50"},
		},
		"cores beside devices": {
			pod: `containers: [{resources: {requests: {cpu: 4, nvidia.com/gpu: 2}}}]`, resource: "cpu",
			want: map[string]string{"cpu": "12.00"},
		},
		"a resource that it does not request": {
			pod: `containers: [{resources: {requests: {cpu: 4}}}]`, resource: "nvidia.com/gpu",
			want: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {` + row.pod + `}}}}`
			raw, err := yaml.YAMLToJSON([]byte(template))
			if err != nil {
				t.Fatal(err)
			}
			aw := v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "aw"}}
			aw.Spec.Components = []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}
			aw.Status.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{PodSets: []v1beta2.AppWrapperPodSet{{Replicas: new(int32(3)), Path: "template.spec.template"}}}}
			aw.Status.Usage = &v1beta2.AppWrapperUsage{UsefulSeconds: 3600}
			slim := usage.Objects{}
			slim.Add(&aw)
			if len(slim.AppWrappers[0].Spec.Components) > 0 {
				t.Error("its template is kept")
			}
			for what, o := range map[string]usage.Objects{"whole": {AppWrappers: []v1beta2.AppWrapper{aw}}, "slim": slim} {
				got := map[string]string{}
				for _, total := range usage.Count(o, usage.Query{By: "team", Resource: row.resource}, now).Totals {
					got[total.Resource] = total.Reserved.String()
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", what, diff)
				}
			}
		})
	}
}
