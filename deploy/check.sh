#!/bin/bash
# What no test can do without a container engine: builds the images, has Compose run a run, then Helm on a cluster of kind.
# Needs docker with buildx and compose, kind, kubectl, helm, and agent0 on PATH for the keys. Everything it makes is named
# agent0-check and is removed at the end. deploy/check.sh [compose|kind]: one of the two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=agent0-check parts=${1:-compose kind} work=$(mktemp -d)
sizes=(--profile tiny --iterations 1 --tasks 8 --attempts 4)

need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || { echo "deploy/check.sh needs $program, which is not on PATH" >&2; exit 5; }
	done
}

compose() {
	docker compose --project-name "$name" --env-file "$work/.env" "$@"
}

# shellcheck disable=SC2329 # it is called by trap
clean() {
	[ ! -e "$work/.env" ] || compose down --volumes --remove-orphans || true
	[ ! -e "$work/kind" ] || kind delete cluster --name "$name" || true
	rm -rf "$work"
}
trap clean EXIT

need docker agent0 openssl
docker info >/dev/null
for target in core api train; do
	docker build --file infra/images/Dockerfile --target "$target" --tag "agent0:$target" --tag "agent0:0.1.0-$target" .
	[ "$(docker run --rm --entrypoint id "agent0:$target" -u)" = 10001 ]
	docker run --rm --read-only --tmpfs /tmp "agent0:$target" --help >/dev/null
	docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' "agent0:$target"
done

if [[ " $parts " == *" compose "* ]]; then
	for role in ADMIN APP READER; do echo "NATS_${role}_PASSWORD=p$(openssl rand -hex 24)"; done >"$work/.env"
	echo COMPOSE_PROFILES=local >>"$work/.env"
	compose run --rm cli api key add check --scope submit
	compose up --detach --wait
	compose exec student agent0 sandbox check
	compose exec server agent0 run start "${sizes[@]}" --no-handlers
	compose exec server agent0 events verify
	compose down --volumes
	rm "$work/.env"
fi

if [[ " $parts " == *" kind "* ]]; then
	need kind kubectl helm
	touch "$work/kind"
	kind create cluster --name "$name" --kubeconfig "$work/kubeconfig"
	export KUBECONFIG="$work/kubeconfig"
	for target in core api train; do kind load docker-image --name "$name" "agent0:0.1.0-$target"; done
	agent0 cluster keys "$work/keys" --host=agent0-nats{,-{0..2}.agent0-nats-headless} --at /etc/agent0/log
	for folder in server admin conductor teacher student verifier trainer projector api; do
		kubectl create secret generic "agent0-key-$folder" --from-file="$work/keys/$folder"
	done
	AGENT0_HOME="$work/home" agent0 api key add check --scope submit >/dev/null
	kubectl create secret generic agent0-api --from-file="$work/home/api-keys.json"
	cp -r deploy/helm/agent0 "$work/chart"
	helm dependency build "$work/chart" || { mkdir -p "$work/chart/charts" && cp -r deploy/helm/nats "$work/chart/charts/"; }
	helm install agent0 "$work/chart" --wait --timeout 15m --set nats.config.jetstream.fileStore.pvc.size=4Gi \
		--set-string env.AGENT0_ARTIFACTS__MAX_BYTES=1073741824 --set-string env.AGENT0_NATS__MAX_BYTES=1073741824 \
		--set-string env.AGENT0_SANDBOX__WORKERS=1
	helm test agent0
	kubectl exec deployment/agent0-student -- agent0 sandbox check
	kubectl exec agent0-projector-0 --container api -- agent0 cluster status
	kubectl exec agent0-projector-0 --container api -- agent0 run start "${sizes[@]}" --no-handlers
	kubectl exec agent0-projector-0 --container projector -- agent0 metrics | grep '^agent0_runs{status="finished"} 1'
	helm upgrade agent0 "$work/chart" --reuse-values --wait --timeout 15m --set roles.student.replicas=3
	helm uninstall agent0 --wait
fi
echo "deploy/check.sh: all well"
