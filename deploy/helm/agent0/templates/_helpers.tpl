{{- define "agent0.name" -}}
{{- if contains "agent0" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-agent0" (.Release.Name | trunc 33 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "agent0.selector" -}}
app.kubernetes.io/name: agent0
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "agent0.match" -}}
{{ dict "matchLabels" (include "agent0.selector" . | fromYaml) | toJson }}
{{- end }}

{{- define "agent0.labels" -}}
{{ include "agent0.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "agent0.image" -}}
{{ printf "%s:%s-%s" .root.Values.image.repository (.root.Values.image.version | default .root.Chart.AppVersion) .image }}
{{- end }}

{{- define "agent0.nats" -}}
{{- if contains "nats" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-nats{{ end }}
{{- end }}

{{- define "agent0.settings" -}}
AGENT0_PROFILE: {{ .Values.profile | quote }}
AGENT0_NATS_URL: {{ .Values.log.url | default (printf "tls://%s:4222" (include "agent0.nats" .)) | quote }}
AGENT0_NATS__REPLICAS: {{ .Values.log.replicas | quote }}
AGENT0_NATS__CREDENTIALS: /etc/agent0/log/user.nk
AGENT0_NATS__TLS_CA: /etc/agent0/log/ca.pem
AGENT0_ARTIFACTS__STORE: nats
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A container: root, component, name, image, user of the log, args, env, models, sandbox. */}}
{{- define "agent0.container" -}}
name: {{ .name }}
image: {{ include "agent0.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .args }}
envFrom:
  - configMapRef: {name: {{ include "agent0.name" .root }}-settings}
  {{- if and .models .root.Values.vendorKeys }}
  - secretRef: {name: {{ .root.Values.vendorKeys }}}
  {{- end }}
{{- with .env }}
env: {{- range $name, $value := . }}
  - {name: {{ $name }}, value: {{ $value | quote }}}{{ end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  {{- if .sandbox }}
  procMount: Unmasked
  seccompProfile: {type: Unconfined}
  appArmorProfile: {type: Unconfined}
  {{- else }}
  seccompProfile: {type: RuntimeDefault}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  - {name: log-{{ .user }}, mountPath: /etc/agent0/log, readOnly: true}
  {{- if and .models .root.Values.models.claim }}
  - {name: models, mountPath: /models, readOnly: true}
  {{- end }}
{{- end }}

{{/* What every pod has; workers' data folders are scratch, the projector's is a claim. */}}
{{- define "agent0.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ range . }}
  - {name: {{ . }}}{{ end }}
{{- end }}
securityContext: {fsGroup: 10001, fsGroupChangePolicy: OnRootMismatch}
{{- end }}

{{- define "agent0.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- range .users }}
- {name: log-{{ . }}, secret: {secretName: {{ $.root.Values.log.keys }}-{{ . }}, defaultMode: 0440}}
{{- end }}
{{- if and .models .root.Values.models.claim }}
- {name: models, persistentVolumeClaim: {claimName: {{ .root.Values.models.claim }}, readOnly: true}}
{{- end }}
{{- end }}

{{/* Pods begin once the log is as it must be. */}}
{{- define "agent0.awaitLog" -}}
{{- $scope := merge (dict "name" "await-log" "args" list "env" dict) . }}
{{- $_ := set $scope "sandbox" false }}{{ $_ := set $scope "models" false }}{{/* merge takes false for unset */}}
{{- $container := include "agent0.container" $scope | fromYaml }}
{{- $script := "until agent0 log check; do sleep 5; done" }}
{{- toYaml (merge (dict "command" (list "sh" "-c" $script)) (omit $container "args")) }}
{{- end }}
