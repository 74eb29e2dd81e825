{{- /*
What a JSON schema can only refuse, this refuses with a reason and a remedy. Types, bounds and choices stay in
values.schema.json, whose messages say all there is to say.
*/}}

{{- /* Arguments: the value's path, the value, the pattern, what is expected. */}}
{{- define "water-data.match" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}{{ $pattern := index . 2 }}{{ $expected := index . 3 }}
{{- if not (regexMatch $pattern $value) }}
{{- fail (printf "%s: %q is not valid: give %s" $path $value $expected) }}
{{- end }}
{{- end }}

{{- define "water-data.validate" -}}
{{- $name := "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$" }}
{{- $tag := include "water-data.tag" . }}
{{- if eq $tag "latest" }}
{{- fail "image.tag: \"latest\" names no version, and status.version is the tag: give the tag of a release" }}
{{- end }}
{{- include "water-data.match" (list "image.tag" $tag "^[A-Za-z0-9_][A-Za-z0-9._-]*$" "letters, digits, '.', '_' and '-'") }}
{{- include "water-data.match" (list "image.registry" .Values.image.registry "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?(/[A-Za-z0-9._-]+)*$" "a host and a path without a scheme, such as registry.example/water") }}
{{- range list "postgres" "redis" }}
{{- $secret := (index $.Values .).existingSecret }}
{{- $redis := $.Values.portal.enabled | ternary "operator-url, gate-url and portal-url" "operator-url and gate-url" }}
{{- $keys := eq . "postgres" | ternary "owner-url, writer-url and reader-url" $redis }}
{{- if and $.Values.api.create (not $secret) }}
{{- fail (printf "%s.existingSecret: is empty: give the name of a Secret in this namespace with the keys %s" . $keys) }}
{{- end }}
{{- if $secret }}
{{- include "water-data.match" (list (printf "%s.existingSecret" .) $secret $name "a Secret's name: lower-case letters, digits, '-' and '.'") }}
{{- end }}
{{- end }}
{{- range $index, $namespace := .Values.rbac.apiNamespaces }}
{{- include "water-data.match" (list (printf "rbac.apiNamespaces[%d]" $index) $namespace "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" "a namespace: lower-case letters, digits and '-'") }}
{{- end }}
{{- range $index, $namespace := .Values.rbac.keyNamespaces }}
{{- include "water-data.match" (list (printf "rbac.keyNamespaces[%d]" $index) $namespace "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" "a namespace: lower-case letters, digits and '-'") }}
{{- end }}
{{- if and .Values.rbac.keyNamespaces (ne .Values.rbac.scope "Cluster") }}
{{- fail "rbac.keyNamespaces: is not empty, but the operator acts in the release's namespace only: set rbac.scope to Cluster, or remove the namespaces" }}
{{- end }}
{{- if and .Values.rbac.apiNamespaces (ne .Values.rbac.scope "Cluster") }}
{{- fail "rbac.apiNamespaces: is not empty, but the operator acts in the release's namespace only: set rbac.scope to Cluster, or remove the namespaces" }}
{{- end }}
{{- $loads := (include "water-data.loads" . | fromYaml).loads }}
{{- if and $loads (not .Values.postgres.existingSecret) }}
{{- fail "postgres.existingSecret: is empty, but loads write into the database: give the name of a Secret in this namespace with the key writer-url" }}
{{- end }}
{{- $names := dict }}
{{- range $loads }}
{{- if hasKey $names .name }}
{{- fail (printf "ingest.loads: two loads are named %q: name each of them apart; ingest.vigieau is named vigieau" .name) }}
{{- end }}
{{- $_ := set $names .name true }}
{{- end }}
{{- range $index, $rule := .Values.ingest.egress }}
{{- include "water-data.match" (list (printf "ingest.egress[%d].cidr" $index) $rule.cidr "^[0-9a-fA-F.:]+/[0-9]{1,3}$" "a network, such as 10.1.0.0/16") }}
{{- end }}
{{- if and .Values.portal.enabled .Values.api.create }}
{{- include "water-data.validatePortal" . }}
{{- end }}
{{- with .Values.api }}
{{- include "water-data.match" (list "api.name" .name "^[a-z]([a-z0-9-]*[a-z0-9])?$" "lower-case letters, digits and '-', beginning with a letter") }}
{{- range $index, $plan := .plans }}
{{- include "water-data.match" (list (printf "api.plans[%d].name" $index) $plan.name "^[A-Za-z][A-Za-z0-9-]*$" "letters, digits and '-', beginning with a letter") }}
{{- end }}
{{- with .exposure.url }}
{{- include "water-data.match" (list "api.exposure.url" . "^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$" "http:// or https://, a lower-case host and perhaps a port, without a path, such as https://water.example") }}
{{- end }}
{{- if .exposure.ingress.enabled }}
{{- include "water-data.match" (list "api.exposure.ingress.host" .exposure.ingress.host "^(\\*\\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$" "a lower-case host name, such as water.example") }}
{{- end }}
{{- if and $.Values.api.create .exposure.ingress.enabled (not .exposure.trustedProxies) (not .exposure.trustedProxiesNone) }}
{{- fail "api.exposure.trustedProxies: is empty, so that all clients of the Ingress would share the address of its controller, one allowance of wrong keys and 256 connections: give the networks of the controller's pods, such as 10.0.0.0/8, or set api.exposure.trustedProxiesNone to true" }}
{{- end }}
{{- if and .exposure.trustedProxies .exposure.trustedProxiesNone }}
{{- fail "api.exposure.trustedProxiesNone: is true, but api.exposure.trustedProxies is not empty: remove one of them" }}
{{- end }}
{{- range $index, $network := .exposure.trustedProxies }}
{{- include "water-data.match" (list (printf "api.exposure.trustedProxies[%d]" $index) $network "^[0-9a-fA-F.:]+/[0-9]{1,3}$" "a network, such as 10.0.0.0/8") }}
{{- end }}
{{- range $index, $rule := .networkPolicy.egress }}
{{- include "water-data.match" (list (printf "api.networkPolicy.egress[%d].cidr" $index) $rule.cidr "^[0-9a-fA-F.:]+/[0-9]{1,3}$" "a network, such as 10.1.0.0/16") }}
{{- end }}
{{- with .telemetry.logFilter }}
{{- include "water-data.match" (list "api.telemetry.logFilter" . "^(([A-Za-z_][A-Za-z0-9_:]*=)?(off|error|warn|info|debug|trace)(,|$))+$" "a level for all and others by target, such as info,water_gate=debug") }}
{{- end }}
{{- with .telemetry.otlpEndpoint }}
{{- include "water-data.match" (list "api.telemetry.otlpEndpoint" . "^http://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:]+\\])(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~/-]*)?$" "the address of a collector in the cluster, such as http://collector.observability:4318") }}
{{- end }}
{{- if and (ne .apiKeys.allowedNamespaces.from "Same") (ne $.Values.rbac.scope "Cluster") }}
{{- fail (printf "api.apiKeys.allowedNamespaces.from: %q needs an operator that sees other namespaces: set rbac.scope to Cluster" .apiKeys.allowedNamespaces.from) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "water-data.validatePortal" -}}
{{- $ingress := .Values.api.exposure.ingress }}
{{- $name := "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$" }}
{{- with .Values.portal }}
{{- if and (not .url) (not $ingress.enabled) }}
{{- fail "portal.url: is empty, and there is no Ingress whose host it could be: give the address that browsers use, such as https://water.example" }}
{{- end }}
{{- $url := include "water-data.portalUrl" $ }}
{{- include "water-data.match" (list "portal.url" $url "^https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$" "https://, a lower-case host and perhaps a port, without a path, such as https://water.example") }}
{{- $host := regexReplaceAll ":[0-9]+$" (trimPrefix "https://" $url) "" }}
{{- if and $ingress.enabled (ne $host $ingress.host) }}
{{- fail (printf "portal.url: its host is %s, but the Ingress answers for %s: make them the same, or remove portal.url" $host $ingress.host) }}
{{- end }}
{{- include "water-data.match" (list "portal.oidc.issuer" .oidc.issuer "^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~%/-]*)?$" "the https address that the identity provider's tokens name as their issuer, such as https://id.example/realms/water") }}
{{- if not .oidc.existingSecret }}
{{- fail (printf "portal.oidc.existingSecret: is empty: give the name of a Secret in this namespace whose key %s is the secret of the client %s at the identity provider" .oidc.secretKey .oidc.clientId) }}
{{- end }}
{{- include "water-data.match" (list "portal.oidc.existingSecret" .oidc.existingSecret $name "a Secret's name: lower-case letters, digits, '-' and '.'") }}
{{- with .oidc.caConfigMap }}
{{- include "water-data.match" (list "portal.oidc.caConfigMap" . $name "a ConfigMap's name: lower-case letters, digits, '-' and '.'") }}
{{- end }}
{{- if not (has "openid" .oidc.scopes) }}
{{- fail "portal.oidc.scopes: lacks openid, without which the identity provider gives no ID token: add it" }}
{{- end }}
{{- with .oidc.accounts }}
{{- if not (contains "(?<account>" (replace "(?P<" "(?<" .pattern)) }}
{{- fail (printf "portal.oidc.accounts.pattern: %q has no group account: add (?<account>[^:]+) where the account stands in the claim's values" .pattern) }}
{{- end }}
{{- if .defaultPlan }}
{{- $plan := .defaultPlan }}
{{- $found := false }}
{{- range $.Values.api.plans }}{{- if eq .name $plan }}{{- $found = true }}{{- end }}{{- end }}
{{- if not $found }}
{{- fail (printf "portal.oidc.accounts.defaultPlan: %q is none of api.plans: name one of them, or add it there" $plan) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
