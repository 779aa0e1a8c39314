#!/usr/bin/env bash
# Every command of the skill runs, in its order, in an empty data folder.
set -euo pipefail
exec python run_steps.py
