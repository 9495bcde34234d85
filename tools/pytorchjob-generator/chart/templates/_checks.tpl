{{/*
Renders nothing. Fails with a sentence if the settings are wrong. values.schema.json
checks types, unknown keys, patterns and enums.
*/}}
{{- define "generator.check" -}}
{{- include "generator.checkJob" . }}
{{- include "generator.checkResources" . }}
{{- include "generator.checkPlacement" . }}
{{- include "generator.checkLabels" . }}
{{- include "generator.checkEnvironment" . }}
{{- include "generator.checkVolumes" . }}
{{- include "generator.needAll" (list . "initContainers" "name" "image" "command") }}
{{- include "generator.unique" (list .Values.initContainers "name" "initContainers has the name" "give each container its own name") }}
{{- include "generator.unique" (list .Values.imagePullSecrets "name" "imagePullSecrets has" "list it once") }}
{{- range .Values.initContainers }}
{{- if eq .name "pytorch" }}
{{- fail "initContainers has the name pytorch, which belongs to the job's own container: choose another" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "generator.checkJob" -}}
{{- if kindIs "bool" .Values.jobName }}
{{- fail (printf "jobName is %v, and not a text: put it in quotes" .Values.jobName) }}
{{- end }}
{{- $name := .Values.jobName | default "" | include "generator.plain" }}
{{- if not $name }}
{{- fail "jobName is missing: set the name of the job" }}
{{- end }}
{{- if gt (len $name) 50 }}
{{- fail (printf "jobName %q has %d characters, but at most 50 are allowed, so that its pod names fit" $name (len $name)) }}
{{- end }}
{{- if eq (include "generator.backend" .) "jobset" }}
{{- $lastPod := printf "%s-node-0-%d-abcde" $name (sub (int .Values.numPods) 1) }}
{{- if gt (len $lastPod) 63 }}
{{- fail (printf "jobName %q has %d characters, but at most %d are allowed for a JobSet with numPods %d, so that its pod names fit" $name (len $name) (sub 63 (sub (len $lastPod) (len $name))) (int .Values.numPods)) }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "jobName %q must start with a lower-case letter, end with a letter or digit, and contain only lower-case letters, digits and dashes" $name) }}
{{- end }}
{{- if not .Values.containerImage }}
{{- fail "containerImage is missing: set the image that has the program" }}
{{- end }}
{{- if and (eq (include "generator.backend" .) "jobset") (eq (.Values.restartPolicy | default "Never") "Always") }}
{{- fail "restartPolicy is Always, but the pods of a JobSet must terminate: set it to Never or OnFailure" }}
{{- end }}
{{- end }}

{{- define "generator.checkResources" -}}
{{- range list "numPods" "numCpusPerPod" "totalMemoryPerPod" }}
{{- if kindIs "invalid" (index $.Values .) }}
{{- fail (printf "%s is empty: set an amount, or remove it to use the default" .) }}
{{- end }}
{{- if eq (include "generator.amount" (index $.Values .) | float64) 0.0 }}
{{- fail (printf "%s is %s, but must be more than 0: raise it, or remove it to use the default" . (include "generator.plain" (index $.Values .))) }}
{{- end }}
{{- end }}
{{- range $request, $limit := dict "numCpusPerPod" "limitCpusPerPod" "totalMemoryPerPod" "limitMemoryPerPod" }}
{{- $asked := get $.Values $request }}
{{- $most := get $.Values $limit }}
{{- $number := include "generator.amount" $most | float64 }}
{{- if and $number (lt $number (include "generator.amount" $asked | float64)) }}
{{- fail (printf "%s is %s, less than %s, which is %s: raise it or remove it" $limit (include "generator.plain" $most) $request (include "generator.plain" $asked)) }}
{{- end }}
{{- end }}
{{- $gpus := int .Values.numGpusPerPod }}
{{- $rdma := int .Values.numRoceGdr }}
{{- if and (eq (int .Values.numPods) 1) (gt $rdma 0) }}
{{- fail (printf "numRoceGdr is %d, but a job with one pod cannot use RDMA: set numRoceGdr to 0, or numPods to 2 or more" $rdma) }}
{{- end }}
{{- if not (kindIs "invalid" .Values.limitGpusPerPod) }}
{{- if ne (int .Values.limitGpusPerPod) $gpus }}
{{- fail (printf "limitGpusPerPod is %d and numGpusPerPod is %d, but GPUs cannot be overcommitted: set them to the same number, or remove limitGpusPerPod" (int .Values.limitGpusPerPod) $gpus) }}
{{- end }}
{{- end }}
{{- if eq (include "generator.gpuName" .) (include "generator.rdmaName" .) }}
{{- fail (printf "resources.gpu.resourceName and roceGdrResName are both %s: GPUs and RDMA interfaces must have different names" (include "generator.gpuName" .)) }}
{{- end }}
{{- end }}

{{- define "generator.checkPlacement" -}}
{{- with .Values.topology }}
{{- if and .required .preferred }}
{{- fail "topology has both required and preferred: remove one of them" }}
{{- end }}
{{- if not (or .required .preferred) }}
{{- fail "topology has neither required nor preferred: set one of them to a topology level, such as cloud.provider.com/topology-rack" }}
{{- end }}
{{- include "generator.checkLabel" (list "topology" (.required | default .preferred) "") }}
{{- end }}
{{- range $key, $value := .Values.nodeSelector }}
{{- include "generator.checkLabel" (list "nodeSelector" $key $value) }}
{{- end }}
{{- range $key, $values := .Values.unhealthyNodes }}
{{- range $values }}
{{- include "generator.checkLabel" (list "unhealthyNodes" $key .) }}
{{- end }}
{{- end }}
{{- range .Values.hostIgnoreList }}
{{- include "generator.checkLabel" (list "hostIgnoreList" "kubernetes.io/hostname" .) }}
{{- end }}
{{- range $i, $toleration := .Values.tolerations }}
{{- if not (or .key (eq (.operator | default "") "Exists")) }}
{{- fail (printf "entry %d of tolerations has no key: set one, or set the operator Exists to tolerate every taint" (add1 $i)) }}
{{- end }}
{{- if and (eq (.operator | default "") "Exists") (include "generator.plain" .value) }}
{{- fail (printf "entry %d of tolerations has a value, which the operator Exists ignores: remove the value or the operator" (add1 $i)) }}
{{- end }}
{{- if and (not (kindIs "invalid" .tolerationSeconds)) (ne (.effect | default "") "NoExecute") }}
{{- fail (printf "entry %d of tolerations has tolerationSeconds, which needs the effect NoExecute" (add1 $i)) }}
{{- end }}
{{- with .key }}
{{- include "generator.checkLabel" (list "tolerations" . $toleration.value) }}
{{- end }}
{{- end }}
{{- end }}
