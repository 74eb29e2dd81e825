{{- define "water-data.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "water-data.operator" -}}
{{ .Release.Name | trunc 44 | trimSuffix "-" }}-operator
{{- end }}

{{- define "water-data.selectorLabels" -}}
app.kubernetes.io/name: water-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "water-data.labels" -}}
{{ include "water-data.selectorLabels" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: water-data
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "water-data.tag" . | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "water-data.operatorImage" -}}
{{ .Values.image.registry }}/water-operator:{{ include "water-data.tag" . }}
{{- end }}

{{- /* The operator gives the portal's pods the ServiceAccount of this name. */}}
{{- define "water-data.portal" -}}
{{ .Values.api.name }}-portal
{{- end }}

{{- define "water-data.portalLabels" -}}
app.kubernetes.io/name: water-portal
app.kubernetes.io/instance: {{ .Values.api.name }}
app.kubernetes.io/component: portal
app.kubernetes.io/part-of: water-data
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "water-data.tag" . | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "water-data.portalUrl" -}}
{{ .Values.portal.url | default (printf "https://%s" .Values.api.exposure.ingress.host) }}
{{- end }}

{{- define "water-data.url" -}}
{{- with .Values.api.exposure }}
{{- if .url }}{{ .url }}
{{- else if and $.Values.portal.enabled .ingress.enabled }}{{ include "water-data.portalUrl" $ }}
{{- else }}http{{ if .ingress.tlsSecretName }}s{{ end }}://{{ .ingress.host }}
{{- end }}
{{- end }}
{{- end }}

{{- define "water-data.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "water-data.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "water-data.keySecretRules" -}}
# A key's Secret is made beside its ApiKey, and patched when the key is replaced. Its text is read only when somebody else
# wrote the Secret; RBAC cannot tell metadata from the rest.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch]
{{- end }}

{{- define "water-data.customResourceRules" -}}
- apiGroups: [waterdata.dev]
  resources: [apikeys]
  verbs: [get, list, watch, patch]
- apiGroups: [waterdata.dev]
  resources: [waterdataapis]
  verbs: [get, list, watch]
- apiGroups: [waterdata.dev]
  resources: [apikeys/status, waterdataapis/status]
  verbs: [update, patch]
# Where the API server enforces owner references, an owner that blocks its deletion has to be permitted.
- apiGroups: [waterdata.dev]
  resources: [apikeys/finalizers, waterdataapis/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
