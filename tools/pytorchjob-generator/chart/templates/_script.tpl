{{/* The script that the shell in each container runs. */}}
{{- define "generator.script" -}}
{{- with .Values.progress -}}
rm -f {{ .file }}
{{ end -}}
echo "Set by the {{ eq (include "generator.backend" .) "jobset" | ternary "JobSet" "training operator" }}:"
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
(set -o pipefail) 2>/dev/null && set -o pipefail
{{- end }}
{{- range .Values.setupCommands }}
{{ include "generator.plain" . | replace "\r\n" "\n" | trimSuffix "\n" }}
{{- end }}
{{- if .Values.mainProgram | default "" | trim }}
{{- include "generator.setupHasEnded" . }}
{{- $command := include "generator.torchrun" . }}
echo {{ include "generator.shellQuote" (printf "executing: %s" $command) }}
{{ $command }}
{{- end }}
{{- end }}

{{/* Resets the shell options of the setup for the main program, unless the author sets them. */}}
{{- define "generator.setupHasEnded" -}}
{{- if and .Values.setupCommands (ne .Values.stopOnSetupFailure false) }}
{{- $setup := toRawJson .Values.setupCommands }}
{{- if not (regexMatch `\bset +(-\w+ +)*-(\w*e|o +errexit)` $setup) }}
set +e
{{- end }}
{{- if not (contains "pipefail" $setup) }}
(set -o pipefail) 2>/dev/null && set +o pipefail
{{- end }}
{{- end }}
{{- end }}

{{/* Escapes a script so that Kubernetes does not expand variables in it. */}}
{{- define "generator.expanded" -}}
{{ regexReplaceAll `(\$+)(\()|(\$\$+)` . "${1}${1}${2}${3}${3}" }}
{{- end }}

{{- define "generator.torchrun" -}}
torchrun --nnodes=${WORLD_SIZE} --node_rank=${RANK}
{{- with int .Values.numGpusPerPod }} --nproc_per_node={{ . }}{{ end }} --rdzv_id=101 --rdzv_endpoint="${MASTER_ADDR}:${MASTER_PORT}" {{ .Values.mainProgram | replace "\r\n" "\n" | include "generator.command" }}
{{- end }}

{{/*
Joins the lines of a main program into one command. Backslashes at line ends are
optional; comments and empty lines are dropped. Quoted text is unchanged.
*/}}
{{- define "generator.command" -}}
{{- $quoted := `'[^']*'|"(?:\\(?s:.)|[^"\\])*"|\\[^\n]` -}}
{{- $comment := `[ \t]+#[^\n]*` -}}
{{- $newLine := `[ \t]*\\?\n(?:[ \t]*(?:#[^\n]*|\\)?\n)*[ \t]*(?:#[^\n]*$)?` -}}
{{- $lines := "" -}}
{{- range regexFindAll (printf `%s|%s|%s|[^\s'"\\#]+|(?s:.)` $quoted $newLine $comment) (trim . | print " ") -1 -}}
{{- if regexMatch (printf "^(?:%s)$" $newLine) . -}}
{{- $lines = print $lines " \\\n  " -}}
{{- else if not (regexMatch (printf "^(?:%s)$" $comment) .) -}}
{{- $lines = print $lines . -}}
{{- end -}}
{{- end -}}
{{ $lines | trimPrefix " " | trimPrefix "\\\n  " | trimSuffix " \\\n  " }}
{{- end }}

{{/* Quotes a text as one shell word, without expansion. */}}
{{- define "generator.shellQuote" -}}
'{{ . | replace "'" "'\\''" }}'
{{- end }}
