#!/bin/bash
# Builds the images where there is neither a container engine nor a registry, and carries out a run in each of them:
# deploy/build.sh [core|api|train]... Needs root, and debootstrap and buildah (apt-get install), which builds in a
# chroot. The base is Debian 12 with its own Python 3.11 in place of the pinned image, so digests differ. SSL_CERT_FILE
# names certificates of a proxy, where one is in between.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
base=localhost/agent0-base work=$(mktemp -d) containers=()
packages=python3-dev,python3-venv,python3-pip,python-is-python3,ca-certificates

for program in debootstrap buildah unshare; do
	command -v "$program" >/dev/null || { echo "deploy/build.sh needs $program, which is not on PATH" >&2; exit 5; }
done

# shellcheck disable=SC2329 # it is called by trap
clean() {
	[ ${#containers[@]} = 0 ] || buildah rm "${containers[@]}" >/dev/null
	rm -rf "$work"
}
trap clean EXIT

if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
	debootstrap --variant=minbase --include="$packages" bookworm "$work/base" >/dev/null
	certificates=/etc/ssl/certs/ca-certificates.crt
	[ -z "${SSL_CERT_FILE:-}" ] || cp "$SSL_CERT_FILE" "$work/base$certificates"
	containers+=("$(buildah from scratch)")
	buildah copy --quiet "${containers[-1]}" "$work/base" / >/dev/null
	buildah config --env PATH=/usr/sbin:/usr/bin --env "PIP_CERT=$certificates" "${containers[-1]}"
	buildah commit --quiet "${containers[-1]}" "$base" >/dev/null
fi
for target in "${@:-core}"; do
	buildah build --quiet --layers --build-arg "PYTHON=$base" --target "$target" --tag "agent0:$target" \
		--file infra/images/Dockerfile . >/dev/null
	containers+=("$(buildah from "agent0:$target")")
	[ "$(buildah run "${containers[-1]}" -- id -u)" = 10001 ]
	root=$(buildah mount "${containers[-1]}")
	echo "$target: $(du -sm "$root/agent0" | cut -f1) MiB in $(find "$root/agent0" -type f | wc -l) files over the base"
	# shellcheck disable=SC2016 # the inner shell expands
	unshare --mount sh -euc '
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys"
		exec chroot "$1" env HOME=/tmp AGENT0_HOME=/tmp/home PATH=/agent0/bin:/usr/sbin:/usr/bin sh -euc "
			agent0 run start --profile scripted --iterations 1 --tasks 4 --attempts 2 --name built >/dev/null
			agent0 events verify >/dev/null"
	' chroot "$root"
done
echo "deploy/build.sh: all well"
