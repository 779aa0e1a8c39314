#!/bin/bash
# The receiver against what Agent0 sends, and against forgeries.
cd ../.. && exec python -m pytest -q -n 0 tests/test_telemetry.py -k webhook
