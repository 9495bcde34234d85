{{/*
The files in policies/ are rules for team namespaces that the API server itself enforces.
RBAC cannot express them: they are about what an object says, not about its kind.
charts/policies_test.go has what each refuses and accepts.
*/}}

{{/* Puts a policy into force in team namespaces, or in those with another label. */}}
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
        {{ .label | default "mlbatch-team-namespace" }}: {{ .is | default "true" | quote }}
{{- end }}

{{/* True for users who may do what only controllers do. */}}
{{- define "mlbatch.isController" -}}
authorizer.group('workload.codeflare.dev').resource('appwrappers').namespace(request.namespace).check('control').allowed()
{{- end }}
