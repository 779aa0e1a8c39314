#!/usr/bin/env bash
# Put an editor into out/editor: code-server, and the Node that it wants. Of its native parts those are compiled without
# which it does not start.
set -euo pipefail
folder=$(cd "$(dirname "$0")/.." && pwd)/out/editor
[ ! -f "$folder/ready" ] || exit 0
command -v "${CHROMIUM:-/usr/bin/chromium}" >/dev/null
mkdir -p "$folder"
cd "$folder"
quiet="--no-audit --no-fund --loglevel error"
[ -f package.json ] || npm init --yes >/dev/null
npm install $quiet --ignore-scripts code-server@4.139.1
npm install $quiet node@24.21.0
header=$(find node_modules -path '*/include/node/node_api.h' | head -1)
home=${header%/include/node/node_api.h}
export PATH="$PWD/$home/bin:$PATH" npm_config_nodedir="$PWD/$home"
cd node_modules/code-server/lib/vscode
npm install $quiet --omit=dev --ignore-scripts
npm rebuild $quiet @vscode/spdlog @vscode/native-watchdog
touch "$folder/ready"
