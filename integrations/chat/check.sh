#!/bin/bash
# The core of both bots.
cd ../.. && exec python -m pytest -q -n 0 tests/test_chat_bots.py
