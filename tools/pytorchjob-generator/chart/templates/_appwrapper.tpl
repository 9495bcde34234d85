{{/* The author's settings for the controller. */}}
{{- define "generator.annotations" -}}
workload.codeflare.dev.mlbatch/pytorchGeneratorVersion: {{ .Chart.Version | quote }}
{{- range $period := list "admissionGracePeriodDuration" "warmupGracePeriodDuration" "initGracePeriodDuration" "failureGracePeriodDuration" "retryPausePeriodDuration" "forcefulDeletionGracePeriodDuration" "deletionOnFailureGracePeriodDuration" "successTTLDuration" }}
{{- with get $.Values $period }}
workload.codeflare.dev.appwrapper/{{ $period }}: {{ include "generator.duration" . }}
{{- end }}
{{- end }}
{{- with .Values.progress }}
workload.codeflare.dev.appwrapper/noProgressGracePeriodDuration: {{ include "generator.duration" (.gracePeriod | default "10m") }}
{{- end }}
{{- if not (kindIs "invalid" .Values.retryLimit) }}
workload.codeflare.dev.appwrapper/retryLimit: {{ .Values.retryLimit | int64 | toString | quote }}
{{- end }}
{{- range $codes := list "terminalExitCodes" "retryableExitCodes" }}
{{- with get $.Values $codes }}
workload.codeflare.dev.appwrapper/{{ $codes }}: {{ join "," . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that Kueue reads, and the author's labels. */}}
{{- define "generator.queueing" -}}
{{- with .Values.queueName }}
kueue.x-k8s.io/queue-name: {{ quote . }}
{{- end }}
{{- with .Values.workloadPriorityClass }}
kueue.x-k8s.io/priority-class: {{ quote . }}
{{- end }}
{{- include "generator.labels" . }}
{{- end }}

{{- define "generator.labels" -}}
{{- range .Values.customLabels }}
{{ include "generator.text" .key }}: {{ include "generator.text" .value }}
{{- end }}
{{- end }}

{{/* Which operator creates the pods: the template of that name renders its object. */}}
{{- define "generator.backend" -}}
{{ .Values.backend | default "pytorchjob" }}
{{- end }}

{{- define "generator.pytorchjob" -}}
apiVersion: kubeflow.org/v1
kind: PyTorchJob
{{- include "generator.objectMetadata" . }}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: {{ .Values.restartPolicy | default "Never" }}
      template:
        {{- include "generator.pod" . | trim | nindent 8 }}
    {{- with sub (int .Values.numPods) 1 }}
    Worker:
      replicas: {{ . }}
      restartPolicy: {{ $.Values.restartPolicy | default "Never" }}
      template:
        {{- include "generator.pod" $ | trim | nindent 8 }}
    {{- end }}
{{- end }}

{{/*
One indexed Job. A failed pod fails the Job, because the AppWrapper controller does the
retries. With restartPolicy OnFailure, the number of restarts is not limited.
*/}}
{{- define "generator.jobset" -}}
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
{{- include "generator.objectMetadata" . }}
spec:
  replicatedJobs:
    - name: node
      replicas: 1
      template:
        spec:
          parallelism: {{ int .Values.numPods }}
          completions: {{ int .Values.numPods }}
          completionMode: Indexed
          backoffLimit: {{ eq (.Values.restartPolicy | default "Never") "OnFailure" | ternary 2147483647 0 }}
          template:
            {{- include "generator.pod" . | trim | nindent 12 }}
{{- end }}

{{- define "generator.podGroup" -}}
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: {{ include "generator.podGroupName" . | quote }}
spec:
  minMember: {{ int .Values.numPods }}
{{- end }}

{{/* Nothing else creates a PodGroup for the pods of a JobSet. */}}
{{- define "generator.hasPodGroup" -}}
{{- $jobSet := and (eq (include "generator.backend" .) "jobset") (gt (int .Values.numPods) 1) }}
{{- if kindIs "invalid" .Values.podGroup | ternary $jobSet .Values.podGroup }}true{{ end }}
{{- end }}

{{/* Differs from the job's name, which the training operator uses for its own PodGroup. */}}
{{- define "generator.podGroupName" -}}
{{ .Values.jobName }}-gang
{{- end }}

{{- define "generator.objectMetadata" }}
metadata:
  name: {{ quote .Values.jobName }}
  {{- with .Values.customLabels }}
  labels:
    {{- include "generator.labels" $ | trim | nindent 4 }}
  {{- end }}
{{- end }}
