{{/*
Object names are fixed, whatever the release is called: Kueue, dashboards and
scripts know them, and the mutating webhook configuration has to sort before
Kueue's, so that Kueue sees the queue that we default.
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
{{- end }}

{{- define "appwrapper.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/*
The configuration file. As a part of the platform it says how nodes are marked on which
the platform's accelerators are unhealthy; alone, the controller knows NVIDIA's.
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

{{/* What Autopilot's labels mean; the controller's own default is the same. */}}
{{- define "appwrapper.unhealthy" -}}
- {key: autopilot.ibm.com/gpuhealth, value: WARN, effect: PreferNoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: ERR, effect: NoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: TESTING, effect: NoSchedule}
- {key: autopilot.ibm.com/gpuhealth, value: EVICT, effect: NoExecute}
{{- end }}

{{/* Not empty where the webhooks are served. */}}
{{- define "appwrapper.webhooks" -}}
{{- if ne (toString (.Values.config).webhooksEnabled) "false" }}true{{ end }}
{{- end }}

{{/* Not empty where cert-manager keeps their certificate. */}}
{{- define "appwrapper.certManager" -}}
{{- if ((.Values.config).certManagement).certManager }}{{ include "appwrapper.webhooks" . }}{{ end }}
{{- end }}

{{- define "appwrapper.injectCA" -}}
{{- if include "appwrapper.certManager" . -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/appwrapper-webhook-server
{{- end }}
{{- end }}

{{/* Not empty where the controller does. */}}
{{- define "appwrapper.rotates" -}}
{{- if not (include "appwrapper.certManager" .) }}{{ include "appwrapper.webhooks" . }}{{ end }}
{{- end }}

{{/*
An AppWrapper that is being deleted must lose its finalizer even while no controller
answers. What the controller itself changes needs no judgement of its own.
*/}}
{{- define "appwrapper.matchConditions" -}}
- name: not-being-deleted
  expression: request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)
- name: not-by-the-controller
  expression: request.userInfo.username != 'system:serviceaccount:{{ .Release.Namespace }}:appwrapper-controller-manager'
{{- end }}
