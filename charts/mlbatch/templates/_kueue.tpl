{{/*
Kueue's webhooks, in the scope of Kueue's chart, without those that do nothing: Kueue answers for the
kinds of all its integrations, also for those that are off, and while it does not answer, nobody can
create one. An object that is being deleted is not validated: it starts no more, and only has to lose
its finalizers.
*/}}
{{- define "mlbatch.kueueWebhooks" -}}
{{- $configuration := include "platform.kueueConfiguration" .Values.managerConfig | fromYaml }}
{{- $kinds := list }}
{{- range ($configuration.integrations).frameworks | default (list "batch/job") }}
{{- $kinds = append $kinds (splitList "/" . | last) }}
{{- end }}
{{- if or (has "deployment" $kinds) (has "statefulset" $kinds) (has "leaderworkerset" $kinds) }}
{{- $kinds = append $kinds "pod" }}
{{- end }}
{{- range $document := splitList "\n---\n" (include "kueue.allWebhooks" .) }}
{{- $object := fromYaml $document }}
{{- $webhooks := list }}
{{- range $webhook := $object.webhooks }}
{{- $kind := $webhook.name | trimSuffix ".kb.io" | substr 1 -1 }}
{{- if has "kueue.x-k8s.io" (first $webhook.rules).apiGroups }}
{{- $webhooks = append $webhooks $webhook }}
{{- else if has $kind $kinds }}
{{- if hasPrefix "v" $webhook.name }}
{{- $condition := dict "name" "not-being-deleted" "expression" "!has(object.metadata.deletionTimestamp)" }}
{{- $_ := set $webhook "matchConditions" (append ($webhook.matchConditions | default list) $condition) }}
{{- end }}
{{- $webhooks = append $webhooks $webhook }}
{{- end }}
{{- end }}
---
{{ set $object "webhooks" $webhooks | toYaml }}
{{- end }}
{{- end }}

{{/*
Whether Kueue's visibility API is wanted, in the scope of Kueue's chart: true, or nothing. While an API that is
registered does not answer, no namespace of the cluster can be deleted.
*/}}
{{- define "mlbatch.kueueIsVisible" -}}
{{- $on := false }}
{{- range .Values.controllerManager.featureGates }}
{{- if eq .name "VisibilityOnDemand" }}
{{- $on = .enabled }}
{{- end }}
{{- end }}
{{- if $on }}true{{ end }}
{{- end }}
