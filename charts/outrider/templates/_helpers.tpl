{{- define "outrider.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The component keeps the pods of hooks out of the Service and the Deployment. */}}
{{- define "outrider.selectorLabels" -}}
app.kubernetes.io/name: outrider
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: webhook
{{- end }}

{{- /* The maps of a list as one, in which no key occurs twice: the later map wins. `merge` would take an empty text for none. */}}
{{- define "outrider.merged" -}}
{{- $all := dict }}
{{- range . }}
{{- range $key, $value := . | default dict }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- end }}
{{- with $all }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "outrider.ownLabels" -}}
app.kubernetes.io/name: outrider
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "outrider.labels" -}}
{{- include "outrider.labelsWith" (dict "root" .) }}
{{- end }}

{{- /* Labels of an object that has others beside: `theirs` of the values, which win over commonLabels, and `ours`, which win over all. */}}
{{- define "outrider.labelsWith" -}}
{{- include "outrider.merged" (list .root.Values.commonLabels .theirs (include "outrider.ownLabels" .root | fromYaml) .ours) }}
{{- end }}

{{- define "outrider.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "outrider.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "outrider.image" -}}
{{- $registry := (.Values.global | default dict).imageRegistry | default .Values.image.registry }}
{{- with .Values.image }}
{{- $name := list $registry .repository | compact | join "/" }}
{{- if .digest }}
{{- printf "%s@%s" $name .digest }}
{{- else }}
{{- printf "%s:%s" $name (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* For an `imagePullSecrets` of a pod, which is left out when there are none. */}}
{{- define "outrider.imagePullSecrets" -}}
{{- $secrets := list }}
{{- range concat ((.Values.global | default dict).imagePullSecrets | default list) (.Values.imagePullSecrets | default list) }}
{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) }}
{{- end }}
{{- with $secrets | uniq -}}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Where the serving certificate comes from: own, cert-manager or existing. */}}
{{- define "outrider.certificates" -}}
{{- if .Values.existingSecret }}existing
{{- else if .Values.certManager.enabled }}cert-manager
{{- else }}own
{{- end }}
{{- end }}

{{- define "outrider.certificateAnnotation" -}}
{{- if and (eq (include "outrider.certificates" .) "cert-manager") (not .Values.webhook.writeCaBundle) -}}
cert-manager.io/inject-ca-from: {{ printf "%s/outrider-webhook" .Release.Namespace | quote }}
{{- end }}
{{- end }}

{{- /* Names of the kinds that are on, beside those that always are. */}}
{{- define "outrider.kinds" -}}
{{- $kinds := list }}
{{- range $kind, $settings := .Values.kinds }}
{{- if $settings.enabled }}
{{- $kinds = append $kinds $kind }}
{{- end }}
{{- end }}
{{- $kinds | join "," }}
{{- end }}

{{- /* What was made from the code of the kinds that are on, joined: definitions, rules, mutating, validating. */}}
{{- define "outrider.parts" -}}
{{- $files := list "files/always.yaml" }}
{{- range include "outrider.kinds" . | splitList "," | compact }}
{{- $files = append $files (printf "files/kinds/%s.yaml" .) }}
{{- end }}
{{- $parts := dict }}
{{- range $file := $files }}
{{- range $name, $list := $.Files.Get $file | fromYaml }}
{{- $_ := set $parts $name (concat (get $parts $name | default list) $list) }}
{{- end }}
{{- end }}
{{- if not (include "outrider.plugins" .) }}
{{- $rules := list }}
{{- range $parts.rules }}
{{- if not (has "policy.outrider.dev" .apiGroups) }}{{ $rules = append $rules . }}{{ end }}
{{- end }}
{{- $_ := set $parts "rules" $rules }}
{{- $validating := list }}
{{- range $parts.validating }}
{{- if not (has .name (list "admissionplugin.policy.outrider.dev" "clusterlimitrange.policy.outrider.dev" "podsecurityprofile.policy.outrider.dev")) }}{{ $validating = append $validating . }}{{ end }}
{{- end }}
{{- $_ := set $parts "validating" $validating }}
{{- end }}
{{- /* With --reuse-values, an upgrade from a chart without this value does not have it. */}}
{{- if eq (toString ((.Values.rollouts).evict)) "false" }}
{{- $rules := list }}
{{- range $parts.rules }}
{{- if not (has "pods/eviction" .resources) }}{{ $rules = append $rules . }}{{ end }}
{{- end }}
{{- $_ := set $parts "rules" $rules }}
{{- end }}
{{- toJson $parts }}
{{- end }}

