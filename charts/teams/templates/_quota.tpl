{{/* An amount of a quota, which is a number or a string. */}}
{{- define "teams.amount" -}}
{{- if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* An amount as a number, to add and to compare. */}}
{{- define "teams.number" -}}
{{- $text := include "teams.amount" . }}
{{- $digits := regexFind "^[0-9.]+(e[+-]?[0-9]+)?" $text }}
{{- $unit := trimPrefix $digits $text }}
{{- $units := dict "" "1" "n" "1e-9" "u" "1e-6" "m" "1e-3" "k" "1e3" "M" "1e6" "G" "1e9" "T" "1e12" "P" "1e15" "E" "1e18" }}
{{- $units = merge $units (dict "Ki" "1024" "Mi" "1048576" "Gi" "1073741824" "Ti" "1099511627776" "Pi" "1125899906842624" "Ei" "1152921504606846976") }}
{{- mulf (float64 $digits) (get $units $unit | float64) }}
{{- end }}

{{/* The nominal quota of a resource, with or without limits. */}}
{{- define "teams.nominal" -}}
{{- if kindIs "map" . }}{{ include "teams.amount" .nominal }}{{ else }}{{ include "teams.amount" . }}{{ end }}
{{- end }}

{{/* The quota of one resource in one flavor: (dict "name" … "quota" …) */}}
{{- define "teams.resource" -}}
{{- $quota := .quota -}}
- name: {{ quote .name }}
  nominalQuota: {{ include "teams.nominal" $quota | quote }}
  {{- if kindIs "map" $quota }}
  {{- range $limit := list "borrowingLimit" "lendingLimit" }}
  {{- if hasKey $quota $limit }}
  {{ $limit }}: {{ include "teams.amount" (get $quota $limit) | quote }}
  {{- end }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* The resources of a flavor's quota in one line. */}}
{{- define "teams.resources" -}}
{{- keys . | sortAlpha | join ", " }}
{{- end }}

{{/*
Resource groups of a queue or a cohort: flavors with the same resources are one group. Groups and flavors
keep the order of the values file: (dict "flavors" … "quota" …)
*/}}
{{- define "teams.resourceGroups" -}}
{{- $owner := . -}}
{{- $groups := list -}}
{{- range .flavors -}}
{{- with get $owner.quota .name }}{{ $groups = append $groups (include "teams.resources" .) }}{{ end -}}
{{- end -}}
{{- range $group := uniq $groups }}
- coveredResources:
    {{- toYaml (splitList ", " $group) | nindent 4 }}
  flavors:
    {{- range $flavor := $owner.flavors }}
    {{- $quota := get $owner.quota $flavor.name | default dict }}
    {{- if eq (include "teams.resources" $quota) $group }}
    - name: {{ quote $flavor.name }}
      resources:
        {{- range $name := keys $quota | sortAlpha }}
        {{- include "teams.resource" (dict "name" $name "quota" (get $quota $name)) | nindent 8 }}
        {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
