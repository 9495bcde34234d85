{{- define "mlbatch.labels" -}}
app.kubernetes.io/name: mlbatch
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The PriorityClass of each part that is enabled, by the value that sets it. */}}
{{- define "mlbatch.priorityClasses" -}}
{{- $classes := dict }}
{{- if .Values.kueue.enabled }}
{{- $_ := set $classes "kueue.controllerManager.manager.priorityClassName" ((.Values.kueue.controllerManager).manager).priorityClassName }}
{{- end }}
{{- if .Values.jobset.enabled }}
{{- $_ := set $classes "jobset.controller.priorityClassName" (.Values.jobset.controller).priorityClassName }}
{{- end }}
{{- range $part := list "coscheduler" "training-operator" "kuberay-operator" "leaderworkerset" "appwrapper" "codeflare" }}
{{- if (index $.Values $part).enabled }}
{{- $_ := set $classes (printf "%s.priorityClassName" $part) (index $.Values $part).priorityClassName }}
{{- end }}
{{- end }}
{{- toYaml $classes }}
{{- end }}

{{/* The scheduler that the controller sets on wrapped pods; empty if none. */}}
{{- define "mlbatch.wrappedPodsScheduler" -}}
{{- ((.Values.appwrapper.config).appwrapper).schedulerName | default "" }}
{{- end }}

{{/*
Refuses several replicas without leader election, or without a PodDisruptionBudget and
spreading. Refuses a PodDisruptionBudget that blocks every drain.
*/}}
{{- define "mlbatch.require.replicas" -}}
{{- $replicas := int .replicas }}
{{- $budget := .budget | default dict }}
{{- if gt $replicas 1 }}
{{- if not .elects }}
{{- fail (printf "mlbatch: %d replicas of %s would conflict without leader election: set %s to true" $replicas .of .elections) }}
{{- end }}
{{- if not (and $budget.enabled .spread) }}
{{- fail (printf "mlbatch: a drain could evict all %d replicas of %s at once: set %s.podDisruptionBudget.enabled and %s.%s (see setup/profiles/production.yaml)" $replicas .of .at .at .spreads) }}
{{- end }}
{{- end }}
{{- if and $budget.enabled (kindIs "invalid" $budget.maxUnavailable) }}
{{- $least := toString $budget.minAvailable }}
{{- $stay := hasSuffix "%" $least | ternary (divf (trimSuffix "%" $least) 100 | mulf $replicas | ceil) (float64 $least) }}
{{- if ge $stay (float64 $replicas) }}
{{- fail (printf "mlbatch: %s.podDisruptionBudget would block every drain: set its minAvailable to less than the %d replicas of %s" .at $replicas .of) }}
{{- end }}
{{- end }}
{{- end }}
