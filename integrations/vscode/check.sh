#!/usr/bin/env bash
# Types, tests against a server that runs, the packed extension, and that one in a real editor.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$(cd ../.. && pwd)/.venv/bin:$PATH"

node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || {
  echo "The extension is built and tested by Node 20 or newer."
  exit 77
}
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --prefer-offline --no-audit --no-fund --silent || {
  echo "npm cannot fetch TypeScript, esbuild and vsce."
  exit 77
}
npm run --silent check
npm test --silent
npm run --silent package

# The editor is built once, of npm's packages code-server and node, which has the version that it wants.
if ! bash test/get_editor.sh; then
  echo "vscode: no editor can be had here: the tests in it are left out"
  exit 0
fi
node build.mjs --editor
node --test out/editor.check.js
