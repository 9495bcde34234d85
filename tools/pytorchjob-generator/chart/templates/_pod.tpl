{{/* The template of every pod of the job, master and workers. */}}
{{- define "generator.pod" -}}
{{- with include "generator.podMetadata" . | trim }}
metadata:
  {{- . | nindent 2 }}
{{- end }}
spec:
  {{- if eq (include "generator.backend" .) "jobset" }}
  restartPolicy: {{ .Values.restartPolicy | default "Never" }}
  {{- end }}
  {{- with .Values.serviceAccountName }}
  serviceAccountName: {{ quote . }}
  {{- end }}
  imagePullSecrets:{{ if not .Values.imagePullSecrets }} []{{ end }}
    {{- range .Values.imagePullSecrets }}
    - name: {{ quote .name }}
    {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- range . }}
    - name: {{ quote .name }}
      image: {{ quote .image }}
      command:
        {{- range kindIs "slice" .command | ternary .command (include "generator.plain" .command | include "generator.expanded" | list "sh" "-c") }}
        - {{ include "generator.text" . }}
        {{- end }}
    {{- end }}
  {{- end }}
  {{- if not (kindIs "invalid" .Values.terminationGracePeriodSeconds) }}
  terminationGracePeriodSeconds: {{ int64 .Values.terminationGracePeriodSeconds }}
  {{- end }}
  {{- include "generator.placement" . }}
  {{- $volumes := include "generator.volumes" . | trim }}
  volumes:{{ if not $volumes }} []{{ end }}
    {{- with $volumes }}
    {{- . | nindent 4 }}
    {{- end }}
  containers:
    - name: pytorch
      {{- include "generator.container" . | trim | nindent 6 }}
{{- end }}

{{- define "generator.container" -}}
image: {{ quote .Values.containerImage }}
imagePullPolicy: {{ .Values.imagePullPolicy | default "IfNotPresent" }}
{{- if or (gt (int .Values.numRoceGdr) 0) (eq (.Values.serviceAccountName | default "") "gdr") }}
securityContext:
  capabilities:
    add:
      - IPC_LOCK
{{- end }}
{{- $envFrom := .Values.envFrom | default list }}
{{- with .Values.ncclGdrEnvConfigMap }}
{{- $envFrom = append $envFrom (dict "configMapRef" (dict "name" .)) }}
{{- end }}
{{- with $envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $env := include "generator.env" . | trim }}
env:{{ if not $env }} []{{ end }}
  {{- with $env }}
  {{- . | nindent 2 }}
  {{- end }}
{{- $mounts := include "generator.mounts" . | trim }}
volumeMounts:{{ if not $mounts }} []{{ end }}
  {{- with $mounts }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with .Values.progress }}
readinessProbe:
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 1
  exec:
    command:
      - sh
      - -c
      - test ! -e {{ .file }} || test "$(( $(date +%s) - $(stat -c %Y {{ .file }}) ))" -lt 30
{{- end }}
resources:
  {{- include "generator.resources" . | trim | nindent 2 }}
command:
  - sh
  - -c
  - {{ include "generator.lines" (include "generator.script" . | include "generator.expanded") | nindent 4 | trim }}
{{- end }}

{{- define "generator.podMetadata" -}}
{{- with include "generator.podLabels" . | trim }}
labels:
  {{- . | nindent 2 }}
{{- end }}
{{- with include "generator.podAnnotations" . | trim }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "generator.podLabels" -}}
{{- if include "generator.hasPodGroup" . }}
scheduling.x-k8s.io/pod-group: {{ include "generator.podGroupName" . | quote }}
{{- end }}
{{- include "generator.labels" . }}
{{- with .Values.autopilotHealthChecks }}
autopilot: ""
{{- range . }}
{{ include "generator.text" . }}: ""
{{- end }}
{{- end }}
{{- end }}

{{/* Kueue sees master and workers as two pod sets. The group name places them together. */}}
{{- define "generator.podAnnotations" -}}
{{- with .Values.multiNicNetworkName }}
k8s.v1.cni.cncf.io/networks: {{ quote . }}
{{- end }}
{{- with .Values.topology }}
{{- with .required }}
kueue.x-k8s.io/podset-required-topology: {{ quote . }}
{{- end }}
{{- with .preferred }}
kueue.x-k8s.io/podset-preferred-topology: {{ quote . }}
{{- end }}
{{- if and (gt (int $.Values.numPods) 1) (eq (include "generator.backend" $) "pytorchjob") }}
kueue.x-k8s.io/podset-group-name: pods
{{- end }}
{{- end }}
{{- end }}

{{- define "generator.resources" -}}
{{- $limits := dict "cpu" .Values.limitCpusPerPod "memory" .Values.limitMemoryPerPod }}
{{- $requests := dict "cpu" .Values.numCpusPerPod "memory" .Values.totalMemoryPerPod }}
{{- range $side := list "requests" "limits" }}
{{ $side }}:
  {{- range $resource := list "cpu" "memory" }}
  {{- $asked := get $requests $resource }}
  {{- $limit := get $limits $resource }}
  {{- $limited := and (eq $side "limits") (include "generator.amount" $limit | float64 | ne 0.0) }}
  {{ $resource }}: {{ $limited | ternary $limit $asked | include "generator.text" }}
  {{- end }}
  {{- range $device := list (list (include "generator.gpuName" $) $.Values.numGpusPerPod) (list (include "generator.rdmaName" $) $.Values.numRoceGdr) }}
  {{- if or (gt (int (last $device)) 0) $.Values.emitZeroResources }}
  {{ first $device }}: {{ last $device | int64 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "generator.gpuName" -}}
{{ (((.Values.resources).gpu).resourceName) | default "nvidia.com/gpu" }}
{{- end }}

{{- define "generator.rdmaName" -}}
{{ .Values.roceGdrResName | default "nvidia.com/roce_gdr" }}
{{- end }}
