{{/*
Renders nothing; says in a sentence what is wrong with the file of teams. The
templates include it first, because Helm does not say which of them it begins with.
*/}}
{{- define "teams.requirements" -}}
{{- include "teams.require.flavors" . }}
{{- include "teams.require.cohorts" . }}
{{- include "teams.require.limits" (dict "who" "limits" "limits" .Values.limits) }}
{{- include "teams.require.teams" . }}
{{- include "teams.require.capacity" . }}
{{- end }}

{{- define "teams.require.flavors" -}}
{{- $flavors := list }}
{{- range .Values.flavors }}
{{- if has .name $flavors }}
{{- fail (printf "teams: flavor %q is listed twice" .name) }}
{{- end }}
{{- $flavors = append $flavors .name }}
{{- $flavor := .name }}
{{- range .tolerations }}
{{- $exists := eq (.operator | default "Equal") "Exists" }}
{{- if and $exists .value }}
{{- fail (printf "teams: flavor %q: a toleration of %q with the operator Exists has the value %q, which it cannot have: leave one of them out" $flavor (.key | default "") .value) }}
{{- end }}
{{- if not (or $exists .key) }}
{{- fail (printf "teams: flavor %q: a toleration without a key needs the operator Exists, and tolerates everything" $flavor) }}
{{- end }}
{{- if and (hasKey . "tolerationSeconds") (ne (.effect | default "") "NoExecute") }}
{{- fail (printf "teams: flavor %q: a toleration has tolerationSeconds, which needs the effect NoExecute" $flavor) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "teams.require.cohorts" -}}
{{- $parents := dict }}
{{- range .Values.cohorts }}
{{- if hasKey $parents .name }}
{{- fail (printf "teams: cohort %q is listed twice" .name) }}
{{- end }}
{{- $_ := set $parents .name (.parent | default "") }}
{{- end }}
{{- range $cohort := .Values.cohorts }}
{{- if and .parent (not (hasKey $parents .parent)) }}
{{- fail (printf "teams: the parent %q of cohort %q is not among the cohorts" .parent .name) }}
{{- end }}
{{- range $key, $it := dict "quota" "quota" "weight" "a weight" }}
{{- if and (eq $cohort.create false) (hasKey $cohort $key) }}
{{- fail (printf "teams: cohort %q has %s, which is not written where create is false: say it in the release that makes the cohort" $cohort.name $it) }}
{{- end }}
{{- end }}
{{- $at := .name }}
{{- range until (len $parents) }}
{{- $at = get $parents $at }}
{{- if eq $at $cohort.name }}
{{- fail (printf "teams: cohort %q is its own ancestor, and none of its teams could start work" $at) }}
{{- end }}
{{- end }}
{{- include "teams.require.quota" (dict "root" $ "who" (printf "cohort %q" .name) "quota" .quota "lends" .parent "why" "the cohort has no parent") }}
{{- end }}
{{- end }}

{{- define "teams.require.teams" -}}
{{- $cohorts := list "" }}
{{- range .Values.cohorts }}
{{- $cohorts = append $cohorts .name }}
{{- end }}
{{- $names := list }}
{{- $namespaces := list }}
{{- range $team := .Values.teams }}
{{- $namespace := include "teams.namespace" . }}
{{- if has .name $names }}
{{- fail (printf "teams: team %q is listed twice" .name) }}
{{- end }}
{{- if has $namespace $namespaces }}
{{- fail (printf "teams: team %q: namespace %q belongs to another team already" .name $namespace) }}
{{- end }}
{{- $names = append $names .name }}
{{- $namespaces = append $namespaces $namespace }}
{{- include "teams.require.names" . }}
{{- include "teams.require.namespace" (dict "team" .name "namespace" $namespace "controllers" ($.Values.controller.serviceAccount.namespace | default ($.Values.controller.wrappedSecrets | ternary $.Release.Namespace ""))) }}
{{- include "teams.require.limits" (dict "who" (printf "team %q: limits" .name) "limits" .limits) }}
{{- $cohort := hasKey . "cohort" | ternary .cohort $.Values.cohort | default "" }}
{{- if and $.Values.cohorts (not (has $cohort $cohorts)) }}
{{- fail (printf "teams: the cohort %q of team %q is not among the cohorts" $cohort .name) }}
{{- end }}
{{- if not .quota }}
{{- fail (printf "teams: team %q has no quota, so none of its work could ever start" .name) }}
{{- end }}
{{- range $flavor, $quota := .quota }}
{{- range $.Values.requiredResources }}
{{- if not (hasKey $quota .) }}
{{- fail (printf "teams: team %q: the quota in flavor %q lacks %s; work that asks for it would wait forever (0 is an answer, see requiredResources)" $team.name $flavor .) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "teams.require.quota" (dict "root" $ "who" (printf "team %q" .name) "quota" .quota "lends" $cohort "why" "the team is in no cohort" "alone" true) }}
{{- end }}
{{- end }}

{{/* Of one team. */}}
{{- define "teams.require.names" -}}
{{- $namespace := include "teams.namespace" . }}
{{- if gt (len .name) 49 }}
{{- fail (printf "teams: team %q: the name has %d characters; at most 49 leave room for its queue's name" .name (len .name)) }}
{{- end }}
{{- if gt (len $namespace) 63 }}
{{- fail (printf "teams: team %q: the name of namespace %q has %d characters; at most 63 are allowed" .name $namespace (len $namespace)) }}
{{- end }}
{{- if gt (len (.queueName | default "")) 63 }}
{{- fail (printf "teams: team %q: the name of queue %q has %d characters; work names it in a label, which allows 63" .name .queueName (len .queueName)) }}
{{- end }}
{{- if eq .name "slack" }}
{{- fail "teams: team \"slack\" has a name that is kept for the queue slack-cluster-queue, which is no team's: choose another" }}
{{- end }}
{{- end }}

