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

{{/* Says what is wrong with more than one pod of a program, or with its PodDisruptionBudget. */}}
{{- define "mlbatch.require.replicas" -}}
{{- $replicas := int .replicas }}
{{- $budget := .budget | default dict }}
{{- if gt $replicas 1 }}
{{- if not .elects }}
{{- fail (printf "mlbatch: %d replicas of %s would work against each other: put %s back to true" $replicas .of .elections) }}
{{- end }}
{{- if not (and $budget.enabled .spread) }}
{{- fail (printf "mlbatch: a drain could take all %d replicas of %s: set %s.podDisruptionBudget.enabled and %s.%s (setup/profiles/production.yaml shows how)" $replicas .of .at .at .spreads) }}
{{- end }}
{{- end }}
{{- if and $budget.enabled (kindIs "invalid" $budget.maxUnavailable) }}
{{- $least := toString $budget.minAvailable }}
{{- $stay := hasSuffix "%" $least | ternary (divf (trimSuffix "%" $least) 100 | mulf $replicas | ceil) (float64 $least) }}
{{- if ge $stay (float64 $replicas) }}
{{- fail (printf "mlbatch: %s.podDisruptionBudget would hold every drain up: its minAvailable has to be less than the %d replicas of %s" .at $replicas .of) }}
{{- end }}
{{- end }}
{{- end }}
