{{/* Every entry of the list must have every key: (list root name-of-list key…) */}}
{{- define "generator.needAll" -}}
{{- $list := index . 1 }}
{{- $keys := slice . 2 }}
{{- range $i, $entry := index (first .).Values $list }}
{{- range $keys }}
{{- if not (get $entry .) }}
{{- fail (printf "entry %d of %s lacks %s" (add1 $i) $list .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* No two entries may have the same value of the key: (list entries key what advice) */}}
{{- define "generator.unique" -}}
{{- $seen := dict }}
{{- range first . }}
{{- $value := include "generator.plain" (get . (index $ 1)) }}
{{- if hasKey $seen $value }}
{{- fail (printf "%s %s twice: %s" (index $ 2) $value (index $ 3)) }}
{{- end }}
{{- $_ := set $seen $value true }}
{{- end }}
{{- end }}

{{- define "generator.checkEnvironment" -}}
{{- include "generator.needAll" (list . "environmentVariables" "name") }}
{{- range $variable := .Values.environmentVariables }}
{{- if and (eq .name "NCCL_TOPO_FILE") $.Values.topologyFileConfigMap }}
{{- fail "environmentVariables sets NCCL_TOPO_FILE, which topologyFileConfigMap also sets: remove one of them" }}
{{- end }}
{{- if not (or (hasKey . "value") .secret .configmap) }}
{{- fail (printf "environmentVariables: %s has no value, secret or configmap: set one of them" .name) }}
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
{{- include "generator.unique" (list (include "generator.env" . | fromYamlArray) "name" "the pods would have the variable" "list it once in environmentVariables, unless another setting already sets it") }}
{{- range $i, $source := .Values.envFrom }}
{{- if eq (empty .configMapRef) (empty .secretRef) }}
{{- fail (printf "entry %d of envFrom needs either configMapRef or secretRef" (add1 $i)) }}
{{- end }}
{{- if not (.configMapRef | default .secretRef).name }}
{{- fail (printf "entry %d of envFrom lacks name" (add1 $i)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "generator.checkVolumes" -}}
{{- include "generator.needAll" (list . "volumes" "name" "claimName" "mountPath") }}
{{- include "generator.needAll" (list . "extraVolumes" "name" "mountPath") }}
{{- range $i, $volume := .Values.extraVolumes }}
{{- $sources := omit . "name" "mountPath" "subPath" "readOnly" | keys | sortAlpha }}
{{- if ne (len $sources) 1 }}
{{- fail (printf "entry %d of extraVolumes has %d sources, but needs exactly one, such as emptyDir: {}" (add1 $i) (len $sources)) }}
{{- end }}
{{- end }}
{{- with .Values.sshGitCloneConfig }}
{{- range list "secretName" "configMapName" }}
{{- if not (get $.Values.sshGitCloneConfig .) }}
{{- fail (printf "sshGitCloneConfig lacks %s" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.mountNVMe }}
{{- if eq (include "generator.amount" .storage | float64) 0.0 }}
{{- fail "mountNVMe lacks storage: set the size of the volume" }}
{{- end }}
{{- end }}
{{- $mounts := include "generator.mounts" . | fromYamlArray }}
{{- include "generator.unique" (list $mounts "name" "the pods would have the volume" "give it another name") }}
{{- include "generator.unique" (list $mounts "mountPath" "the pods would mount something at" "give it another mountPath") }}
{{- end }}
