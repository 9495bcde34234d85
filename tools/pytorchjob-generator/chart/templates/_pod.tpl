{{/* The template of every pod of the job, master and workers alike. */}}
{{- define "generator.pod" -}}
{{- $meta := include "generator.podMetadata" . }}
{{- with $meta | trim }}
metadata:
  {{- . | nindent 2 }}
{{- end }}
spec:
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
        {{- range kindIs "slice" .command | ternary .command (list "sh" "-c" .command) }}
        - {{ include "generator.text" . }}
        {{- end }}
    {{- end }}
  {{- end }}
  {{- if not (kindIs "invalid" .Values.terminationGracePeriodSeconds) }}
  terminationGracePeriodSeconds: {{ int64 .Values.terminationGracePeriodSeconds }}
  {{- end }}
  {{- with .Values.schedulerName }}
  schedulerName: {{ quote . }}
  {{- end }}
  priorityClassName: {{ .Values.priority | default "default-priority" }}
  {{- with include "generator.nodes" . | trim }}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions:
              {{- . | nindent 14 }}
  {{- end }}
  {{- $volumes := include "generator.volumes" . | trim }}
  volumes:{{ if not $volumes }} []{{ end }}
    {{- with $volumes }}
    {{- . | nindent 4 }}
    {{- end }}
  containers:
    - name: pytorch
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
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $env := include "generator.env" . | trim }}
      env:{{ if not $env }} []{{ end }}
        {{- with $env }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- $mounts := include "generator.mounts" . | trim }}
      volumeMounts:{{ if not $mounts }} []{{ end }}
        {{- with $mounts }}
        {{- . | nindent 8 }}
        {{- end }}
      resources:
        {{- include "generator.resources" . | trim | nindent 8 }}
      command:
        - sh
        - -c
        - |
          {{- include "generator.script" . | trim | nindent 10 }}
{{- end }}

{{- define "generator.podMetadata" -}}
{{- if or .Values.customLabels .Values.autopilotHealthChecks }}
labels:
  {{- with include "generator.labels" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .Values.autopilotHealthChecks }}
  autopilot: ""
  {{- range . }}
  {{ include "generator.text" . }}: ""
  {{- end }}
  {{- end }}
{{- end }}
{{- with .Values.multiNicNetworkName }}
annotations:
  k8s.v1.cni.cncf.io/networks: {{ quote . }}
{{- end }}
{{- end }}

{{/* Which nodes not to run on. The health of GPUs matters to jobs that have some. */}}
{{- define "generator.nodes" -}}
{{- if gt (int .Values.numGpusPerPod) 0 }}
- key: autopilot.ibm.com/gpuhealth
  operator: NotIn
  values:
    - ERR
    - TESTING
    - EVICT
{{- end }}
{{- with .Values.hostIgnoreList }}
- key: kubernetes.io/hostname
  operator: NotIn
  values:
    {{- range . }}
    - {{ include "generator.text" . }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "generator.resources" -}}
{{- $gpus := int64 .Values.numGpusPerPod }}
{{- $rdma := int64 .Values.numRoceGdr }}
{{- $rdmaName := .Values.roceGdrResName | default "nvidia.com/roce_gdr" }}
{{- $limits := dict "cpu" .Values.limitCpusPerPod "memory" .Values.limitMemoryPerPod }}
{{- $requests := dict "cpu" .Values.numCpusPerPod "memory" .Values.totalMemoryPerPod }}
{{- range $side := list "requests" "limits" }}
{{ $side }}:
  {{- range $resource := list "cpu" "memory" }}
  {{- $limit := get $limits $resource }}
  {{- $limited := and (eq $side "limits") $limit (ne (toString $limit) "0") }}
  {{ $resource }}: {{ include "generator.text" (ternary $limit (get $requests $resource) (not (empty $limited))) }}
  {{- end }}
  {{- if or $gpus $.Values.emitZeroResources }}
  nvidia.com/gpu: {{ $gpus }}
  {{- end }}
  {{- if or $rdma $.Values.emitZeroResources }}
  {{ quote $rdmaName }}: {{ $rdma }}
  {{- end }}
{{- end }}
{{- end }}