{{- /* Whether the kinds AdmissionPlugin, ClusterLimitRange and PodSecurityProfile are installed; they are unless a value turns them off. */}}
{{- define "outrider.plugins" -}}
{{- if ne (toString ((.Values.plugins).enabled)) "false" }}true{{ end }}
{{- end }}

{{- define "outrider.excludedNamespaces" -}}
{{- concat (list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace) (.Values.excludedNamespaces | default list) | sortAlpha | uniq | toJson }}
{{- end }}

{{- /* A webhook of the list in `parts` with what the values say; those for pods are known by their namespaceSelector. */}}
{{- define "outrider.webhook" -}}
{{- $webhook := .webhook }}
{{- $values := .root.Values.webhook }}
{{- $_ := set $webhook.clientConfig.service "namespace" .root.Release.Namespace }}
{{- $_ := set $webhook "timeoutSeconds" $values.timeoutSeconds }}
{{- if $webhook.reinvocationPolicy }}
{{- $_ := set $webhook "reinvocationPolicy" $values.reinvocationPolicy }}
{{- end }}
{{- if $webhook.namespaceSelector }}
{{- $_ := set $webhook "failurePolicy" $values.failurePolicy }}
{{- $byName := first $webhook.namespaceSelector.matchExpressions }}
{{- $_ := set $byName "values" (include "outrider.excludedNamespaces" .root | fromJsonArray) }}
{{- $selector := deepCopy ($values.namespaceSelector | default dict) }}
{{- $_ := set $selector "matchExpressions" (concat $webhook.namespaceSelector.matchExpressions ($selector.matchExpressions | default list)) }}
{{- $_ := set $webhook "namespaceSelector" $selector }}
{{- with $values.objectSelector }}
{{- $_ := set $webhook "objectSelector" . }}
{{- end }}
{{- with $values.matchConditions }}
{{- $_ := set $webhook "matchConditions" . }}
{{- end }}
{{- end }}
{{- toYaml $webhook }}
{{- end }}

{{- /* Whether no replica has answered for the configuration yet, or none does now: it is not there, or turned to Ignore by Outrider.
Without a cluster, as for `helm template`, nothing is known, and nothing would close what was left open. */}}
{{- define "outrider.unanswered" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- $live := lookup "admissionregistration.k8s.io/v1" .kind "" .name }}
{{- if or (not $live) (hasKey ($live.metadata.annotations | default dict) "outrider.dev/fail-open") }}true{{ end }}
{{- end }}
{{- end }}

{{- /* What a pod that runs one command has in common with those of the Deployment. */}}
{{- define "outrider.hookPod" -}}
{{- $root := .root }}
{{- with include "outrider.imagePullSecrets" $root }}
{{ . }}
{{- end }}
{{- with $root.Values }}
{{- with .podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: {{ first $.args | quote }}
  image: {{ include "outrider.image" $root | quote }}
  imagePullPolicy: {{ .image.pullPolicy | quote }}
  args: {{ toJson $.args }}
  {{- with .resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Every object of a hook goes once the hook succeeded, and is made anew where one before was given up. */}}
{{- define "outrider.hookMetadata" -}}
labels:
  {{- include "outrider.labelsWith" (dict "root" .root "ours" (dict "app.kubernetes.io/component" .component)) | nindent 2 }}
annotations:
  helm.sh/hook: {{ .hook | quote }}
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
