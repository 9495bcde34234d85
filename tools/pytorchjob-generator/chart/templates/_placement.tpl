{{/* Who places the pods, and where. */}}
{{- define "generator.placement" }}
  {{- with .Values.schedulerName }}
  schedulerName: {{ quote . }}
  {{- end }}
  priorityClassName: {{ .Values.priority | default "default-priority" }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- range $label, $value := . }}
    {{ quote $label }}: {{ include "generator.text" $value }}
    {{- end }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- range . }}
    {{- include "generator.toleration" . | trim | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with include "generator.nodes" . | trim }}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions:
              {{- . | nindent 14 }}
  {{- end }}
{{- end }}

{{- define "generator.toleration" -}}
- operator: {{ .operator | default "Equal" }}
  {{- with .key }}
  key: {{ quote . }}
  {{- end }}
  {{- if not (kindIs "invalid" .value) }}
  value: {{ include "generator.text" .value }}
  {{- end }}
  {{- with .effect }}
  effect: {{ . }}
  {{- end }}
  {{- if not (kindIs "invalid" .tolerationSeconds) }}
  tolerationSeconds: {{ int64 .tolerationSeconds }}
  {{- end }}
{{- end }}

{{/* Which nodes not to run on. The health of GPUs matters to jobs that have some. */}}
{{- define "generator.nodes" -}}
{{- if gt (int .Values.numGpusPerPod) 0 }}
{{- range $label, $values := .Values.unhealthyNodes }}
{{- include "generator.notIn" (list $label $values) }}
{{- end }}
{{- end }}
{{- include "generator.notIn" (list "kubernetes.io/hostname" .Values.hostIgnoreList) }}
{{- end }}

{{/* (list label values) */}}
{{- define "generator.notIn" }}
{{- with last . }}
- key: {{ first $ }}
  operator: NotIn
  values:
    {{- range . }}
    - {{ include "generator.text" . }}
    {{- end }}
{{- end }}
{{- end }}
