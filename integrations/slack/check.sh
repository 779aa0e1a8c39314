#!/bin/bash
# The bot with Slack's own client against a stand-in of its API.
. ../environment.sh slack aiohttp slack-bolt
exec "$PY" check_bot.py
