{{- /* What a schema cannot check, and what would fail later: in a replica that ends at once, in cert-manager, or without a message. */}}
{{- define "outrider.check" -}}
{{- include "outrider.checkTimes" . }}
{{- include "outrider.checkWords" . }}
{{- include "outrider.checkTurnedOff" . }}
{{- include "outrider.checkPorts" . }}
{{- include "outrider.checkImage" . }}
{{- include "outrider.checkReplicas" . }}
{{- include "outrider.checkTest" . }}
{{- if eq (include "outrider.certificates" .) "cert-manager" }}
{{- include "outrider.checkCertificate" . }}
{{- end }}
{{- end }}

{{- /* In a release without a namespace of its own the default is excluded too, of which the notes warn. */}}
{{- define "outrider.checkTest" -}}
{{- with .Values.test.namespace }}
{{- if and (ne . $.Release.Namespace) (has . (include "outrider.excludedNamespaces" $ | fromJsonArray)) }}
{{- fail (printf "test.namespace is %s, whose pods are never injected: `helm test` would fail; name a namespace that is not excluded" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A duration such as 1m30s in seconds. */}}
{{- define "outrider.seconds" -}}
{{- $seconds := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 }}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get $seconds $unit)) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- define "outrider.checkTimes" -}}
{{- with .Values }}
{{- $drain := include "outrider.seconds" .drainDelay | float64 }}
{{- if and (gt $drain 0.0) (ge $drain (float64 .terminationGracePeriodSeconds)) }}
{{- fail (printf "drainDelay is %s and terminationGracePeriodSeconds is %v: a replica would be killed while it serves on; what runs then has 15 s more, so set terminationGracePeriodSeconds to %v or more" .drainDelay .terminationGracePeriodSeconds (add (ceil $drain) 15)) }}
{{- end }}
{{- with .leaderElection }}
{{- $lease := include "outrider.seconds" .leaseDuration | float64 }}
{{- $renew := include "outrider.seconds" .renewDeadline | float64 }}
{{- $retry := include "outrider.seconds" .retryPeriod | float64 }}
{{- if not .enabled }}
{{- else if or (lt $lease 1.0) (le $retry 0.0) }}
{{- fail (printf "leaderElection.leaseDuration is %s and retryPeriod is %s: they must be 1s at least, and more than nothing" .leaseDuration .retryPeriod) }}
{{- else if gt $lease 600.0 }}
{{- fail (printf "leaderElection.leaseDuration is %s and must be at most 10m: there would be no leader for so long after the leader was killed" .leaseDuration) }}
{{- else if le $lease $renew }}
{{- fail (printf "leaderElection.leaseDuration is %s and must be longer than renewDeadline, which is %s" .leaseDuration .renewDeadline) }}
{{- else if le $renew (mulf 1.2 $retry) }}
{{- fail (printf "leaderElection.renewDeadline is %s and must be longer than 1.2 times retryPeriod, which is %s" .renewDeadline .retryPeriod) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Objects of a kind that is converted could not be listed once no replica converts them, and their namespaces not be deleted. So such a
       kind is turned off when it has no objects, or `outrider uninstall --kind` has released them: then the API server serves the
       stored version alone. */}}
{{- define "outrider.checkTurnedOff" -}}
{{- $running := lookup "apps/v1" "Deployment" .Release.Namespace (include "outrider.fullname" .) }}
{{- $was := list }}
{{- range (($running.spec).template.spec).containers }}
{{- range .args }}
{{- if hasPrefix "--enable-kinds=" . }}
{{- $was = trimPrefix "--enable-kinds=" . | splitList "," }}
{{- end }}
{{- end }}
{{- end }}
{{- $on := include "outrider.kinds" . | splitList "," }}
{{- range $kind := $was }}
{{- if not (has $kind $on) }}
{{- range (printf "files/kinds/%s.yaml" $kind | $.Files.Get | fromYaml).definitions }}
{{- $stored := "" }}
{{- range .spec.versions }}
{{- if .storage }}
{{- $stored = .name }}
{{- end }}
{{- end }}
{{- $isServed := true }}
{{- range ((lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .metadata.name).spec).versions }}
{{- $isServed = and $isServed .served }}
{{- end }}
{{- if and .spec.conversion $isServed ($.Capabilities.APIVersions.Has (printf "%s/%s/%s" .spec.group $stored .spec.names.kind)) }}
{{- with (lookup (printf "%s/%s" .spec.group $stored) .spec.names.kind "" "").items }}
{{- $one := (first .).metadata }}
{{- fail (printf "kinds.%s.enabled is false, and the kind is on and has %d objects, such as %s/%s, which no replica would serve. Delete them; or release them with `outrider uninstall --kind %s`; or leave the kind on" $kind (len .) $one.namespace $one.name $kind) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "outrider.checkWords" -}}
{{- range splitList "," .Values.log.level }}
{{- $level := splitList "=" . | last | trim }}
{{- if not (has (lower $level) (list "off" "error" "warn" "info" "debug" "trace")) }}
{{- fail (printf "log.level is %q: there is no level %q; write error, warn, info, debug or trace, or a list such as info,kube=warn" $.Values.log.level $level) }}
{{- end }}
{{- end }}
{{- $known := list "sidecarset" }}
{{- range include "outrider.kinds" . | splitList "," | compact }}
{{- /* A kind without a controller needs no rights. */}}
{{- if (printf "files/kinds/%s.yaml" . | $.Files.Get | fromYaml).rules }}
{{- $known = append $known . }}
{{- end }}
{{- end }}
{{- range splitList "," .Values.controllers }}
{{- $name := . | trim | trimPrefix "-" }}
{{- if not (has $name (concat $known (list "*" ""))) }}
{{- fail (printf "controllers is %q: there is no controller %q; there are %s, * for all, and -NAME to leave one out" $.Values.controllers $name (join ", " $known)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "outrider.checkPorts" -}}
{{- $ports := dict "webhook" .Values.ports.webhook "health" .Values.ports.health }}
{{- if .Values.metrics.enabled }}
{{- $_ := set $ports "metrics" .Values.ports.metrics }}
{{- end }}
{{- range $name, $port := $ports }}
{{- range $other, $same := omit $ports $name }}
{{- if eq (int $port) (int $same) }}
{{- fail (printf "ports.%s and ports.%s are both %v: a pod listens once on a port" $name $other $port) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "outrider.checkImage" -}}
{{- $image := include "outrider.image" . }}
{{- if or (contains "//" $image) (hasPrefix "/" $image) }}
{{- fail (printf "the image would be %s: image.registry, or global.imageRegistry, is a host, with a port or a path if need be, without a scheme such as https:// and without a slash at its end" $image) }}
{{- end }}
{{- end }}

{{- define "outrider.checkReplicas" -}}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas is %v and must not be more than maxReplicas, which is %v" .minReplicas .maxReplicas) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Bits of the key; nothing where its algorithm has no choice. */}}
{{- define "outrider.keySize" -}}
{{- with .Values.certManager }}
{{- if ne .algorithm "Ed25519" }}
{{- .size | default (ternary 2048 256 (eq .algorithm "RSA")) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "outrider.checkCertificate" -}}
{{- $size := include "outrider.keySize" . }}
{{- with .Values.certManager }}
{{- $sizes := get (dict "RSA" (list "2048" "3072" "4096" "8192") "ECDSA" (list "256" "384" "521") "Ed25519" (list "")) .algorithm }}
{{- if not (has $size $sizes) }}
{{- fail (printf "certManager.size is %s, and a key of the algorithm %s has one of %s bits; leave it out for the first" $size .algorithm (join ", " $sizes)) }}
{{- end }}
{{- if ge (include "outrider.seconds" .renewBefore | float64) (include "outrider.seconds" .duration | float64) }}
{{- fail (printf "certManager.renewBefore is %s and must be shorter than duration, which is %s" .renewBefore .duration) }}
{{- end }}
{{- end }}
{{- end }}
