{{/* Object names do not depend on the release name: dashboards and scripts rely on them. */}}

{{- define "codeflare.selector" -}}
app.kubernetes.io/name: codeflare
app.kubernetes.io/component: controller
control-plane: controller-manager
{{- end }}

{{- define "codeflare.labels" -}}
{{ include "codeflare.selector" . }}
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "platform.release" . }}
{{- end }}

{{- define "codeflare.image" -}}
{{ include "platform.image" (list . .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)) }}
{{- end }}

{{/* The configuration file, with the platform's resource name of GPUs, and the agent's image. */}}
{{- define "codeflare.config" -}}
{{- $config := deepCopy (.Values.config | default dict) }}
{{- if not $config.gpuResourceName }}
{{- $_ := set $config "gpuResourceName" ((.Values.global).gpuResourceName | default "nvidia.com/gpu") }}
{{- end }}
{{- $agent := .Values.agent.image }}
{{- $_ := set $config "agentImage" (include "platform.image" (list . $agent.repository ($agent.tag | default .Chart.AppVersion))) }}
{{- toYaml $config }}
{{- end }}

{{/* Names by which the controller finds the objects of its webhooks. They are its defaults. */}}
{{- define "codeflare.names" -}}
mutatingWebhookConfigName: codeflare-mutating-webhook-configuration
validatingWebhookConfigName: codeflare-validating-webhook-configuration
webhookServiceName: codeflare-webhook-service
webhookSecretName: codeflare-webhook-server-cert
{{- end }}

{{/* Not empty if the webhooks are enabled. */}}
{{- define "codeflare.webhooks" -}}
{{- if ne (toString (.Values.config).webhooksEnabled) "false" }}true{{ end }}
{{- end }}

{{/* Not empty if cert-manager manages the webhook certificate. */}}
{{- define "codeflare.certManager" -}}
{{- if ((.Values.config).certManagement).certManager }}{{ include "codeflare.webhooks" . }}{{ end }}
{{- end }}

{{- define "codeflare.injectCA" -}}
{{- if include "codeflare.certManager" . -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/codeflare-webhook-server
{{- end }}
{{- end }}

{{/* Not empty if the controller manages the webhook certificate itself. */}}
{{- define "codeflare.rotates" -}}
{{- if not (include "codeflare.certManager" .) }}{{ include "codeflare.webhooks" . }}{{ end }}
{{- end }}
