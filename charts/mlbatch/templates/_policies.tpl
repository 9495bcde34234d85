{{/*
The files in policies/ are rules for team namespaces that the API server itself enforces.
RBAC cannot express them: they are about what an object says, not about its kind.
charts/policies_test.go has what each refuses and accepts.
*/}}

{{/* Puts a policy into force in team namespaces, or in those with more labels. */}}
{{- define "mlbatch.policyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "mlbatch.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: {{ eq .root.Values.policies.enforcement "Warn" | ternary "[Warn, Audit]" "[Deny]" }}
  matchResources:
    namespaceSelector:
      matchLabels:
        mlbatch-team-namespace: "true"
        {{- with .labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{/* True for users who may do what only controllers do. */}}
{{- define "mlbatch.isController" -}}
authorizer.group('workload.codeflare.dev').resource('appwrappers').namespace(request.namespace).check('control').allowed()
{{- end }}

{{/* The pod templates of the PyTorchJob, RayCluster or RayJob in this variable. */}}
{{- define "mlbatch.templatesOf" -}}
(request.kind.kind == 'PyTorchJob' ?
dyn({{ . }}).spec.?pytorchReplicaSpecs.orValue({}).map(r, dyn({{ . }}).spec.pytorchReplicaSpecs[r].?template.orValue({})) :
[dyn({{ . }}).spec.?submitterPodTemplate.orValue({})] + [request.kind.kind == 'RayJob' ? dyn({{ . }}).spec.?rayClusterSpec.orValue({}) : dyn({{ . }}).spec]
.map(c, [c.?headGroupSpec.template.orValue({})] + c.?workerGroupSpecs.orValue([]).map(g, g.?template.orValue({})))[0])
{{- end }}

{{/* The kinds that are work by themselves. Deployments and the like start nothing that Kueue counts. */}}
{{- define "mlbatch.work" -}}
['AppWrapper', 'Run', 'Job', 'JobSet', 'LeaderWorkerSet', 'PyTorchJob', 'TFJob', 'XGBoostJob', 'PaddleJob', 'JAXJob', 'MPIJob', 'RayCluster', 'RayJob', 'RayService'{{ range (((.Values.appwrapper.config).appwrapper).extraKinds) }}, '{{ .kind }}'{{ end }}]
{{- end }}

{{/* The prefixes of labels, annotations and finalizers that the platform's controllers read. */}}
{{- define "mlbatch.reserved" -}}
['kueue.x-k8s.io/', 'workload.codeflare.dev/', 'codeflare.dev/', 'ray.io/', 'training.kubeflow.org/', 'batch.kubernetes.io/', 'jobset.sigs.k8s.io/', 'leaderworkerset.sigs.k8s.io/', 'scheduling.x-k8s.io/', 'apps.kubernetes.io/', 'statefulset.kubernetes.io/']
{{- end }}

{{/* Variables of a policy: the specs of the object and of the stored one, and lists of the pod templates in each, of any kind. */}}
{{- define "mlbatch.everyTemplate" -}}
# Of the object and of the stored one.
- name: specs
  expression: >-
    [object, oldObject].map(o, o == null ? {} : dyn(o).?spec.orValue({}))
# Lists of what may be a pod template; a template that is elsewhere is in none.
- name: single
  expression: >-
    variables.specs.map(s, [s.?template, s.?jobTemplate.spec.template, s.?leaderWorkerTemplate.leaderTemplate,
    s.?leaderWorkerTemplate.workerTemplate, s.?submitterPodTemplate].map(t, t.orValue({})))
- name: ofRoles
  expression: >-
    variables.specs.map(s, ['jaxReplicaSpecs', 'mpiReplicaSpecs', 'paddleReplicaSpecs', 'pytorchReplicaSpecs',
    'tfReplicaSpecs', 'xgbReplicaSpecs'].map(k, s[?k].orValue({})).map(m, m.map(r, m[r].?template.orValue({}))))
- name: ofJobs
  expression: >-
    variables.specs.map(s, s.?replicatedJobs.orValue([]).map(j, j.?template.spec.template.orValue({})))
- name: ofRay
  expression: >-
    variables.specs.map(s, [s, s.?rayClusterSpec.orValue({}), s.?rayClusterConfig.orValue({})].map(c,
    [c.?headGroupSpec.template.orValue({})] + c.?workerGroupSpecs.orValue([]).map(g, g.?template.orValue({}))))
{{- end }}

