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

{{/* Lists of what may be pod templates in the spec in the variable s, of any kind; a template that is elsewhere is in none. */}}
{{- define "mlbatch.lists" -}}
[[s.?template, s.?jobTemplate.spec.template, s.?leaderWorkerTemplate.leaderTemplate, s.?leaderWorkerTemplate.workerTemplate,
s.?submitterPodTemplate].map(t, t.orValue({})), s.?replicatedJobs.orValue([]).map(j, j.?template.spec.template.orValue({}))] +
{{ include "mlbatch.roles" . }}.map(m, m.map(r, m[r].?template.orValue({}))) +
[s, s.?rayClusterSpec.orValue({}), s.?rayClusterConfig.orValue({})].map(c,
[c.?headGroupSpec.template.orValue({})] + c.?workerGroupSpecs.orValue([]).map(g, g.?template.orValue({})))
{{- end }}

{{- define "mlbatch.roles" -}}
['jaxReplicaSpecs', 'mpiReplicaSpecs', 'paddleReplicaSpecs', 'pytorchReplicaSpecs', 'tfReplicaSpecs', 'xgbReplicaSpecs'].map(k, s[?k].orValue({}))
{{- end }}

{{/*
True for what is judged in little time: at most 64 groups and so many containers and volumes, tolerations, and entries of what policies look at, in the object and in
the stored one. Nobody looks into lists that are too long. The policy mlbatch-size refuses all else, so the others do not judge it. Members may write less than
controllers may create, because those, Kueue and webhooks add to it: an account's volume, a flavor's tolerations for each group, variables for each container.
*/}}
{{- define "mlbatch.isSmall" -}}
[object, oldObject].filter(o, o != null).map(o, dyn(o)).all(o, [o.?spec.orValue({})].all(s, ([s.?replicatedJobs, s.?workerGroupSpecs, s.?rayClusterSpec.workerGroupSpecs,
s.?rayClusterConfig.workerGroupSpecs].map(l, l.orValue([])) + {{ include "mlbatch.roles" . }}).map(l, l.size()).sum() <= 64 &&
[({{ include "mlbatch.lists" . }} + [[o]]).map(l, l.map(t, [t.?metadata.orValue({}), t.?spec.orValue({})]))].all(ts,
ts.map(l, l.map(t, [t[1].?containers, t[1].?initContainers, t[1].?ephemeralContainers, t[1].?volumes].map(e, e.orValue([]).size()).sum()).sum()).sum() <= {{ index . 0 }} &&
ts.map(l, l.map(t, [t[1].?tolerations, t[1].?securityContext.sysctls].map(e, e.orValue([]).size()).sum()).sum()).sum() <= {{ index . 1 }} &&
ts.map(l, l.map(t, [t[0].?labels, t[0].?annotations].map(e, e.orValue({}).size()).sum()).sum()).sum() <= {{ index . 2 }} &&
ts.map(l, l.map(t, [t[1].?containers, t[1].?initContainers, t[1].?ephemeralContainers].map(e, e.orValue([]).map(c, [c.?env, c.?ports,
c.?securityContext.capabilities.add].map(f, f.orValue([]).size()).sum() + [c.?resources.requests, c.?resources.limits].map(f, f.orValue({}).size()).sum()).sum()).sum() +
t[1].?volumes.orValue([]).map(v, v.?downwardAPI.items.orValue([]).size() + v.?projected.sources.orValue([]).size()).sum()).sum()).sum() <= {{ index . 2 }} &&
ts.map(l, l.map(t, t[1].?volumes.orValue([]).map(v, v.?projected.sources.orValue([]).map(f, f.?downwardAPI.items.orValue([]).size()).sum()).sum()).sum()).sum() <= {{ index . 2 }})))
{{- end }}

{{/* The match condition of policies that look into what mlbatch-size judges. */}}
{{- define "mlbatch.onlySmall" }}
{{- if .Values.policies.size.enabled }}
- name: small
  expression: >-
    request.?subResource.orValue('') == 'status' || {{ include "mlbatch.isSmall" (list 500 500 4000) | replace "\n" " " }}
{{- end }}
{{- end }}

{{/* Variables of a policy: of the object and of the stored one, the spec, and lists of the pod templates in it. */}}
{{- define "mlbatch.everyTemplate" -}}
- name: specs
  expression: >-
    [object, oldObject].map(o, o == null ? {} : dyn(o).?spec.orValue({}))
- name: templates
  expression: >-
    variables.specs.map(s, {{ include "mlbatch.lists" . | replace "\n" " " }})
{{- end }}
