// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestWhatKueueDoesNotFindIsDeclared(t *testing.T) {
	set := func(path string, replicas int32) v1beta2.AppWrapperPodSet {
		return v1beta2.AppWrapperPodSet{Path: path, Replicas: &replicas}
	}
	const (
		rayService = `{apiVersion: ray.io/v1, kind: RayService, metadata: {name: r}, spec: {rayClusterConfig: {headGroupSpec: {template: ` + podTemplate + `}}}}`
		rayCluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: ` + podTemplate + `}, ` +
			`workerGroupSpecs: [{replicas: 2, template: ` + podTemplate + `}]}}`
		multiHost = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: ` + podTemplate + `}, ` +
			`workerGroupSpecs: [{replicas: 2, numOfHosts: 4, template: ` + podTemplate + `}]}}`
		atLeast = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {template: ` + podTemplate + `}, ` +
			`workerGroupSpecs: [{replicas: 2, minReplicas: 3, template: ` + podTemplate + `}]}}`
		submitted = `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {submissionMode: K8sJobMode, submitterPodTemplate: ` + podTemplate +
			`, rayClusterSpec: {headGroupSpec: {template: ` + podTemplate + `}}}}`
		asBefore   = "[{path: template.spec.headGroupSpec.template}, {path: 'template.spec.workerGroupSpecs[0].template', replicas: 2}]"
		asNever    = "[{path: template.spec.headGroupSpec.template}, {path: 'template.spec.workerGroupSpecs[0].template', replicas: 5}]"
		lowerCase  = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p}, spec: {pytorchReplicaSpecs: {worker: {replicas: 2, template: ` + podTemplate + `}}}}`
		autoscaled = `{apiVersion: ray.io/v1, kind: RayService, metadata: {name: r}, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}}`
	)
	for name, tc := range map[string]struct {
		component string
		want      []v1beta2.AppWrapperPodSet
	}{
		"a kind that Kueue does not know": {component(rayService), []v1beta2.AppWrapperPodSet{set("template.spec.rayClusterConfig.headGroupSpec.template", 1)}},
		"replicas of several hosts": {component(multiHost), []v1beta2.AppWrapperPodSet{
			set("template.spec.headGroupSpec.template", 1), set("template.spec.workerGroupSpecs[0].template", 8)}},
		"more replicas than there are said to be": {component(atLeast), []v1beta2.AppWrapperPodSet{
			set("template.spec.headGroupSpec.template", 1), set("template.spec.workerGroupSpecs[0].template", 3)}},
		"hosts that 1.2 had not counted": {declared(asBefore, multiHost), []v1beta2.AppWrapperPodSet{
			set("template.spec.headGroupSpec.template", 1), set("template.spec.workerGroupSpecs[0].template", 8)}},
		"nothing in place of a number that was never right": {declared(asNever, multiHost), []v1beta2.AppWrapperPodSet{
			{Path: "template.spec.headGroupSpec.template"}, set("template.spec.workerGroupSpecs[0].template", 5)}},
		"a pod that submits a job": {component(submitted), []v1beta2.AppWrapperPodSet{
			set("template.spec.rayClusterSpec.headGroupSpec.template", 1), set("template.spec.submitterPodTemplate", 1)}},
		"a pod that submits a job, which 1.2 had not counted": {declared("[{path: template.spec.rayClusterSpec.headGroupSpec.template}]", submitted), []v1beta2.AppWrapperPodSet{
			set("template.spec.rayClusterSpec.headGroupSpec.template", 1), set("template.spec.submitterPodTemplate", 1)}},
		"a role in a spelling that Kueue does not know": {component(lowerCase), []v1beta2.AppWrapperPodSet{{
			Path: "template.spec.pytorchReplicaSpecs.worker.template", Replicas: new(int32(2)),
			Annotations: map[string]string{v1beta2.PodSetAnnotationTASPodIndexLabel: "training.kubeflow.org/replica-index"}}}},
		"nothing of a kind that Kueue knows":  {component(rayCluster), nil},
		"nothing of a kind without pods":      {component(service), nil},
		"nothing in place of the author's":    {declared("[{path: 'template.spec.pods[0].template', replicas: 3}]", custom), []v1beta2.AppWrapperPodSet{set("template.spec.pods[0].template", 3)}},
		"nothing of what cannot be told":      {component(autoscaled), nil},
		"nothing of what is no object at all": {component(`{apiVersion: v1}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			aw := appWrapper(t, tc.component)
			DeclarePodSets(aw)
			if diff := cmp.Diff(tc.want, aw.Spec.Components[0].DeclaredPodSets); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