{{/* (dict "team" … "namespace" … "controllers" the controller's namespace, if it is known) */}}
{{- define "teams.require.namespace" -}}
{{- if regexMatch "^(kube-.*|openshift(-.*)?|default|kueue-system|mlbatch-system)$" .namespace }}
{{- fail (printf "teams: team %q cannot have namespace %q, which is the system's" .team .namespace) }}
{{- end }}
{{- if eq .namespace .controllers }}
{{- fail (printf "teams: team %q cannot have namespace %q, where the AppWrapper controller runs: choose another, or say in controller.serviceAccount.namespace where it does" .team .namespace) }}
{{- end }}
{{- end }}

{{/* Of a LimitRange: (dict "who" … "limits" …) */}}
{{- define "teams.require.limits" -}}
{{- $owner := . }}
{{- $types := list }}
{{- range $limit := .limits }}
{{- $who := printf "%s of type %s" $owner.who .type }}
{{- if has .type $types }}
{{- fail (printf "teams: %s are listed twice" $who) }}
{{- end }}
{{- $types = append $types .type }}
{{- if and (eq .type "Pod") (or .default .defaultRequest) }}
{{- fail (printf "teams: %s have %s, which is for containers" $who (hasKey . "default" | ternary "default" "defaultRequest")) }}
{{- end }}
{{- if and (eq .type "PersistentVolumeClaim") (not (or (hasKey (.min | default dict) "storage") (hasKey (.max | default dict) "storage"))) }}
{{- fail (printf "teams: %s need a min or a max of storage" $who) }}
{{- end }}
{{- $order := list "min" "defaultRequest" "default" "max" }}
{{- range $i, $less := $order }}
{{- range $more := slice $order (add1 $i) }}
{{- range $resource, $amount := get $limit $less | default dict }}
{{- $limits := get $limit $more | default dict }}
{{- if and (hasKey $limits $resource) (gt (include "teams.number" $amount | float64) (include "teams.number" (get $limits $resource) | float64)) }}
{{- fail (printf "teams: %s: the %s %s of %s is more than its %s %s" $who $less (include "teams.amount" $amount) $resource $more (include "teams.amount" (get $limits $resource))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Of a team or a cohort: (dict "root" . "who" … "quota" … "lends" … "why" … "alone" …). A
cohort's limits are of what its teams have, too, and may be more than its own.
*/}}
{{- define "teams.require.quota" -}}
{{- $owner := . }}
{{- $flavors := list }}
{{- range .root.Values.flavors }}
{{- $flavors = append $flavors .name }}
{{- end }}
{{- range $flavor, $quota := .quota }}
{{- if not (has $flavor $flavors) }}
{{- fail (printf "teams: %s has quota in flavor %q, which is not among the flavors" $owner.who $flavor) }}
{{- end }}
{{- $covered := keys (get $owner.quota (keys $owner.quota | sortAlpha | first)) | sortAlpha | join ", " }}
{{- if not $quota }}
{{- fail (printf "teams: %s: the quota in flavor %q names no resource" $owner.who $flavor) }}
{{- end }}
{{- if ne (keys $quota | sortAlpha | join ", ") $covered }}
{{- fail (printf "teams: %s: all its flavors must name the same resources, but flavor %q has %s where another has %s" $owner.who $flavor (keys $quota | sortAlpha | join ", ") $covered) }}
{{- end }}
{{- range $resource, $amount := $quota }}
{{- if kindIs "map" $amount }}
{{- if and (not $owner.lends) (or (hasKey $amount "lendingLimit") (hasKey $amount "borrowingLimit")) }}
{{- fail (printf "teams: %s: flavor %q limits lending or borrowing of %s, but %s" $owner.who $flavor $resource $owner.why) }}
{{- end }}
{{- $lends := get $amount "lendingLimit" | default 0 }}
{{- if and $owner.alone (gt (include "teams.number" $lends | float64) (include "teams.number" $amount.nominal | float64)) }}
{{- fail (printf "teams: %s: flavor %q lends %s of %s, more than the nominal %s" $owner.who $flavor (include "teams.amount" $lends) $resource (include "teams.nominal" $amount)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What all have together is there, in each flavor whose capacity is told. */}}
{{- define "teams.require.capacity" -}}
{{- $owners := concat (.Values.teams | default list) (.Values.cohorts | default list) }}
{{- range $flavor := .Values.flavors }}
{{- range $resource, $capacity := .capacity }}
{{- $sum := 0.0 }}
{{- $shares := list }}
{{- range $owner := $owners }}
{{- $quota := get (.quota | default dict) $flavor.name | default dict }}
{{- if hasKey $quota $resource }}
{{- $nominal := include "teams.nominal" (get $quota $resource) }}
{{- $sum = addf $sum (include "teams.number" $nominal | float64) }}
{{- $shares = append $shares (printf "%s has %s" $owner.name $nominal) }}
{{- end }}
{{- end }}
{{- if gt $sum (include "teams.number" $capacity | float64) }}
{{- fail (printf "teams: flavor %q has %s of %s, but more is given away: %s" $flavor.name (include "teams.amount" $capacity) $resource (join ", " $shares)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
