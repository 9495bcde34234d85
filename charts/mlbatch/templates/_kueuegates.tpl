{{/* Kueue's feature gates by their names, wherever they are set, as JSON. */}}
{{- define "mlbatch.kueueGates" -}}
{{- $configuration := include "platform.kueueConfiguration" .Values.kueue.managerConfig | fromYaml }}
{{- $gates := dict }}
{{- range $name, $enabled := $configuration.featureGates | default dict }}
{{- $_ := set $gates $name $enabled }}
{{- end }}
{{- range .Values.kueue.controllerManager.featureGates }}
{{- $_ := set $gates (toString .name) .enabled }}
{{- end }}
{{- toJson $gates }}
{{- end }}

{{/* What a feature gate of Kueue is set to: (list context name). */}}
{{- define "mlbatch.kueueGate" -}}
{{- get (include "mlbatch.kueueGates" (first .) | fromJson) (last .) }}
{{- end }}

{{/* false if all of some feature gates of Kueue are set to false: (list context name...). */}}
{{- define "mlbatch.kueueGatesOff" -}}
{{- $gates := include "mlbatch.kueueGates" (first .) | fromJson }}
{{- $off := true }}
{{- range rest . }}
{{- $off = and $off (eq (toString (get $gates .)) "false") }}
{{- end }}
{{- if $off }}false{{ end }}
{{- end }}

{{/* With what feature gates Kueue would not start, one line each. Another version of Kueue may have others. */}}
{{- define "mlbatch.kueueGatesRefused" -}}
{{- $rows := (.Files.Get "files/kueue.yaml" | fromYaml).featureGates }}
{{- $version := .Subcharts.kueue.Chart.AppVersion }}
{{- range $name, $enabled := include "mlbatch.kueueGates" . | fromJson }}
{{- if not (kindIs "bool" $enabled) }}
{{ printf "the feature gate %s of kueue.controllerManager.featureGates must have enabled, with true or false" $name }}
{{- else if and (not (hasKey $rows $name)) (eq $.Values.kueue.controllerManager.manager.image.tag $version) }}
{{ printf "Kueue %s has no feature gate %s, and would not start: remove it from kueue.controllerManager.featureGates" $version $name }}
{{- end }}
{{- end }}
{{- end }}
