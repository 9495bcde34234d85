{{- define "generator.env" -}}
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
  {{- /* A value that is left empty gives way to a secret or a configmap. */}}
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

{{- define "generator.sshKeys" -}}
{{ .secretMountPath | default "/tmp/.ssh/keys" }}
{{- end }}

{{- define "generator.sshHosts" -}}
{{ .configMapMountPath | default "/tmp/.ssh/hosts" }}
{{- end }}

{{/* Volumes and mounts come in the same order. */}}
{{- define "generator.volumes" -}}
{{- with .Values.topologyFileConfigMap }}
- name: topology-volume
  configMap:
    name: {{ quote . }}
{{- end }}
{{- with .Values.mountNVMe }}
- name: ephemeral-odf-lvm-vg1
  ephemeral:
    volumeClaimTemplate:
      spec:
        storageClassName: {{ .storageClassName | default "odf-lvm-vg1" | quote }}
        volumeMode: Filesystem
        accessModes:
          - ReadWriteOnce
        resources:
          requests:
            storage: {{ include "generator.text" .storage }}
{{- end }}
{{- range .Values.volumes }}
- name: {{ quote .name }}
  persistentVolumeClaim:
    claimName: {{ quote .claimName }}
{{- end }}
{{- with .Values.sshGitCloneConfig }}
- name: private-ssh-git-deploy-key
  secret:
    secretName: {{ quote .secretName }}
    optional: false
- name: github-known-hosts
  configMap:
    name: {{ quote .configMapName }}
{{- end }}
{{- if not .Values.disableSharedMemory }}
- name: dshm
  emptyDir:
    medium: Memory
{{- end }}
{{- end }}

{{- define "generator.mounts" -}}
{{- if .Values.topologyFileConfigMap }}
- name: topology-volume
  mountPath: /var/run/nvidia-topologyd
{{- end }}
{{- with .Values.mountNVMe }}
- name: ephemeral-odf-lvm-vg1
  mountPath: {{ .mountPath | default "/workspace/scratch-nvme" | quote }}
{{- end }}
{{- range .Values.volumes }}
- name: {{ quote .name }}
  mountPath: {{ quote .mountPath }}
{{- end }}
{{- with .Values.sshGitCloneConfig }}
- name: private-ssh-git-deploy-key
  readOnly: true
  mountPath: {{ include "generator.sshKeys" . | quote }}
- name: github-known-hosts
  mountPath: {{ include "generator.sshHosts" . | quote }}
{{- end }}
{{- if not .Values.disableSharedMemory }}
- name: dshm
  mountPath: /dev/shm
{{- end }}
{{- end }}
