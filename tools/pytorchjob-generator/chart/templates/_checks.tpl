{{/*
Renders nothing; says in a sentence what is wrong with the settings. Types,
unknown keys and allowed words are values.schema.json's.
*/}}
{{- define "generator.check" -}}
{{- $name := .Values.jobName | default "" }}
{{- if not $name }}
{{- fail "jobName is missing: every job needs a name" }}
{{- end }}
{{- if gt (len $name) 50 }}
{{- fail (printf "jobName %q has %d characters; at most 50 are allowed, so that the names of its pods fit" $name (len $name)) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "jobName %q must start with a lower-case letter, end with a letter or digit, and have only lower-case letters, digits and dashes" $name) }}
{{- end }}
{{- if not .Values.containerImage }}
{{- fail "containerImage is missing: which image has the program?" }}
{{- end }}

{{- range list "numPods" "numCpusPerPod" "totalMemoryPerPod" }}
{{- if kindIs "invalid" (index $.Values .) }}
{{- fail (printf "%s is empty: say how much, or leave it out for the default" .) }}
{{- end }}
{{- end }}
{{- if and (eq (int .Values.numPods) 1) (gt (int .Values.numRoceGdr) 0) }}
{{- fail (printf "numRoceGdr is %d, but a job of one pod has nobody to talk to over RDMA: set it to 0 or numPods to 2 or more" (int .Values.numRoceGdr)) }}
{{- end }}
{{- if not (kindIs "invalid" .Values.limitGpusPerPod) }}
{{- if ne (int .Values.limitGpusPerPod) (int .Values.numGpusPerPod) }}
{{- fail (printf "limitGpusPerPod is %d and numGpusPerPod %d, but GPUs cannot be overcommitted: make them equal or leave limitGpusPerPod out" (int .Values.limitGpusPerPod) (int .Values.numGpusPerPod)) }}
{{- end }}
{{- end }}

{{- range $i, $label := .Values.customLabels }}
{{- include "generator.checkLabel" (list $i $label) }}
{{- end }}
{{- include "generator.checkEnvironment" . }}
{{- range $i, $_ := .Values.volumes }}
{{- include "generator.need" (list "volumes" $i . "name" "claimName" "mountPath") }}
{{- end }}
{{- range $i, $_ := .Values.initContainers }}
{{- include "generator.need" (list "initContainers" $i . "name" "image" "command") }}
{{- end }}
{{- with .Values.sshGitCloneConfig }}
{{- range list "secretName" "configMapName" }}
{{- if not (get $.Values.sshGitCloneConfig .) }}
{{- fail (printf "sshGitCloneConfig lacks %s" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.mountNVMe }}
{{- if not .storage }}
{{- fail "mountNVMe lacks storage: how large shall the volume be?" }}
{{- end }}
{{- end }}
{{- end }}

{{/* (list list-name index entry key…): every key of the entry is set. */}}
{{- define "generator.need" -}}
{{- $list := index . 0 }}
{{- $position := add1 (index . 1) }}
{{- $entry := index . 2 }}
{{- range slice . 3 }}
{{- if not (get $entry .) }}
{{- fail (printf "entry %d of %s lacks %s" $position $list .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "generator.checkEnvironment" -}}
{{- range $i, $variable := .Values.environmentVariables }}
{{- include "generator.need" (list "environmentVariables" $i . "name") }}
{{- if and (eq .name "NCCL_TOPO_FILE") $.Values.topologyFileConfigMap }}
{{- fail "environmentVariables sets NCCL_TOPO_FILE, which topologyFileConfigMap sets too: leave one of them out" }}
{{- end }}
{{- if not (or (hasKey . "value") .secret .configmap) }}
{{- fail (printf "environmentVariables: %s has neither a value nor a secret nor a configmap to take it from" .name) }}
{{- end }}
{{- range $source := list "secret" "configmap" }}
{{- with get $variable $source }}
{{- range $key := list "name" "key" }}
{{- if not (get (get $variable $source) $key) }}
{{- fail (printf "environmentVariables: the %s of %s lacks %s" $source $variable.name $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels as Kubernetes allows them: (list index label) */}}
{{- define "generator.checkLabel" -}}
{{- $label := index . 1 }}
{{- include "generator.need" (list "customLabels" (index . 0) $label "key") }}
{{- $key := include "generator.plain" $label.key }}
{{- $parts := splitList "/" $key }}
{{- $name := last $parts }}
{{- if gt (len $parts) 2 }}
{{- fail (printf "customLabels: the key %q has more than one slash" $key) }}
{{- end }}
{{- if eq (len $parts) 2 }}
{{- $prefix := first $parts }}
{{- if gt (len $prefix) 253 }}
{{- fail (printf "customLabels: the part before the slash of key %q has %d characters; at most 253 are allowed" $key (len $prefix)) }}
{{- end }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $prefix) }}
{{- fail (printf "customLabels: the part before the slash of key %q must be a domain name in lower case" $key) }}
{{- end }}
{{- end }}
{{- if gt (len $name) 63 }}
{{- fail (printf "customLabels: the name in key %q has %d characters; at most 63 are allowed" $key (len $name)) }}
{{- end }}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$" $name) }}
{{- fail (printf "customLabels: the name in key %q must begin and end with a letter or digit and have only letters, digits, dashes, underscores and dots" $key) }}
{{- end }}
{{- if not (hasKey $label "value") }}
{{- fail (printf "customLabels: %s has no value" $key) }}
{{- end }}
{{- $value := include "generator.plain" $label.value }}
{{- if gt (len $value) 63 }}
{{- fail (printf "customLabels: the value of %s has %d characters; at most 63 are allowed" $key (len $value)) }}
{{- end }}
{{- if not (regexMatch "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$" $value) }}
{{- fail (printf "customLabels: the value %q of %s must begin and end with a letter or digit and have only letters, digits, dashes, underscores and dots" $value $key) }}
{{- end }}
{{- end }}
