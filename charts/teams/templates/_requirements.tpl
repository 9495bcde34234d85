{{/*
Renders nothing; says in a sentence what is wrong with the file of teams. The
templates include it first, because Helm does not say which of them it begins with.
*/}}
{{- define "teams.requirements" -}}
{{- $flavors := list }}
{{- range .Values.flavors }}
{{- if has .name $flavors }}
{{- fail (printf "teams: flavor %q is listed twice" .name) }}
{{- end }}
{{- $flavors = append $flavors .name }}
{{- end }}

{{- $names := list }}
{{- $namespaces := list }}
{{- range $team := .Values.teams }}
{{- $namespace := .namespace | default .name }}
{{- if has .name $names }}
{{- fail (printf "teams: team %q is listed twice" .name) }}
{{- end }}
{{- if has $namespace $namespaces }}
{{- fail (printf "teams: team %q: namespace %q belongs to another team already" .name $namespace) }}
{{- end }}
{{- $names = append $names .name }}
{{- $namespaces = append $namespaces $namespace }}
{{- if gt (len .name) 49 }}
{{- fail (printf "teams: team %q: the name has %d characters; at most 49 leave room for its queue's name" .name (len .name)) }}
{{- end }}
{{- if gt (len $namespace) 63 }}
{{- fail (printf "teams: team %q: the name of namespace %q has %d characters; at most 63 are allowed" .name $namespace (len $namespace)) }}
{{- end }}

{{- if not .quota }}
{{- fail (printf "teams: team %q has no quota, so none of its work could ever start" .name) }}
{{- end }}
{{- $covered := keys (get .quota (keys .quota | sortAlpha | first)) | sortAlpha }}
{{- $cohort := hasKey . "cohort" | ternary .cohort $.Values.cohort }}
{{- range $flavor := keys .quota | sortAlpha }}
{{- $quota := get $team.quota $flavor }}
{{- if not (has $flavor $flavors) }}
{{- fail (printf "teams: team %q has quota in flavor %q, which is not among the flavors" $team.name $flavor) }}
{{- end }}
{{- range $.Values.requiredResources }}
{{- if not (hasKey $quota .) }}
{{- fail (printf "teams: team %q: the quota in flavor %q lacks %s; work that asks for it would wait forever (0 is an answer, see requiredResources)" $team.name $flavor .) }}
{{- end }}
{{- end }}
{{- if ne (keys $quota | sortAlpha | join ", ") ($covered | join ", ") }}
{{- fail (printf "teams: team %q: all its flavors must name the same resources, but flavor %q has %s where another has %s" $team.name $flavor (keys $quota | sortAlpha | join ", ") ($covered | join ", ")) }}
{{- end }}
{{- range $resource, $amount := $quota }}
{{- if kindIs "map" $amount }}
{{- if and (not $cohort) (or (hasKey $amount "lendingLimit") (hasKey $amount "borrowingLimit")) }}
{{- fail (printf "teams: team %q: flavor %q limits lending or borrowing of %s, but the team is in no cohort" $team.name $flavor $resource) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
