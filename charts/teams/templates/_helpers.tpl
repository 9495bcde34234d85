{{- define "teams.labels" -}}
app.kubernetes.io/name: teams
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
Namespaces, queues and flavors stay when the release goes or a team leaves the
list: with them would go running work.
*/}}
{{- define "teams.keep" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false
{{- end }}

{{/* One amount of a quota, which is a number or a text. (list where amount) */}}
{{- define "teams.amount" -}}
{{- $amount := index . 1 }}
{{- if kindIs "float64" $amount }}
{{- $amount = $amount | toJson }}
{{- end }}
{{- $amount | toString | quote }}
{{- end }}

{{/* The quota of one resource in one flavor: (dict "name" … "quota" …) */}}
{{- define "teams.resource" -}}
{{- $quota := .quota -}}
{{- if not (kindIs "map" $quota) }}
{{- $quota = dict "nominal" $quota }}
{{- end -}}
- name: {{ quote .name }}
  nominalQuota: {{ include "teams.amount" (list . $quota.nominal) }}
  {{- range $limit := list "borrowingLimit" "lendingLimit" }}
  {{- if hasKey $quota $limit }}
  {{ $limit }}: {{ include "teams.amount" (list . (get $quota $limit)) }}
  {{- end }}
  {{- end }}
{{- end }}
