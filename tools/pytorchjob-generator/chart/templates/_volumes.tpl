{{/* Volumes and mounts are in the same order. */}}
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
{{- range .Values.extraVolumes }}
- {{ omit . "mountPath" "subPath" "readOnly" | toYaml | nindent 2 | trim }}
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
{{- range .Values.extraVolumes }}
- name: {{ quote .name }}
  mountPath: {{ quote .mountPath }}
  {{- with .subPath }}
  subPath: {{ quote . }}
  {{- end }}
  {{- if .readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}

{{- define "generator.sshKeys" -}}
{{ .secretMountPath | default "/tmp/.ssh/keys" }}
{{- end }}

{{- define "generator.sshHosts" -}}
{{ .configMapMountPath | default "/tmp/.ssh/hosts" }}
{{- end }}
