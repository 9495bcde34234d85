// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestWhatIsWrappedCountsAsItsAppWrapper(t *testing.T) {
	const (
		object     = "spec.components[0].template.metadata."
		pod        = "spec.components[0].template.spec.template.metadata."
		kueue      = "leave it out: Kueue gives quota to the AppWrapper, and not to what it wraps"
		queue      = `leave it out: the queue is the AppWrapper's, "mine"`
		ours       = "leave it out: the controller says which AppWrapper an object belongs to"
		nobody     = "must be empty: a pod belongs to the object that creates it"
		forever    = "must be empty: the AppWrapper would keep its quota until somebody removes them from each pod"
		jobSet     = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{template: {metadata: {labels: {kueue.x-k8s.io/managed: "true"}}, spec: {template: ` + podTemplate + `}}}]}}`
		rayCluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: ` + podTemplate + `}, ` +
			`workerGroupSpecs: [{groupName: g, replicas: 1, labels: {workload.codeflare.dev/appwrapper: victim}, template: ` + podTemplate + `}]}}`
		ownerRef = "[{apiVersion: v1, kind: ConfigMap, name: c, uid: u}]"
	)
	onObject := func(metadata string) string { return strings.Replace(job, "name: j", "name: j, "+metadata, 1) }
	onPods := func(metadata string) string {
		return strings.Replace(job, "template: {", "template: {metadata: {"+metadata+"}, ", 1)
	}
	for name, tc := range map[string]struct{ template, at, says string }{
		"labels of one's own":                        {onPods("labels: {app: a}, annotations: {example.com/a: b}"), "", ""},
		"the AppWrapper's queue":                     {onObject("labels: {kueue.x-k8s.io/queue-name: mine}"), "", ""},
		"another queue":                              {onObject("labels: {kueue.x-k8s.io/queue-name: other}"), object + "labels[kueue.x-k8s.io/queue-name]", queue},
		"another queue of pods":                      {onPods("labels: {kueue.x-k8s.io/queue-name: other}"), pod + "labels[kueue.x-k8s.io/queue-name]", queue},
		"a priority, as before it was wrapped":       {onObject("labels: {kueue.x-k8s.io/priority-class: p}"), "", ""},
		"a topology":                                 {onPods("annotations: {kueue.x-k8s.io/podset-required-topology: rack, kueue.x-k8s.io/podset-group-name: pods}"), "", ""},
		"the pod set that Kueue writes":              {onPods("labels: {kueue.x-k8s.io/podset: main}"), pod + "labels[kueue.x-k8s.io/podset]", kueue},
		"the quota of other work":                    {onObject("annotations: {kueue.x-k8s.io/prebuilt-workload-name: w}"), object + "annotations[kueue.x-k8s.io/prebuilt-workload-name]", kueue},
		"a pod that Kueue manages":                   {onPods("labels: {kueue.x-k8s.io/managed: 'true'}"), pod + "labels[kueue.x-k8s.io/managed]", kueue},
		"a group of pods":                            {onPods("labels: {kueue.x-k8s.io/pod-group-name: g}"), pod + "labels[kueue.x-k8s.io/pod-group-name]", kueue},
		"work that grows":                            {onObject("annotations: {kueue.x-k8s.io/elastic-job: 'true'}"), object + "annotations[kueue.x-k8s.io/elastic-job]", kueue},
		"a label deep inside":                        {jobSet, "spec.components[0].template.spec.replicatedJobs[0].template.metadata.labels[kueue.x-k8s.io/managed]", kueue},
		"a Ray group whose pods get another's label": {rayCluster, "spec.components[0].template.spec.workerGroupSpecs[0].labels[workload.codeflare.dev/appwrapper]", ours},
		"its own AppWrapper":                         {onObject("labels: {workload.codeflare.dev/appwrapper: a}"), "", ""},
		"its own component":                          {onPods("labels: {workload.codeflare.dev/component: '0'}"), "", ""},
		"another AppWrapper":                         {onObject("labels: {workload.codeflare.dev/appwrapper: b}"), object + "labels[workload.codeflare.dev/appwrapper]", ours},
		"another component":                          {onPods("labels: {workload.codeflare.dev/component: '1'}"), pod + "labels[workload.codeflare.dev/component]", ours},
		"another author":                             {onPods("labels: {workload.codeflare.dev/user: root}"), pod + "labels[workload.codeflare.dev/user]", ours},
		"an object that dies with another":           {onObject("ownerReferences: " + ownerRef), "", ""},
		"pods of an owner":                           {onPods("ownerReferences: " + ownerRef), pod + "ownerReferences", nobody},
		"pods with a finalizer":                      {onPods("finalizers: [example.com/mine]"), pod + "finalizers", forever},
		"a scheduler's gang, perhaps not wrapped":    {onPods("labels: {scheduling.x-k8s.io/pod-group: g}"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, component(tc.template))
			aw.Labels = map[string]string{v1beta2.QueueNameLabel: "mine"}
			problems := ValidateCreate(aw, DefaultLimits)
			expectField(t, problems, tc.at)
			if len(problems) == 1 && problems[0].Detail != tc.says {
				t.Errorf("says %q, want %q", problems[0].Detail, tc.says)
			}
		})
	}
}

func TestWhatIsWrappedMayHaveAQueueIfItsAppWrapperHasNone(t *testing.T) {
	aw := appWrapper(t, component(strings.Replace(job, "name: j", "name: j, labels: {kueue.x-k8s.io/queue-name: q}", 1)))
	expectField(t, ValidateCreate(aw, DefaultLimits), "")
}
