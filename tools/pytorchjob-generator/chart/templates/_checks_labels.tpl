{{/* Labels must be unique and valid in Kubernetes. */}}
{{- define "generator.checkLabels" -}}
{{- include "generator.needAll" (list . "customLabels" "key") }}
{{- range .Values.customLabels }}
{{- if not (hasKey . "value") }}
{{- fail (printf "customLabels: %s has no value" (include "generator.plain" .key)) }}
{{- end }}
{{- include "generator.checkLabel" (list "customLabels" .key .value) }}
{{- end }}
{{- range .Values.autopilotHealthChecks }}
{{- include "generator.checkLabel" (list "autopilotHealthChecks" . "") }}
{{- end }}
{{- $taken := dict "kueue.x-k8s.io/queue-name" "queueName" "kueue.x-k8s.io/priority-class" "workloadPriorityClass" "scheduling.x-k8s.io/pod-group" "podGroup" }}
{{- range .Values.customLabels }}
{{- with get $taken (include "generator.plain" .key) }}
{{- fail (printf "customLabels has a label that %s sets: use %s instead" . .) }}
{{- end }}
{{- end }}
{{- $keys := .Values.customLabels | default list }}
{{- with .Values.autopilotHealthChecks }}
{{- range prepend . "autopilot" }}
{{- $keys = append $keys (dict "key" .) }}
{{- end }}
{{- end }}
{{- include "generator.unique" (list $keys "key" "customLabels and autopilotHealthChecks have" "list each label once") }}
{{- end }}

{{/* Checks one label: (list where key value) */}}
{{- define "generator.checkLabel" -}}
{{- $where := index . 0 }}
{{- $key := include "generator.plain" (index . 1) }}
{{- $value := include "generator.plain" (index . 2) }}
{{- $parts := splitList "/" $key }}
{{- $name := last $parts }}
{{- if gt (len $parts) 2 }}
{{- fail (printf "%s: the key %q has more than one slash" $where $key) }}
{{- end }}
{{- if eq (len $parts) 2 }}
{{- $prefix := first $parts }}
{{- if gt (len $prefix) 253 }}
{{- fail (printf "%s: the prefix of key %q has %d characters, but at most 253 are allowed" $where $key (len $prefix)) }}
{{- end }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $prefix) }}
{{- fail (printf "%s: the prefix of key %q must be a domain name in lower case" $where $key) }}
{{- end }}
{{- end }}
{{- if gt (len $name) 63 }}
{{- fail (printf "%s: the name in key %q has %d characters, but at most 63 are allowed" $where $key (len $name)) }}
{{- end }}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$" $name) }}
{{- fail (printf "%s: the name in key %q must begin and end with a letter or digit and contain only letters, digits, dashes, underscores and dots" $where $key) }}
{{- end }}
{{- if gt (len $value) 63 }}
{{- fail (printf "%s: the value of %s has %d characters, but at most 63 are allowed" $where $key (len $value)) }}
{{- end }}
{{- if not (regexMatch "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$" $value) }}
{{- fail (printf "%s: the value %q of %s must begin and end with a letter or digit and contain only letters, digits, dashes, underscores and dots" $where $value $key) }}
{{- end }}
{{- end }}
