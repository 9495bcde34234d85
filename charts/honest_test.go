// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// What looks like an attack, and is what people do: no policy refuses it.
func TestHonestActsThatLookLikeAttacks(t *testing.T) {
	const lastApplied = "annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}, "
	running := func(kind, metadata string) string {
		return startable[kind]("false", "a: b", metadata, "conditions: [{type: Running, status: 'True'}]")
	}
	waiting := func(kind, fields, metadata string) string {
		return startable[kind]("true", fields, metadata, "conditions: [{type: Suspended, status: 'True'}]")
	}
	update := func(object, old string) request {
		return request{operation: admission.Update, object: object, old: old}
	}
	remove := func(old, options string) request {
		return request{operation: admission.Delete, old: old, options: options}
	}
	acts := map[string]request{
		"kubectl apply of a started PyTorchJob":                     update(running("PyTorchJob", lastApplied), running("PyTorchJob", "")),
		"kubectl apply of a started RayCluster":                     update(running("RayCluster", lastApplied), running("RayCluster", "")),
		"Helm's labels on a started RayJob":                         update(running("RayJob", "labels: {app.kubernetes.io/managed-by: Helm, helm.sh/chart: c-2}, annotations: {meta.helm.sh/release-name: r}"), running("RayJob", "labels: {app.kubernetes.io/managed-by: Helm, helm.sh/chart: c-1}")),
		"Argo CD's tracking of a started AppWrapper":                update(running("AppWrapper", "annotations: {argocd.argoproj.io/tracking-id: a}"), running("AppWrapper", "")),
		"Flux's labels on a started AppWrapper":                     update(running("AppWrapper", "labels: {kustomize.toolkit.fluxcd.io/name: a}"), running("AppWrapper", "")),
		"a note on a started job":                                   update(running("PyTorchJob", "annotations: {example.com/ticket: '7'}"), running("PyTorchJob", "")),
		"the last checkpoint of a started AppWrapper":               update(running("AppWrapper", "annotations: {workload.codeflare.dev.appwrapper/lastCheckpoint: '2026-11-24T17:05:00Z'}"), running("AppWrapper", "")),
		"more time to end for a started AppWrapper":                 update(running("AppWrapper", "annotations: {workload.codeflare.dev.appwrapper/forcefulDeletionGracePeriodDuration: 20m}"), running("AppWrapper", "")),
		"a started PyTorchJob that makes room":                      update(strings.Replace(running("PyTorchJob", ""), "suspend: false", "suspend: true", 1), running("PyTorchJob", "")),
		"a started AppWrapper that makes room":                      update(strings.Replace(running("AppWrapper", ""), "suspend: false", "suspend: true", 1), running("AppWrapper", "")),
		"a waiting PyTorchJob that asks for less":                   update(waiting("PyTorchJob", "n: 1", ""), waiting("PyTorchJob", "n: 2", "")),
		"a waiting RayCluster with another image":                   update(waiting("RayCluster", "image: b", ""), waiting("RayCluster", "image: a", "")),
		"a waiting AppWrapper that moves to another queue":          update(waiting("AppWrapper", "a: b", "labels: {kueue.x-k8s.io/queue-name: night}"), waiting("AppWrapper", "a: b", "labels: {kueue.x-k8s.io/queue-name: day}")),
		"a waiting PyTorchJob that gets a priority":                 update(waiting("PyTorchJob", "a: b", "labels: {kueue.x-k8s.io/priority-class: high}"), waiting("PyTorchJob", "a: b", "")),
		"a Run that is cancelled":                                   update(workWith("codeflare.dev/v1alpha1", "Run", "a: b, cancel: true"), workWith("codeflare.dev/v1alpha1", "Run", "a: b")),
		"kubectl delete of a started PyTorchJob":                    remove(running("PyTorchJob", ""), "propagationPolicy: Background"),
		"a client that says nothing":                                remove(running("AppWrapper", ""), "gracePeriodSeconds: 0"),
		"an AppWrapper that is deleted again":                       remove(dying, "propagationPolicy: Background"),
		"work that only may be deleted as it was read":              remove(running("RayJob", ""), "propagationPolicy: Background, preconditions: {uid: u}"),
		"a wrapped ConfigMap that changes":                          update(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [{kind: AppWrapper, name: a, controller: true}]}, data: {a: c}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [{kind: AppWrapper, name: a, controller: true}]}, data: {a: b}}`),
		"a Deployment of an editor that gets larger":                update(workWith("apps/v1", "Deployment", "replicas: 3"), workWith("apps/v1", "Deployment", "replicas: 1")),
		"a pod of an AppWrapper with a cost of deletion":            update(strings.Replace(labelledPod("train"), "name: p", "name: p, annotations: {controller.kubernetes.io/pod-deletion-cost: '1'}", 1), labelledPod("train")),
		"a PyTorchJob that tolerates its accelerators":              {operation: admission.Create, object: pyTorchJobWith("tolerations: [{key: nvidia.com/gpu, operator: Exists}]")},
		"a PyTorchJob with a deadline and a policy":                 {operation: admission.Create, object: strings.Replace(pyTorchJobWith(""), "runPolicy: {", "runPolicy: {activeDeadlineSeconds: 60, backoffLimit: 3, ", 1)},
		"a PodGroup with resources":                                 {operation: admission.Create, object: podGroupWith("minMember: 2, minResources: {cpu: 500m, memory: 1e3}")},
		"an AppWrapper with annotations and labels of one's own":    {operation: admission.Create, object: startable["AppWrapper"]("true", "a: b", "labels: {kueue.x-k8s.io/queue-name: q, team: blue}, annotations: {workload.codeflare.dev.appwrapper/retryLimit: '1'}", "")},
		"a started JobSet of an AppWrapper that gets a description": update(strings.Replace(running("JobSet", "annotations: {what: for}"), "name: w,", "name: w, ownerReferences: [{kind: AppWrapper, name: a, controller: true}],", 1), strings.Replace(running("JobSet", ""), "name: w,", "name: w, ownerReferences: [{kind: AppWrapper, name: a, controller: true}],", 1)),
	}
	compiled := policies(t)
	for name, r := range acts {
		r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
		r.annotations = map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}
		for policy, p := range compiled {
			if !matches(policy, r) {
				continue
			}
			if got := judge(t, p, r, false); len(got) > 0 {
				t.Errorf("%s: %s refuses it: %q", name, policy, got)
			}
		}
	}
}
