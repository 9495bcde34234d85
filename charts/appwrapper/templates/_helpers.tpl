{{/*
Object names do not depend on the release name: Kueue, dashboards and scripts rely on
them. The mutating webhook configuration must sort before Kueue's, so that Kueue sees
the default queue that it sets.
*/}}

{{- define "appwrapper.selector" -}}
app.kubernetes.io/name: appwrapper
app.kubernetes.io/component: controller
control-plane: controller-manager
{{- end }}

{{- define "appwrapper.labels" -}}
{{ include "appwrapper.selector" . }}
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "platform.release" . }}
{{- end }}

{{- define "appwrapper.image" -}}
{{ include "platform.image" (list . .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)) }}
{{- end }}

{{/*
The configuration file. As part of the platform, it adds the taints of nodes with
unhealthy accelerators of the platform's resource name. On its own, the controller's
defaults cover NVIDIA's.
*/}}
{{- define "appwrapper.config" -}}
{{- $config := deepCopy (.Values.config | default dict) }}
{{- with (.Values.global).gpuResourceName }}
{{- if not (hasKey ((($config.appwrapper).autopilot).resourceTaints | default dict) .) }}
{{- $taints := dict "resourceTaints" (dict . (include "appwrapper.unhealthy" $ | fromYamlArray)) }}
{{- $autopilot := merge $taints (($config.appwrapper).autopilot | default dict) }}
{{- $_ := set $config "appwrapper" (merge (dict "autopilot" $autopilot) ($config.appwrapper | default dict)) }}
{{- end }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* The meaning of Autopilot's labels. Equal to the controller's own default. */}}
{{- define "appwrapper.unhealthy" -}}
- {key: autopilot.ibm.com/gpuhealth, value: WARN, effect: PreferNoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: ERR, effect: NoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: TESTING, effect: NoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: EVICT, effect: NoExecute}
{{- end }}

{{/* Not empty if the webhooks are enabled. */}}
{{- define "appwrapper.webhooks" -}}
{{- if ne (toString (.Values.config).webhooksEnabled) "false" }}true{{ end }}
{{- end }}

{{/* Not empty if cert-manager manages the webhook certificate. */}}
{{- define "appwrapper.certManager" -}}
{{- if ((.Values.config).certManagement).certManager }}{{ include "appwrapper.webhooks" . }}{{ end }}
{{- end }}

{{- define "appwrapper.injectCA" -}}
{{- if include "appwrapper.certManager" . -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/appwrapper-webhook-server
{{- end }}
{{- end }}

{{/* Not empty if the controller manages the webhook certificate itself. */}}
{{- define "appwrapper.rotates" -}}
{{- if not (include "appwrapper.certManager" .) }}{{ include "appwrapper.webhooks" . }}{{ end }}
{{- end }}

{{/*
Webhook calls to skip. An AppWrapper that is being deleted must lose its finalizer even
if no controller is available. The controller's own changes need no admission check.
*/}}
{{- define "appwrapper.matchConditions" -}}
- name: not-being-deleted
  expression: request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)
- name: not-by-the-controller
  expression: request.userInfo.username != 'system:serviceaccount:{{ .Release.Namespace }}:appwrapper-controller-manager'
{{- end }}

{{/* The names of the slack queues as JSON; empty if there are none, or if nodes are not watched. */}}
{{- define "appwrapper.slackQueues" -}}
{{- $aw := ((.Values.config).appwrapper) | default dict -}}
{{- $names := concat (list ($aw.slackQueueName | default "")) ($aw.slackQueueNames | default list) | uniq -}}
{{- $names = without $names "" -}}
{{- if and $names (ne (toString ($aw.autopilot).monitorNodes) "false") }}{{ toJson $names }}{{ end }}
{{- end }}
