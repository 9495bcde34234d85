{{/*
A scalar as a YAML string, as the user wrote it: a number, a boolean, nothing or
several lines.
*/}}
{{- define "generator.text" -}}
{{ include "generator.plain" . | quote }}
{{- end }}

{{/*
The same without quotes, for use inside a string. Numbers arrive as floats. Only JSON
prints them as they were written, and they cannot represent every large integer.
*/}}
{{- define "generator.plain" -}}
{{- if typeIs "string" . -}}
{{ . }}
{{- else if or (typeIs "float64" .) (typeIs "json.Number" .) -}}
{{- $number := float64 . -}}
{{- if or (ge $number 9007199254740992.0) (le $number -9007199254740992.0) -}}
{{- fail (printf "the number %.0f has too many digits to keep its exact value: put it in quotes" $number) -}}
{{- end -}}
{{ toRawJson $number }}
{{- else if not (kindIs "invalid" .) -}}
{{ toRawJson . }}
{{- end -}}
{{- end }}

{{/* Several lines as a YAML block, or as a quoted string if YAML would change them. */}}
{{- define "generator.lines" -}}
{{- if regexMatch "[^\\t\\n -~¡-\\x{2027}\\x{2030}-\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{fffd}\\x{10000}-\\x{10ffff}]|\\s$" . -}}
{{ include "generator.text" . }}
{{- else -}}
|
{{ . }}
{{- end -}}
{{- end }}

{{/* A duration in the format that the controller parses, which has no days. */}}
{{- define "generator.duration" -}}
{{- $days := regexFind "^[0-9]+d" . | trimSuffix "d" -}}
{{- if $days -}}
{{ printf "%dh%s" (regexReplaceAll "^0+" $days "" | int64 | mul 24) (regexReplaceAll "^[0-9]+d" . "") | quote }}
{{- else -}}
{{ quote . }}
{{- end -}}
{{- end }}

{{/* A quantity of any YAML type as a number. An empty value is 0. */}}
{{- define "generator.amount" -}}
{{- $text := include "generator.plain" . | default "0" -}}
{{- $suffix := regexFind "[a-zA-Z].*$" $text -}}
{{- $factors := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- if hasKey $factors $suffix -}}
{{ mulf ($text | trimSuffix $suffix | trimPrefix "+" | float64) (get $factors $suffix) }}
{{- else -}}
{{ $text | trimPrefix "+" | float64 }}
{{- end -}}
{{- end }}

{{- define "generator.sakkara" -}}
{{- if has .Values.schedulerName (list "sakkara" "sakkara-scheduler") }}true{{ end }}
{{- end }}
