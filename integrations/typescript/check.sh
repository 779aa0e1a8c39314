#!/usr/bin/env bash
# The types are those of the API, the client does what the table of cases says, and what npm packs installs and imports.
set -euo pipefail
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || {
	echo "The client for TypeScript wants Node 20 or newer." >&2
	exit 77
}
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --prefer-offline --no-audit --no-fund --silent || {
	echo "npm cannot fetch TypeScript and openapi-typescript." >&2
	exit 77
}
python describe.py | diff - src/api.ts >/dev/null || {
	echo "src/api.ts is not what the API says of itself: npm run generate" >&2
	exit 1
}
npm run --silent build
npm run --silent test
