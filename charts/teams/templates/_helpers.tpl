{{- define "teams.labels" -}}
app.kubernetes.io/name: teams
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Keeps namespaces, queues, cohorts, flavors and the controller's permissions when the
release is uninstalled or a team is removed. Deleting them would delete running work,
or leave the controller unable to end it.
*/}}
{{- define "teams.keep" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false
{{- end }}

{{- define "teams.namespace" -}}
{{ .namespace | default .name }}
{{- end }}

{{/* Subjects of a binding: users, groups and ServiceAccounts. */}}
{{- define "teams.subjects" -}}
{{- range .users }}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ quote . }}
{{- end }}
{{- range .groups }}
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: {{ quote . }}
{{- end }}
{{- range .serviceAccounts }}
- kind: ServiceAccount
  name: {{ quote .name }}
  namespace: {{ quote .namespace }}
{{- end }}
{{- end }}

{{/* A team's podSecurity, as YAML: its own values, and the file's for the others. */}}
{{- define "teams.podSecurity" -}}
{{- $own := .team.podSecurity | default dict }}
{{- $security := dict }}
{{- range $key, $value := .all }}
{{- $_ := set $security $key (hasKey $own $key | ternary (get $own $key) $value) }}
{{- end }}
{{- toYaml $security }}
{{- end }}

{{/*
The taints that a team's pods may tolerate, KEY or KEY=VALUE: those that its flavors have or tolerate, its list, and
those with the name of a device for which it has quota: these keep others away from the device. A toleration of every
taint is none of them: only Kueue may add it. (dict "root" … "team" …)
*/}}
{{- define "teams.tolerations" -}}
{{- $all := hasKey .team "tolerations" | ternary .team.tolerations .root.Values.tolerations }}
{{- $quota := .team.quota | default dict }}
{{- range .root.Values.flavors }}
{{- if hasKey $quota .name }}
{{- $all = concat ($all | default list) (.nodeTaints | default list) (.tolerations | default list) }}
{{- end }}
{{- end }}
{{- $entries := list }}
{{- range $all }}
{{- if .key }}
{{- $entries = append $entries (.value | empty | ternary .key (printf "%s=%s" .key (.value | toString))) }}
{{- end }}
{{- end }}
{{- range $flavor, $resources := $quota }}
{{- range $resource := keys ($resources | default dict) | sortAlpha }}
{{- if contains "/" $resource }}
{{- $entries = append $entries $resource }}
{{- end }}
{{- end }}
{{- end }}
{{- uniq $entries | join "," }}
{{- end }}
