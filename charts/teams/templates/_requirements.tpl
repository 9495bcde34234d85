{{/*
Renders nothing. Fails with a sentence if the values are wrong. Every template includes
it first, because the order in which Helm renders them is not specified.
*/}}
{{- define "teams.requirements" -}}
{{- include "teams.require.topologies" . }}
{{- include "teams.require.flavors" . }}
{{- include "teams.require.cohorts" . }}
{{- include "teams.require.limits" (dict "who" "limits" "limits" .Values.limits) }}
{{- include "teams.require.teams" . }}
{{- include "teams.require.slackQueues" . }}
{{- include "teams.require.capacity" . }}
{{- end }}

{{- define "teams.require.slackQueues" -}}
{{- $names := list }}
{{- range .Values.teams }}
{{- $names = append $names (printf "%s-cluster-queue" .name) }}
{{- end }}
{{- $cohorts := list }}
{{- range .Values.cohorts }}
{{- $cohorts = append $cohorts .name }}
{{- end }}
{{- $owners := dict }}
{{- range $queue := .Values.slackQueues }}
{{- if has .name $names }}
{{- fail (printf "teams: slack queue %q has the name of another queue in the file: choose another" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- $cohort := hasKey . "cohort" | ternary .cohort $.Values.cohort | default "" }}
{{- if not $cohort }}
{{- fail (printf "teams: slack queue %q is in no cohort, so no team could borrow its quota: set its cohort" .name) }}
{{- end }}
{{- if and $cohorts (not (has $cohort $cohorts)) }}
{{- fail (printf "teams: the cohort %q of slack queue %q is not listed in cohorts" $cohort .name) }}
{{- end }}
{{- if not .quota }}
{{- fail (printf "teams: slack queue %q has no quota, so it could lend nothing" .name) }}
{{- end }}
{{- range $flavor, $quota := .quota }}
{{- if hasKey $owners $flavor }}
{{- fail (printf "teams: flavor %q is in the slack queues %q and %q, so bad nodes would count twice: give each its own flavors" $flavor (get $owners $flavor) $queue.name) }}
{{- end }}
{{- $_ := set $owners $flavor $queue.name }}
{{- range $resource, $amount := $quota }}
{{- if and (kindIs "map" $amount) (hasKey $amount "borrowingLimit") }}
{{- fail (printf "teams: slack queue %q: flavor %q limits borrowing of %s, but a slack queue only lends: remove the borrowingLimit" $queue.name $flavor $resource) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "teams.require.quota" (dict "root" $ "who" (printf "slack queue %q" .name) "quota" .quota "lends" $cohort "why" "" "alone" true) }}
{{- end }}
{{- end }}

{{- define "teams.require.topologies" -}}
{{- $topologies := list }}
{{- range .Values.topologies }}
{{- if has .name $topologies }}
{{- fail (printf "teams: topology %q is listed twice" .name) }}
{{- end }}
{{- $topologies = append $topologies .name }}
{{- if has "kubernetes.io/hostname" (initial .levels) }}
{{- fail (printf "teams: topology %q: nothing is narrower than kubernetes.io/hostname: move it to the end of its levels" .name) }}
{{- end }}
{{- end }}
{{- range .Values.flavors }}
{{- if and $topologies .topologyName (not (has .topologyName $topologies)) }}
{{- fail (printf "teams: flavor %q: the topology %q is not listed in topologies" .name .topologyName) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "teams.require.flavors" -}}
{{- $flavors := list }}
{{- range .Values.requiredResources }}
{{- include "teams.require.resource" (dict "who" "requiredResources" "resource" .) }}
{{- end }}
{{- range .Values.flavors }}
{{- if has .name $flavors }}
{{- fail (printf "teams: flavor %q is listed twice" .name) }}
{{- end }}
{{- $flavors = append $flavors .name }}
{{- $flavor := .name }}
{{- if and .topologyName (not .nodeLabels) }}
{{- fail (printf "teams: flavor %q: topologyName needs nodeLabels, by which Kueue finds the nodes of the topology: add a label that all of them have" $flavor) }}
{{- end }}
{{- range $resource, $_ := .capacity }}
{{- include "teams.require.resource" (dict "who" (printf "the capacity of flavor %q" $flavor) "resource" $resource) }}
{{- end }}
{{- range .tolerations }}
{{- $exists := eq (.operator | default "Equal") "Exists" }}
{{- if and $exists .value }}
{{- fail (printf "teams: flavor %q: a toleration of %q with the operator Exists cannot have the value %q: remove the operator or the value" $flavor (.key | default "") .value) }}
{{- end }}
{{- if not (or $exists .key) }}
{{- fail (printf "teams: flavor %q: a toleration without a key needs the operator Exists, which tolerates every taint" $flavor) }}
{{- end }}
{{- if and (hasKey . "tolerationSeconds") (ne (.effect | default "") "NoExecute") }}
{{- fail (printf "teams: flavor %q: a toleration with tolerationSeconds needs the effect NoExecute" $flavor) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Names that no pod requests, but people write: (dict "who" … "resource" …). Kueue would accept them, and count nothing.
*/}}
{{- define "teams.require.resource" -}}
{{- $meant := dict "gpu" "nvidia.com/gpu" "gpus" "nvidia.com/gpu" "nvidia.com/gpus" "nvidia.com/gpu" "nvidia.com/gpu" "nvidia.com/gpu" }}
{{- $meant = merge $meant (dict "cpu" "cpu" "cpus" "cpu" "cores" "cpu" "memory" "memory" "mem" "memory" "ram" "memory" "pod" "pods" "pods" "pods") }}
{{- $right := get $meant (lower .resource) }}
{{- if and $right (ne $right .resource) }}
{{- fail (printf "teams: %s: no pod requests %s: write %s, or another name that the nodes have" .who .resource $right) }}
{{- end }}
{{- end }}

{{/* Members of one team. RBAC takes each entry as one name. */}}
{{- define "teams.require.members" -}}
{{- $team := . }}
{{- range $field := list "users" "groups" }}
{{- range $name := get $team $field | default list }}
{{- if has $name (list "system:authenticated" "system:unauthenticated" "system:serviceaccounts" "system:anonymous") }}
{{- fail (printf "teams: team %q: %s has %s, so people who are in no team could use its quota: name the members" $team.name $field $name) }}
{{- end }}
{{- if contains "*" $name }}
{{- fail (printf "teams: team %q: %s has %q, and no name can stand for others: name the members, or a group" $team.name $field $name) }}
{{- end }}
{{- if and (contains "," $name) (not (contains "=" $name)) }}
{{- fail (printf "teams: team %q: %s has %q, which is taken for one name: write a list with an entry for each" $team.name $field $name) }}
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
{{- fail (printf "teams: the parent %q of cohort %q is not listed in cohorts" .parent .name) }}
{{- end }}
{{- range $key, $it := dict "quota" "quota" "weight" "a weight" }}
{{- if and (eq $cohort.create false) (hasKey $cohort $key) }}
{{- fail (printf "teams: cohort %q has %s, which has no effect if create is false: set it in the release that creates the cohort" $cohort.name $it) }}
{{- end }}
{{- end }}
{{- $at := .name }}
{{- range until (len $parents) }}
{{- $at = get $parents $at }}
{{- if eq $at $cohort.name }}
{{- fail (printf "teams: cohort %q is its own ancestor, so none of its teams could start work: change its parent" $at) }}
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
{{- fail (printf "teams: team %q: namespace %q already belongs to another team" .name $namespace) }}
{{- end }}
{{- $names = append $names .name }}
{{- $namespaces = append $namespaces $namespace }}
{{- include "teams.require.names" . }}
{{- include "teams.require.members" . }}
{{- include "teams.require.namespace" (dict "team" .name "namespace" $namespace "runs" ($.Values.controller.runs.enabled | ternary ($.Values.controller.runs.serviceAccount.namespace | default $.Release.Namespace) "") "controllers" ($.Values.controller.serviceAccount.namespace | default ($.Values.controller.wrappedSecrets | ternary $.Release.Namespace ""))) }}
{{- include "teams.require.limits" (dict "who" (printf "team %q: limits" .name) "limits" .limits) }}
{{- include "teams.require.metadata" . }}
{{- include "teams.require.queues" . }}
{{- $security := include "teams.podSecurity" (dict "team" . "all" $.Values.podSecurity) | fromYaml }}
{{- if and (or $security.capabilities $security.hostPaths) (ne ($security.enforce | default "") "baseline") }}
{{- fail (printf "teams: team %q: podSecurity.capabilities and podSecurity.hostPaths are exceptions from the level baseline: set podSecurity.enforce to baseline, or remove them" .name) }}
{{- end }}
{{- if and .podSecurity (eq .createNamespace false) }}
{{- fail (printf "teams: team %q: podSecurity has no effect if createNamespace is false: label the namespace yourself" .name) }}
{{- end }}
{{- $cohort := hasKey . "cohort" | ternary .cohort $.Values.cohort | default "" }}
{{- if and $.Values.cohorts (not (has $cohort $cohorts)) }}
{{- fail (printf "teams: the cohort %q of team %q is not listed in cohorts" $cohort .name) }}
{{- end }}
{{- if not .quota }}
{{- fail (printf "teams: team %q has no quota, so none of its work could be admitted" .name) }}
{{- end }}
{{- $covered := list }}
{{- range .quota }}
{{- $covered = concat $covered (keys .) }}
{{- end }}
{{- range $.Values.requiredResources }}
{{- if not (has . $covered) }}
{{- fail (printf "teams: team %q: the quota in flavor %q lacks %s, so work that requests it would never be admitted: add it, even as 0 (see requiredResources)" $team.name (keys $team.quota | sortAlpha | first) .) }}
{{- end }}
{{- end }}
{{- include "teams.require.quota" (dict "root" $ "who" (printf "team %q" .name) "quota" .quota "lends" $cohort "why" "the team is in no cohort" "alone" true) }}
{{- end }}
{{- end }}

{{/* Checks the names of one team. */}}
{{- define "teams.require.names" -}}
{{- $namespace := include "teams.namespace" . }}
{{- if gt (len .name) 49 }}
{{- fail (printf "teams: team %q: the name has %d characters, but at most 49 are allowed, to leave room for the queue's name" .name (len .name)) }}
{{- end }}
{{- if gt (len $namespace) 63 }}
{{- fail (printf "teams: team %q: the name of namespace %q has %d characters, but at most 63 are allowed" .name $namespace (len $namespace)) }}
{{- end }}
{{- if gt (len (.queueName | default "")) 63 }}
{{- fail (printf "teams: team %q: the name of queue %q has %d characters, but at most 63 are allowed, because work names it in a label" .name .queueName (len .queueName)) }}
{{- end }}
{{- if eq .name "slack" }}
{{- fail "teams: the name \"slack\" is reserved for the queue slack-cluster-queue, which belongs to no team: choose another name" }}
{{- end }}
{{- end }}

{{/* Labels and annotations that this chart, Helm, or Kubernetes sets on the namespace of a team. */}}
{{- define "teams.require.metadata" -}}
{{- $team := . }}
{{- $instead := dict "pod-security.kubernetes.io/" "podSecurity" "mlbatch-priorities" "priorities" "mlbatch-tolerations" "tolerations" "mlbatch-appwrappers-only" "appWrappersOnly" "mlbatch-allowed-" "podSecurity" "mlbatch-pod-security" "podSecurity" "workload.codeflare.dev.appwrapper/" "defaults" }}
{{- if and $team.defaults (eq $team.createNamespace false) }}
{{- fail (printf "teams: team %q: defaults have no effect if createNamespace is false: annotate the namespace yourself, as docs/fault-tolerance.md says" $team.name) }}
{{- end }}
{{- if and $team.appWrappersOnly (eq $team.createNamespace false) }}
{{- fail (printf "teams: team %q: appWrappersOnly has no effect if createNamespace is false: label the namespace mlbatch-appwrappers-only=true yourself" $team.name) }}
{{- end }}
{{- range $field := list "labels" "annotations" }}
{{- $given := get $team $field | default dict }}
{{- if and $given (eq $team.createNamespace false) }}
{{- fail (printf "teams: team %q: %s have no effect if createNamespace is false: set them on the namespace yourself" $team.name $field) }}
{{- end }}
{{- range $key := keys $given | sortAlpha }}
{{- range $prefix, $value := $instead }}
{{- if hasPrefix $prefix $key }}
{{- fail (printf "teams: team %q: %s cannot have %s, which the chart sets: remove it, and set %s" $team.name $field $key $value) }}
{{- end }}
{{- end }}
{{- if regexMatch "^(mlbatch-|app\\.kubernetes\\.io/(name|part-of|managed-by)$|kubernetes\\.io/|(meta\\.)?helm\\.sh/|argocd\\.argoproj\\.io/sync-options$)" $key }}
{{- fail (printf "teams: team %q: %s cannot have %s, which the chart, Helm or Kubernetes sets: remove it" $team.name $field $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ClusterQueue's other fields, and the team's other LocalQueues. */}}
{{- define "teams.require.queues" -}}
{{- $team := . }}
{{- $owned := dict "cohortName" "cohort of the team" "resourceGroups" "quota of the team" "fairSharing" "weight of the team" "stopPolicy" "stopPolicy of the team" }}
{{- $_ := set $owned "namespaceSelector" "namespace of the team" }}
{{- range $key, $instead := $owned }}
{{- if hasKey ($team.clusterQueue | default dict) $key }}
{{- fail (printf "teams: team %q: clusterQueue cannot have %s, which the chart sets: use %s" $team.name $key $instead) }}
{{- end }}
{{- end }}
{{- with ($team.clusterQueue).flavorFungibility }}
{{- if and .preference (not (and (eq (toString .whenCanBorrow) "TryNextFlavor") (eq (toString .whenCanPreempt) "TryNextFlavor"))) }}
{{- fail (printf "teams: team %q: clusterQueue.flavorFungibility.preference needs whenCanBorrow and whenCanPreempt to be TryNextFlavor" $team.name) }}
{{- end }}
{{- end }}
{{- with ($team.clusterQueue).preemption }}
{{- if and (eq (toString .reclaimWithinCohort) "Never") (has (.borrowWithinCohort).policy (list "LowerPriority")) }}
{{- fail (printf "teams: team %q: clusterQueue.preemption cannot preempt to borrow if it does not reclaim: set borrowWithinCohort.policy to Never, or reclaimWithinCohort to LowerPriority or Any" $team.name) }}
{{- end }}
{{- end }}
{{- $names := list ($team.queueName | default "default-queue") }}
{{- range .queues }}
{{- if has .name $names }}
{{- fail (printf "teams: team %q has the queue %q twice: the first queue is queueName, and queues are those beside it" $team.name .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range $check := (($team.clusterQueue).admissionChecksStrategy).admissionChecks }}
{{- range $check.onFlavors }}
{{- if not (hasKey ($team.quota | default dict) .) }}
{{- fail (printf "teams: team %q: the admission check %q is on flavor %q, in which the team has no quota" $team.name $check.name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* (dict "team" … "namespace" … "controllers" and "runs" the controllers' namespaces, if known) */}}
{{- define "teams.require.namespace" -}}
{{- if regexMatch "^(kube-.*|openshift(-.*)?|default|kueue-system|mlbatch-system)$" .namespace }}
{{- fail (printf "teams: team %q cannot have namespace %q, which belongs to the system: choose another" .team .namespace) }}
{{- end }}
{{- if eq .namespace .controllers }}
{{- fail (printf "teams: team %q cannot have namespace %q, where the AppWrapper controller runs: choose another, or set controller.serviceAccount.namespace to the controller's namespace" .team .namespace) }}
{{- end }}
{{- if eq .namespace .runs }}
{{- fail (printf "teams: team %q cannot have namespace %q, where the controller of Runs runs: choose another, or set controller.runs.serviceAccount.namespace to the controller's namespace" .team .namespace) }}
{{- end }}
{{- end }}

{{/* Checks the limits of a LimitRange: (dict "who" … "limits" …) */}}
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
{{- fail (printf "teams: %s have %s, which is only for containers" $who (hasKey . "default" | ternary "default" "defaultRequest")) }}
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
Checks the quota of a team or a cohort:
(dict "root" . "who" … "quota" … "lends" … "why" … "alone" …). The limits of a cohort
include the quota of its teams, so they may exceed its own quota.
*/}}
{{- define "teams.require.quota" -}}
{{- $owner := . }}
{{- $flavors := list }}
{{- range .root.Values.flavors }}
{{- $flavors = append $flavors .name }}
{{- end }}
{{- range $flavor, $quota := .quota }}
{{- if not (has $flavor $flavors) }}
{{- fail (printf "teams: %s has quota in flavor %q, which is not listed in flavors" $owner.who $flavor) }}
{{- end }}
{{- if not $quota }}
{{- fail (printf "teams: %s: the quota in flavor %q lists no resource" $owner.who $flavor) }}
{{- end }}
{{- range $another := keys $owner.quota | sortAlpha }}
{{- $covered := get $owner.quota $another | default dict }}
{{- $shared := list }}
{{- range $resource, $_ := $quota }}
{{- if hasKey $covered $resource }}
{{- $shared = append $shared $resource }}
{{- end }}
{{- end }}
{{- if and $shared (lt $another $flavor) (ne (include "teams.resources" $quota) (include "teams.resources" $covered)) }}
{{- fail (printf "teams: %s: flavors that share a resource must list the same resources, but flavor %q lists %s and another lists %s" $owner.who $flavor (include "teams.resources" $quota) (include "teams.resources" $covered)) }}
{{- end }}
{{- end }}
{{- range $resource, $amount := $quota }}
{{- include "teams.require.resource" (dict "who" (printf "%s: the quota in flavor %q" $owner.who $flavor) "resource" $resource) }}
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

{{/* Checks that the total quota does not exceed the capacity of a flavor, if it has one. */}}
{{- define "teams.require.capacity" -}}
{{- $owners := concat (.Values.teams | default list) (.Values.cohorts | default list) (.Values.slackQueues | default list) }}
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
{{- fail (printf "teams: flavor %q has %s of %s, but the quota adds up to more: %s" $flavor.name (include "teams.amount" $capacity) $resource (join ", " $shares)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
