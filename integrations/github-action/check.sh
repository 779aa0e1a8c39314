#!/usr/bin/env bash
# Everything of the action that needs no GitHub: its steps against a stand-in of the API, and the command on two folders.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pytest -n 0 -q -m "slow or not slow" tests/test_regression.py tests/test_pull_request_action.py
python -m benchmarks.pull_requests --requests 200
