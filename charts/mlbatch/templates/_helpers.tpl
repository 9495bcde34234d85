{{- define "mlbatch.labels" -}}
app.kubernetes.io/name: mlbatch
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The scheduler that our controller gives to wrapped pods; empty if none. */}}
{{- define "mlbatch.wrappedPodsScheduler" -}}
{{- ((.Values.appwrapper.config).appwrapper).schedulerName | default "" }}
{{- end }}
