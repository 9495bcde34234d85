{{- define "training-operator.selector" -}}
control-plane: kubeflow-training-operator
{{- end }}

{{- define "training-operator.labels" -}}
{{ include "training-operator.selector" . }}
app.kubernetes.io/name: training-operator
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "platform.release" . }}
{{- end }}

{{/* The operator fills in the placeholders in double braces for each worker. */}}
{{- define "training-operator.init-container" -}}
{{- with .Values.pytorch.initContainer -}}
- name: init-pytorch
  image: {{ include "platform.reference" (list $ .image) }}
  imagePullPolicy: {{ .imagePullPolicy }}
  command:
    {{- toYaml .command | nindent 4 }}
  {{- with .resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
