{{/* What the shell in each container runs. */}}
{{- define "generator.script" -}}
echo "Set by the training operator:"
echo "  MASTER_ADDR:MASTER_PORT=${MASTER_ADDR}:${MASTER_PORT}"
echo "  PYTHONUNBUFFERED=${PYTHONUNBUFFERED}"
echo "  RANK=${RANK} WORLD_SIZE=${WORLD_SIZE}"
echo "Set by the settings file:"
echo "  NVME_MOUNT_PATH=${NVME_MOUNT_PATH}"
#
# From here on: the setup commands and the main program of the settings file.
#
{{- if include "generator.sakkara" . }}
echo "Sakkara: this pod's rank is ${SAKKARA_RANK}"
export RANK=$SAKKARA_RANK
{{- end }}
{{- if and .Values.setupCommands (ne .Values.stopOnSetupFailure false) }}
set -e
{{- end }}
{{- range .Values.setupCommands }}
{{ include "generator.plain" . | trimSuffix "\n" }}
{{- end }}
{{- with .Values.mainProgram }}
{{- $command := include "generator.torchrun" $ }}
echo {{ include "generator.shellQuote" (printf "executing: %s" $command) }}
{{ $command }}
{{- end }}
{{- end }}

{{/* The lines of a main program are one command. */}}
{{- define "generator.torchrun" -}}
{{- $program := regexReplaceAll "[ \\t]*\\\\?\\r?\\n[ \\t]*" (trim .Values.mainProgram) " \\\n  " -}}
torchrun --nnodes=${WORLD_SIZE} --node_rank=${RANK}
{{- with int .Values.numGpusPerPod }} --nproc_per_node={{ . }}{{ end }} --rdzv_id=101 --rdzv_endpoint="${MASTER_ADDR}:${MASTER_PORT}" {{ $program }}
{{- end }}

{{/* A text as one word of the shell, in which nothing is expanded. */}}
{{- define "generator.shellQuote" -}}
'{{ . | replace "'" "'\\''" }}'
{{- end }}
