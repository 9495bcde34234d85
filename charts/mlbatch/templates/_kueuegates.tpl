{{/* Kueue's feature gates by their names, as JSON. requirements.yaml allows them in one place only. */}}
{{- define "mlbatch.kueueGates" -}}
{{- $gates := dict }}
{{- range .Values.kueue.controllerManager.featureGates }}
{{- $_ := set $gates (toString .name) .enabled }}
{{- end }}
{{- toJson $gates }}
{{- end }}

{{/* What a feature gate of Kueue is set to: (list context name). */}}
{{- define "mlbatch.kueueGate" -}}
{{- get (include "mlbatch.kueueGates" (first .) | fromJson) (last .) }}
{{- end }}

{{/* With what feature gates Kueue would not start, one line each. Another version of Kueue may have others. */}}
{{- define "mlbatch.kueueGatesRefused" -}}
{{- $table := .Files.Get "files/kueue.yaml" | fromYaml }}
{{- $version := .Subcharts.kueue.Chart.AppVersion }}
{{- $pinned := eq .Values.kueue.controllerManager.manager.image.tag $version }}
{{- $set := include "mlbatch.kueueGates" . | fromJson }}
{{- range $name, $enabled := $set }}
{{- if not (kindIs "bool" $enabled) }}
{{ printf "the feature gate %s of kueue.controllerManager.featureGates must have enabled, with true or false" $name }}
{{- else if and (not (hasKey $table.featureGates $name)) $pinned }}
{{ printf "%s in kueue.controllerManager.featureGates is no feature gate of Kueue %s: remove it, because Kueue does not start with an unknown one, and nobody has tried it with those of Kubernetes' libraries" $name $version }}
{{- end }}
{{- end }}
{{- $missing := dict }}
{{- range $name, $required := $table.requires }}
{{- range $required }}
{{- if and $pinned (eq "true" (include "mlbatch.kueueGateIsOn" (list $table $set $name))) (eq "false" (include "mlbatch.kueueGateIsOn" (list $table $set .))) }}
{{- $_ := set $missing . (append (get $missing . | default list) $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $required, $names := $missing }}
{{ printf "Kueue would not start with the feature gate %s being off: set it to true, or %s to false, in kueue.controllerManager.featureGates" $required (join ", " $names) }}
{{- end }}
{{- end }}

{{/* true or false: whether a feature gate of Kueue is on, because it is set or by default: (list table set name). */}}
{{- define "mlbatch.kueueGateIsOn" -}}
{{- $name := last . }}
{{- if hasKey (index . 1) $name }}
{{- get (index . 1) $name }}
{{- else }}
{{- not (has $name (first .).offByDefault) }}
{{- end }}
{{- end }}
