{{/* The scheduler of the pods, and its constraints. */}}
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

{{/* Nodes to avoid. Only jobs with GPUs avoid nodes with unhealthy GPUs. */}}
{{- define "generator.nodes" -}}
{{- if gt (int .Values.numGpusPerPod) 0 }}
{{- range $label, $values := .Values.unhealthyNodes }}
{{- include "generator.notIn" (list $label $values) }}
{{- end }}
{{- end }}
{{- include "generator.notIn" (list "kubernetes.io/hostname" .Values.hostIgnoreList) }}
{{- end }}

{{/* Excludes nodes with one of the values of the label: (list label values) */}}
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
