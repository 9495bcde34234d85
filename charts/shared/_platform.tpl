{{/* What the charts of all parts share. Packaging adds this file to each of them. */}}

{{/*
An image reference: (list root reference). global.imageRegistry takes the place of its registry:
registry.k8s.io/kueue/kueue:v1 becomes REGISTRY/kueue/kueue:v1, as 'mlbatch images --mirror' copies it.
*/}}
{{- define "platform.reference" -}}
{{- $reference := index . 1 }}
{{- $registry := ((index . 0).Values.global).imageRegistry | default "" | trimSuffix "/" }}
{{- if $registry }}
{{- $first := splitList "/" $reference | first }}
{{- if and (contains "/" $reference) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}
{{- $reference = trimPrefix (printf "%s/" $first) $reference }}
{{- end }}
{{- $registry }}/{{ $reference }}
{{- else }}
{{- $reference }}
{{- end }}
{{- end }}

{{/* The reference of an image: (list root repository tag). */}}
{{- define "platform.image" -}}
{{- $chart := (index . 0).Chart.Name }}
{{- $repository := index . 1 }}
{{- if contains "://" $repository }}
{{- fail (printf "%s: no node could pull the image %q: remove what is before :// and these characters" $chart $repository) }}
{{- end }}
{{- if contains ":" (splitList "/" $repository | last) }}
{{- fail (printf "%s: the repository %q has a tag, and the chart would add another one: move what is behind the last colon to tag" $chart $repository) }}
{{- end }}
{{- include "platform.reference" (list (index . 0) (printf "%s:%s" (index . 1) (toString (index . 2)))) }}
{{- end }}

{{/*
The Secrets for registries: (list root own). Those of the part, and global.imagePullSecrets, which names them, or
lists objects with a name, as charts of others do.
*/}}
{{- define "platform.pullSecrets" -}}
{{- $all := list }}
{{- range concat (index . 1 | default list) (((index . 0).Values.global).imagePullSecrets | default list) }}
{{- $all = append $all (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- $all | uniq | toYaml }}
{{- end }}

{{/* The labels of which release and chart an object is. They change with releases, so they select nothing. */}}
{{- define "platform.release" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Kueue's configuration file: (managerConfig of its values). A text, as in releases before this key, takes the place
of the structured values.
*/}}
{{- define "platform.kueueConfiguration" -}}
{{- $text := get . "controllerManagerConfigYaml" }}
{{- if $text }}
{{- $text }}
{{- else }}
{{- merge (dict "apiVersion" "config.kueue.x-k8s.io/v1beta2" "kind" "Configuration") (get . "configuration" | default dict) | toYaml }}
{{- end }}
{{- end }}

{{/*
90 % of a container's memory limit as GOMEMLIMIT: (list resources env). Near its limit, Go then collects
its garbage more often, instead of being killed. Empty without a limit, or if the container's env has it.
*/}}
{{- define "platform.memoryLimit" -}}
{{- $limit := ((index . 0).limits).memory | default "" | toString }}
{{- $own := false }}
{{- range index . 1 }}
{{- if eq .name "GOMEMLIMIT" }}
{{- $own = true }}
{{- end }}
{{- end }}
{{- if and (not $own) (regexMatch "^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$" $limit) }}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $bytes := mulf (regexFind "^[0-9.]+" $limit | float64) (get $factors (regexFind "[A-Za-z]*$" $limit)) -}}
- name: GOMEMLIMIT
  value: {{ divf (mulf $bytes 0.9) 1048576 | floor | printf "%.0fMiB" }}
{{- end }}
{{- end }}
