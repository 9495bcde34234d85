{{- define "teams.labels" -}}
app.kubernetes.io/name: teams
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
Namespaces, queues, cohorts, flavors and the controller's rights stay when the release
goes or a team leaves the list: with them would go running work, or what ends it.
*/}}
{{- define "teams.keep" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false
{{- end }}

{{- define "teams.namespace" -}}
{{ .namespace | default .name }}
{{- end }}

{{/* Subjects of a binding, from the names of users and groups. */}}
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
