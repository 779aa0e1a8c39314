#!/usr/bin/env bash
# Types, tests against a server that runs, the packed extension, and that one in a real editor.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$(cd ../.. && pwd)/.venv/bin:$PATH"

command -v npm >/dev/null || { echo "npm is not here"; exit 77; }
npm ci --no-audit --no-fund --loglevel error
npm run --silent check
npm test --silent
npm run --silent package
unzip -l out/agent0.vsix | tail -1

# The editor is built once, of npm's packages code-server and node, which has the version that it wants.
if ! bash test/get_editor.sh; then
  echo "vscode: no editor can be had here: the tests in it are left out"
  exit 0
fi
node build.mjs --editor
node --test out/editor.check.js
