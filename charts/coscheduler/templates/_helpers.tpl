{{/* Selector labels of a component: (list root component) */}}
{{- define "coscheduler.selector" -}}
app.kubernetes.io/name: coscheduler
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "coscheduler.labels" -}}
{{ include "coscheduler.selector" . }}
app.kubernetes.io/part-of: mlbatch
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{ include "platform.release" (index . 0) }}
{{- end }}

{{/*
The reference of an image: (list root image name). Packaging writes files/tags.yaml: for each image, the tags
by the minor version of Kubernetes, and the default.
*/}}
{{- define "coscheduler.image" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- $tags := get ($root.Files.Get "files/tags.yaml" | fromYaml) (index . 2) }}
{{- $kubernetes := printf "%s.%s" $root.Capabilities.KubeVersion.Major (regexFind "^[0-9]+" $root.Capabilities.KubeVersion.Minor) }}
{{- include "platform.image" (list $root $image.repository ($image.tag | default (get $tags $kubernetes) | default $tags.default)) }}
{{- end }}

{{/* Pod settings shared by both components. */}}
{{- define "coscheduler.pod" -}}
{{- with include "platform.pullSecrets" (list . .Values.imagePullSecrets) | fromYamlArray }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .Values.runAsUser }}
  runAsUser: {{ . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- if .Values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "coscheduler.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end }}

{{/* The resource by which pods are packed. Empty for none, and if the section is null. */}}
{{- define "coscheduler.packing" -}}
{{- if kindIs "map" .Values.packing }}
{{- $own := .Values.packing.resourceName }}
{{- if kindIs "string" $own }}{{ $own }}{{ else }}{{ (.Values.global).gpuResourceName }}{{ end }}
{{- end }}
{{- end }}

{{- define "coscheduler.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
# Even of one replica there may be two pods, if a node cannot be reached. Two schedulers with the same
# name would each hold nodes for half a group.
leaderElection:
  leaderElect: true
  resourceName: {{ quote .Values.scheduler.name }}
  resourceNamespace: {{ .Release.Namespace }}
clientConnection:
  qps: {{ .Values.scheduler.clientConnection.qps }}
  burst: {{ .Values.scheduler.clientConnection.burst }}
profiles:
  - schedulerName: {{ quote .Values.scheduler.name }}
    plugins:
      multiPoint:
        enabled:
          - name: Coscheduling
      # A scheduler has exactly one queueSort plugin; Coscheduling's sorts by group.
      queueSort:
        enabled:
          - name: Coscheduling
        disabled:
          - name: "*"
    pluginConfig:
      - name: Coscheduling
        args:
          permitWaitingTimeSeconds: {{ .Values.permitWaitingTimeSeconds }}
      {{- with include "coscheduler.packing" . }}
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources:
              - name: {{ quote . }}
                weight: 1
            requestedToCapacityRatio:
              shape:
                - utilization: 0
                  score: 0
                - utilization: 100
                  score: 10
      {{- end }}
      {{- with .Values.scheduler.pluginConfig }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}
