{{- /* A path of a mesh has a name of at most 100 characters: those of two of 1,000 agents of a StatefulSet, and "-to-". */ -}}
{{- define "oneway.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "oneway" $name) }}{{ $name = printf "%s-oneway" $name }}{{ end -}}
{{- default $name .Values.fullnameOverride | trunc 44 | trimSuffix "-" -}}
{{- end }}

{{- define "oneway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "oneway.labels" -}}
{{ include "oneway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "oneway.account" -}}
{{- default (ternary (include "oneway.name" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{- define "oneway.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* The hosts of the mesh: the agents of a StatefulSet, by the names that the headless Service gives them, and those of the values. */ -}}
{{- define "oneway.hosts" -}}
{{- $hosts := list -}}
{{- if eq .Values.workload "StatefulSet" -}}
{{- $name := include "oneway.name" . -}}
{{- range $i := until (int .Values.replicas) -}}
{{- $host := printf "%s-%d" $name $i -}}
{{- $hosts = append $hosts (dict "name" $host "address" (printf "%s.%s.%s.svc:%d" $host $name $.Release.Namespace (int $.Values.reflector.port))) -}}
{{- end -}}
{{- end -}}
{{- $names := dict -}}
{{- range concat $hosts .Values.hosts -}}
{{- if hasKey $names .name }}{{ fail (printf "hosts: two have the name %q; names must differ" .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- with concat $hosts .Values.hosts }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- /* oneway.yml: the sections of the values, and those of the chart where they are absent. */ -}}
{{- define "oneway.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "version" 1 -}}
{{- if not (hasKey $config "clock") }}{{ $_ = set $config "clock" (dict "source" (ternary "chrony" "none" (eq .Values.network "node"))) }}{{ end -}}
{{- if .Values.reflector.enabled -}}
{{- $reflector := default dict $config.reflector -}}
{{- if not (hasKey $reflector "listen") }}{{ $_ = set $reflector "listen" (list (printf ":%d" (int .Values.reflector.port))) }}{{ end -}}
{{- $port := printf ":%d" (int .Values.reflector.port) -}}
{{- $listens := false -}}
{{- range $reflector.listen }}{{ if hasSuffix $port . }}{{ $listens = true }}{{ end }}{{ end -}}
{{- if not $listens }}{{ fail (printf "config.reflector.listen has no address that ends with %q: pod and Service have the port of reflector.port" $port) }}{{ end -}}
{{- $_ = set $config "reflector" $reflector -}}
{{- end -}}
{{- if not (hasKey $config "state_dir") }}{{ $_ = set $config "state_dir" "/var/lib/oneway" }}{{ end -}}
{{- if include "oneway.hosts" . -}}
{{- $mesh := default dict $config.mesh -}}
{{- if kindIs "map" $mesh -}}
{{- if not (hasKey $mesh "hosts_file") }}{{ $_ = set $mesh "hosts_file" "hosts.yml" }}{{ end -}}
{{- if not (hasKey $mesh "probes") }}{{ $_ = set $mesh "probes" (list (dict "type" "stamp")) }}{{ end -}}
{{- $_ = set $config "mesh" $mesh -}}
{{- end -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- /* A check of the agent. With TLS or passwords the kubelet cannot request the page itself. */ -}}
{{- define "oneway.probe" -}}
{{- $root := index . 0 -}}{{- $page := index . 1 -}}
{{- if $root.Values.web.configFile -}}
exec:
  command:
    - /usr/bin/oneway
    - healthy
    - --url={{ $root.Values.web.scheme }}://127.0.0.1:{{ $root.Values.web.port }}
    {{- if eq $page "ready" }}
    - --ready
    {{- end }}
{{- else -}}
httpGet: {path: /-/{{ $page }}, port: web}
{{- end }}
{{- end }}
