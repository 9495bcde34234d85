{{/*
A scalar as a text of YAML: what the user wrote, be it a number, a boolean,
nothing or several lines. Large numbers arrive as floats, which only JSON
prints as they were.
*/}}
{{- define "generator.text" -}}
{{- if kindIs "invalid" . -}}
""
{{- else if kindIs "string" . -}}
{{ printf "%s" . | toRawJson }}
{{- else -}}
{{ toRawJson . | quote }}
{{- end -}}
{{- end }}

{{/* The same without quotes, for use inside a text. */}}
{{- define "generator.plain" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else if not (kindIs "invalid" .) -}}
{{ toRawJson . }}
{{- end -}}
{{- end }}

{{/* A duration as the controller parses it, which knows no days. */}}
{{- define "generator.duration" -}}
{{- $days := regexFind "^[0-9]+d" . | trimSuffix "d" -}}
{{- if $days -}}
{{ printf "%dh%s" (mul 24 (int64 $days)) (regexReplaceAll "^[0-9]+d" . "") | quote }}
{{- else -}}
{{ quote . }}
{{- end -}}
{{- end }}

{{- define "generator.labels" -}}
{{- range .Values.customLabels }}
{{ include "generator.text" .key }}: {{ include "generator.text" .value }}
{{- end }}
{{- end }}

{{- define "generator.sakkara" -}}
{{- if has .Values.schedulerName (list "sakkara" "sakkara-scheduler") }}true{{ end }}
{{- end }}
