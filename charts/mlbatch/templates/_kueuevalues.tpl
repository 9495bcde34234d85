{{/*
What files/kueue.yaml says of the values of Kueue that are set, one line each: (list context "refuse" or "note"). A
value that is empty is not set.
*/}}
{{- define "mlbatch.kueueSentences" -}}
{{- $root := index . 0 }}
{{- $verdict := index . 1 }}
{{- $configuration := include "platform.kueueConfiguration" $root.Values.kueue.managerConfig | fromYaml }}
{{- $gates := include "mlbatch.kueueGates" $root | fromJson }}
{{- $in := dict "values" $root.Values.kueue "configuration" $configuration "featureGates" $gates }}
{{- $at := dict "values" "kueue.%s %s" "configuration" "%s in kueue.managerConfig.configuration %s" "featureGates" "%s in kueue.controllerManager.featureGates %s" }}
{{- $table := $root.Files.Get "files/kueue.yaml" | fromYaml }}
{{- range $part := keys $in | sortAlpha }}
{{- range $name, $row := get $table $part }}
{{- if kindIs "map" $row }}
{{- $value := get $in $part }}
{{- range trimSuffix ".*" $name | splitList "." }}
{{- if kindIs "map" $value }}
{{- $value = get $value . }}
{{- else }}
{{- $value = "" }}
{{- end }}
{{- end }}
{{- $allowed := list "" "<nil>" "map[]" "[]" }}
{{- if $row.needed }}
{{- $value = $value | default "nothing" }}
{{- end }}
{{- range $row.unless }}
{{- $allowed = append $allowed (tpl . $root) }}
{{- end }}
{{- if and (hasKey $row $verdict) (not (has (toString $value) $allowed)) }}
{{ printf (get $at $part) (trimSuffix ".*" $name) (get $row $verdict) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
