// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
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
	create := func(object string) request { return request{operation: admission.Create, object: object} }
	deployment := func(fields string) string { return workWith("apps/v1", "Deployment", fields) }
	acts := map[string]request{
		"server-side apply of a started RayCluster":                 update(running("RayCluster", "managedFields: [{manager: kubectl, operation: Apply}]"), running("RayCluster", "managedFields: [{manager: kubectl-client-side-apply, operation: Update}]")),
		"Argo CD's label on a started PyTorchJob":                   update(running("PyTorchJob", "labels: {app.kubernetes.io/instance: app}"), running("PyTorchJob", "")),
		"Argo CD's sync options on a started RayJob":                update(running("RayJob", "annotations: {argocd.argoproj.io/sync-options: Prune=false}, managedFields: [{manager: argocd-controller, operation: Apply}]"), running("RayJob", "")),
		"Flux' checksum on a started RayCluster":                    update(running("RayCluster", "annotations: {kustomize.toolkit.fluxcd.io/checksum: b}, managedFields: [{manager: kustomize-controller, operation: Apply}]"), running("RayCluster", "annotations: {kustomize.toolkit.fluxcd.io/checksum: a}")),
		"kubectl rollout restart of a Deployment":                   update(deployment("template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}"), deployment("template: {}")),
		"kubectl rollout pause of a Deployment":                     update(deployment("paused: true"), deployment("")),
		"kubectl set image of a StatefulSet":                        update(workWith("apps/v1", "StatefulSet", "template: {spec: {containers: [{image: b}]}}"), workWith("apps/v1", "StatefulSet", "template: {spec: {containers: [{image: a}]}}")),
		"a CronJob that rests":                                      update(workWith("batch/v1", "CronJob", "suspend: true"), workWith("batch/v1", "CronJob", "suspend: false")),
		"a waiting Job with more pods":                              update(waiting("Job", "parallelism: 2", ""), waiting("Job", "parallelism: 1", "")),
		"kubectl debug with an ephemeral container":                 {operation: admission.Update, subresource: "ephemeralcontainers", object: podWith("ephemeralContainers: [{name: d, image: busybox}]"), old: podWith("")},
		"kubectl debug of a pod of a training":                      {operation: admission.Update, subresource: "ephemeralcontainers", object: ofJob("ephemeralContainers: [{name: d, image: busybox}]", ""), old: ofJob("", "")},
		"the eviction of a pod":                                     {operation: admission.Create, subresource: "eviction", resource: "pods/eviction", object: `{apiVersion: policy/v1, kind: Eviction, metadata: {name: p}}`},
		"kubectl delete pod --now":                                  remove(ofJob("terminationGracePeriodSeconds: 600", ""), "gracePeriodSeconds: 1, propagationPolicy: Background"),
		"kubectl delete pod --force":                                remove(ofJob("", ""), "gracePeriodSeconds: 0, propagationPolicy: Background"),
		"kubectl delete of a Job":                                   remove(workWith("batch/v1", "Job", "a: b"), "propagationPolicy: Background"),
		"kubectl delete of a Run":                                   remove(workWith("codeflare.dev/v1alpha1", "Run", "a: b"), "propagationPolicy: Background"),
		"a Run that is kept for an hour":                            update(workWith("codeflare.dev/v1alpha1", "Run", "a: b, ttlSecondsAfterFinished: 3600"), workWith("codeflare.dev/v1alpha1", "Run", "a: b")),
		"the annotations of a Run that is applied again":            update(strings.Replace(workWith("codeflare.dev/v1alpha1", "Run", "a: b"), "name: w", "name: w, "+lastApplied, 1), workWith("codeflare.dev/v1alpha1", "Run", "a: b")),
		"an AppWrapper with a generated name":                       create(`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {generateName: train-}, spec: {components: [1]}}`),
		"a PyTorchJob with a generated name":                        create(strings.Replace(pyTorchJobWith(""), "name: j", "generateName: j-", 1)),
		"a ConfigMap that goes with its AppWrapper":                 update(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [{kind: AppWrapper, name: a}]}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`),
		"a claim that gets larger":                                  update(workWith("v1", "PersistentVolumeClaim", "resources: {requests: {storage: 2Ti}}"), workWith("v1", "PersistentVolumeClaim", "resources: {requests: {storage: 1Ti}}")),
		"a Service that selects other pods":                         update(serviceWith("selector: {a: c}"), serviceWith("selector: {a: b}")),
		"a Secret for a registry":                                   create(`{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/dockerconfigjson}`),
		"a pod with the tolerations that the API server adds":       create(podWith("tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]")),
		"a note on an AppWrapper that is being deleted":             update(annotated(dying, "a: b"), dying),
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
	platform := defences(t)
	for name, r := range acts {
		platform.accept(t, name, r, false)
	}
}

// What controllers do every day, by the rights that the chart gives to each of them. A kubelet has none of them.
func TestControllersDoWhatTheyDo(t *testing.T) {
	update := func(object, old string) request {
		return request{operation: admission.Update, object: object, old: old}
	}
	create := func(object string) request { return request{operation: admission.Create, object: object} }
	remove := func(old, options string) request {
		return request{operation: admission.Delete, old: old, options: options}
	}
	owned := func(by, object string) string {
		return strings.Replace(object, "metadata: {", "metadata: {ownerReferences: [{kind: "+by+", name: o, controller: true}], ", 1)
	}
	scaled := request{operation: admission.Update, subresource: "scale", resource: "deployments.apps/scale", object: scale, old: scale}
	const flavor = "template: {spec: {nodeSelector: {a: b}, tolerations: [{key: example.com/reserved-for, operator: Exists}], schedulingGates: [{name: g}]}}"
	const torch, ray, head = "pytorchReplicaSpecs: {Worker: {%}}", "headGroupSpec: {%}", "template: {spec: {}}"
	of := func(fields, template string) string { return strings.Replace(fields, "%", template, 1) }
	kueue, kube, node := "mlbatch-system/kueue-controller-manager", "kube-system/", "system:node:n"
	training, kuberay, wrappers := "mlbatch-system/training-operator", "mlbatch-system/kuberay-operator", "mlbatch-system/appwrapper-controller-manager"
	platform, subjects := defences(t), controllersOf(t, optionalParts())
	for name, a := range map[string]struct {
		by string
		request
	}{
		"Kueue starts a PyTorchJob":                {kueue, update(startable["PyTorchJob"]("false", of(torch, flavor), "", ""), startable["PyTorchJob"]("true", of(torch, head), "", ""))},
		"Kueue stops it and restores its template": {kueue, update(startable["PyTorchJob"]("true", of(torch, head), "", ""), startable["PyTorchJob"]("false", of(torch, flavor), "", ""))},
		"Kueue starts a RayCluster":                {kueue, update(startable["RayCluster"]("false", of(ray, flavor), "", ""), startable["RayCluster"]("true", of(ray, head), "", ""))},
		"Kueue stops it and restores the head":     {kueue, update(startable["RayCluster"]("true", of(ray, head), "", ""), startable["RayCluster"]("false", of(ray, flavor), "", ""))},
		"Kueue starts a Job":                       {kueue, update(startable["Job"]("false", flavor, "", ""), startable["Job"]("true", head, "", ""))},
		"Kueue starts an AppWrapper":               {kueue, update(startable["AppWrapper"]("false", "a: b", "finalizers: [workload.codeflare.dev/finalizer]", ""), startable["AppWrapper"]("true", "a: b", "", ""))},
		"Kueue creates a Workload":                 {kueue, create(owned("AppWrapper", workWith("kueue.x-k8s.io/v1beta2", "Workload", "a: b")))},
		"Kueue keeps a Workload":                   {kueue, update(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, finalizers: [kueue.x-k8s.io/resource-in-use]}}`, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w}}`)},
		"the training operator creates a pod":      {training, create(owned("PyTorchJob", podWith("a: b")))},
		"the training operator creates a gang":     {training, create(owned("PyTorchJob", podGroupWith("minMember: 2")))},
		"the training operator removes a pod":      {training, remove(owned("PyTorchJob", podWith("terminationGracePeriodSeconds: 600")), "propagationPolicy: Background")},
		"KubeRay guards a RayJob":                  {kuberay, update(startable["RayJob"]("false", "a: b", "finalizers: [ray.io/rayjob-finalizer]", ""), startable["RayJob"]("false", "a: b", "", ""))},
		"KubeRay lets a RayJob go":                 {kuberay, update(startable["RayJob"]("false", "a: b", "", ""), startable["RayJob"]("false", "a: b", "finalizers: [ray.io/rayjob-finalizer]", ""))},
		"KubeRay creates the cluster of a RayJob":  {kuberay, create(owned("RayJob", rayClusterWith("headGroupSpec: {template: {spec: {}}}")))},
		"KubeRay creates its submitter":            {kuberay, create(owned("RayJob", workWith("batch/v1", "Job", "template: {spec: {}}")))},
		"KubeRay removes a cluster":                {kuberay, remove(owned("RayService", rayClusterWith("a: b")), "propagationPolicy: Background")},
		"our controller creates what is wrapped":   {wrappers, create(owned("AppWrapper", strings.Replace(pyTorchJobWith("tolerations: [{key: nvidia.com/gpu}]"), "name: j", "name: j, labels: {workload.codeflare.dev/appwrapper: w}", 1)))},
		"our controller lets an AppWrapper go":     {wrappers, update(strings.Replace(dying, "workload.codeflare.dev/finalizer", "", 1), dying)},
		"our controller ends a pod by force":       {wrappers, remove(labelledPod("train"), "gracePeriodSeconds: 0")},
		"a JobSet creates its Jobs":                {"mlbatch-system/jobset-controller", create(owned("JobSet", workWith("batch/v1", "Job", "template: {spec: {}}")))},
		"a JobSet ends its Jobs in the foreground": {"mlbatch-system/jobset-controller", remove(owned("JobSet", workWith("batch/v1", "Job", "a: b")), "propagationPolicy: Foreground")},
		"a LeaderWorkerSet grows its StatefulSet":  {"mlbatch-system/lws-controller-manager", update(owned("LeaderWorkerSet", workWith("apps/v1", "StatefulSet", "replicas: 2")), owned("LeaderWorkerSet", workWith("apps/v1", "StatefulSet", "replicas: 1")))},
		"a Job creates its pods":                   {kube + "job-controller", create(strings.Replace(owned("Job", podWith("")), "name: p", "name: p, finalizers: [batch.kubernetes.io/job-tracking]", 1))},
		"a Job has counted its pod":                {kube + "job-controller", update(owned("Job", podWith("")), strings.Replace(owned("Job", podWith("")), "name: p", "name: p, finalizers: [batch.kubernetes.io/job-tracking]", 1))},
		"a CronJob creates a Job":                  {kube + "cronjob-controller", create(owned("CronJob", workWith("batch/v1", "Job", "template: {spec: {}}")))},
		"a Deployment replaces its pods":           {kube + "deployment-controller", update(owned("Deployment", workWith("apps/v1", "ReplicaSet", "replicas: 0")), owned("Deployment", workWith("apps/v1", "ReplicaSet", "replicas: 1")))},
		"an autoscaler enlarges a Deployment":      {kube + "horizontal-pod-autoscaler", scaled},
		"the TTL of a Job has passed":              {kube + "ttl-after-finished-controller", remove(workWith("batch/v1", "Job", "a: b"), "propagationPolicy: Foreground")},
		"the garbage collector follows an owner":   {kube + "generic-garbage-collector", remove(owned("RayJob", rayClusterWith("a: b")), "propagationPolicy: Background")},
		"the garbage collector has waited":         {kube + "generic-garbage-collector", update(workWith("batch/v1", "Job", "a: b"), strings.Replace(workWith("batch/v1", "Job", "a: b"), "name: w", "name: w, finalizers: [foregroundDeletion]", 1))},
		"the namespace goes":                       {kube + "namespace-controller", remove(workWith("batch/v1", "Job", "a: b"), "preconditions: {}")},
		"a claim that is in use":                   {kube + "pvc-protection-controller", update(owned("AppWrapper", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, finalizers: [kubernetes.io/pvc-protection]}}`), owned("AppWrapper", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}}`))},
		"a node with a taint loses its pods":       {kube + "node-controller", remove(owned("Job", podWith("terminationGracePeriodSeconds: 600")), "propagationPolicy: Background")},
		"the scheduler makes room":                 {"system:kube-scheduler", remove(owned("Job", podWith("terminationGracePeriodSeconds: 600")), "propagationPolicy: Background")},
		"a kubelet reports a labelled pod":         {node, request{operation: admission.Update, subresource: "status", object: annotated(labelledPod("train"), "a: b"), old: labelledPod("train")}},
		"a kubelet says that a pod has ended":      {node, remove(owned("Job", podWith("terminationGracePeriodSeconds: 600")), "gracePeriodSeconds: 0, preconditions: {uid: u}")},
	} {
		platform.accept(t, name, a.request, mayControl(subjects, a.by))
	}
}

// mayControl reports whether a user, or the service account NAMESPACE/NAME, acts as a controller.
func mayControl(subjects []rbac.Subject, by string) bool {
	home, account, isAccount := strings.Cut(by, "/")
	return slices.ContainsFunc(subjects, func(s rbac.Subject) bool {
		switch s.Kind {
		case "ServiceAccount":
			return isAccount && s.Namespace == home && s.Name == account
		case "Group":
			return isAccount && s.Name == "system:serviceaccounts:"+home
		}
		return !isAccount && s.Name == by
	})
}

func ofJob(spec, metadata string) string {
	return strings.Replace(podWith(spec), "name: p", "name: p, ownerReferences: [{kind: Job, name: o, controller: true}], "+metadata, 1)
}

// defence is all policies, as they are written and compiled.
type defence struct {
	rules    map[string]admissionregistration.ValidatingAdmissionPolicy
	compiled map[string]validating.Validator
}

func defences(t *testing.T) defence {
	t.Helper()
	d := defence{rules: policiesWith(t, nil), compiled: map[string]validating.Validator{}}
	for name, policy := range d.rules {
		d.compiled[name] = compile(t, policy)
	}
	return d
}

// accept fails the test for each policy that judges the request, by its rules, and refuses it.
func (d defence) accept(t *testing.T, name string, r request, may bool) {
	t.Helper()
	r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	r.annotations = map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}
	for _, policy := range judging(d.rules, r.resourceOf(t), admissionregistration.OperationType(r.operation)) {
		if got := judge(t, d.compiled[policy], r, may); len(got) > 0 {
			t.Errorf("%s: %s refuses it: %q", name, policy, got)
		}
	}
}

// resourceOf is RESOURCE.GROUP/SUBRESOURCE of a request.
func (r request) resourceOf(t *testing.T) string {
	t.Helper()
	if r.resource != "" {
		return r.resource
	}
	o := unstructuredOf(t, r.object)
	if o == nil {
		o = unstructuredOf(t, r.old)
	}
	resource := strings.ToLower(o.GetKind()) + "s"
	if group := o.GroupVersionKind().Group; group != "" {
		resource += "." + group
	}
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	return resource
}
