#!/usr/bin/env bash
# Compares base and change by `agent0 bench regression`; comment.md, result.json and report.html come to one folder.
# Names come as variables, never as part of a script. What a change's own code prints gives the runner no commands, and
# it is not told where the runner reads some.
set -euo pipefail

folder="${RUNNER_TEMP:?}/agent0-regression"
mkdir -p "$folder"
words=(--on="$BENCHMARKS" --items="$ITEMS" --loss="$LOSS" --changing="$CHANGING" --title="$TITLE")
[ -z "$PROMPT" ] || words+=(--prompt="$PROMPT")
[ -z "$REPLAY" ] || words+=(--replay="$REPLAY")

pause="$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')"
echo "::stop-commands::$pause"
unset_all=(env -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STEP_SUMMARY -u GITHUB_STATE)
code=0
"${unset_all[@]}" agent0 bench regression "${words[@]}" --write="$folder/comment.md" --json -- "$BASE" "$CHANGE" \
	>"$folder/result.json" || code=$?
if [ "$code" = 0 ] || [ "$code" = 3 ]; then
	run="$(python3 -I -c 'import json, sys; print(json.load(open(sys.argv[1]))["costs"][1]["run"])' "$folder/result.json")"
	if [ -n "$REPLAY" ]; then
		agent0 report --out="$folder/report.html" -- "$REPLAY" || true
	else
		agent0 bench report --out="$folder/report.html" -- "$run" || true
	fi
	cat "$folder/comment.md"
else
	printf '<!-- agent0 bench regression -->\n### Agent0: nothing was compared\n\nThe log of this job says why.\n' \
		>"$folder/comment.md"
fi
echo "::$pause::"

case "$code" in 0) blocked=false ;; 3) blocked=true ;; *) blocked="" ;; esac
printf 'folder=%s\ncode=%s\nblocked=%s\n' "$folder" "$code" "$blocked" >>"$GITHUB_OUTPUT"
