{{- define "kuberay-operator.selector" -}}
app.kubernetes.io/name: kuberay
app.kubernetes.io/component: kuberay-operator
{{- end }}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selector" . }}
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "platform.release" . }}
{{- end }}
