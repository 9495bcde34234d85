{{- define "generator.env" -}}
{{- if eq (include "generator.backend" .) "jobset" }}
{{- include "generator.rendezvous" . }}
{{- end }}
{{- if include "generator.sakkara" . }}
- name: SAKKARA_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['sakkara.member.rank']
{{- end }}
{{- if .Values.topologyFileConfigMap }}
- name: NCCL_TOPO_FILE
  value: /var/run/nvidia-topologyd/virtualTopology.xml
{{- end }}
{{- with .Values.mountNVMe }}
- name: NVME_MOUNT_PATH
  value: {{ .mountPath | default "/workspace/scratch-nvme" | quote }}
{{- end }}
{{- range .Values.environmentVariables }}
- name: {{ quote .name }}
  {{- /* A secret or a configmap replaces an empty value. */}}
  {{- if or (include "generator.plain" .value) (not (or .secret .configmap)) }}
  value: {{ include "generator.text" .value }}
  {{- else if .secret }}
  valueFrom:
    secretKeyRef:
      name: {{ quote .secret.name }}
      key: {{ quote .secret.key }}
  {{- else }}
  valueFrom:
    configMapKeyRef:
      name: {{ quote .configmap.name }}
      key: {{ quote .configmap.key }}
  {{- end }}
{{- end }}
{{- with .Values.sshGitCloneConfig }}
- name: GIT_SSH_COMMAND
  value: {{ .sshCmd | default (printf "ssh -i %s/id_rsa -o UserKnownHostsFile=%s/known_hosts -vv" (include "generator.sshKeys" .) (include "generator.sshHosts" .)) | quote }}
{{- end }}
{{- end }}

{{/* The variables that the training operator sets for the pods of a PyTorchJob. */}}
{{- define "generator.rendezvous" }}
- name: MASTER_ADDR
  value: {{ printf "%s-node-0-0.%s" .Values.jobName .Values.jobName | quote }}
- name: MASTER_PORT
  value: "23456"
- name: WORLD_SIZE
  value: {{ int .Values.numPods | quote }}
- name: RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
{{- $unbuffered := "1" }}
{{- range .Values.environmentVariables }}
{{- if eq .name "PYTHONUNBUFFERED" }}
{{- $unbuffered = "" }}
{{- end }}
{{- end }}
{{- with $unbuffered }}
- name: PYTHONUNBUFFERED
  value: {{ quote . }}
{{- end }}
{{- end }}
