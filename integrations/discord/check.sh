#!/bin/bash
# The bot with discord.py against a stand-in of Discord's gateway and REST API.
. ../environment.sh discord aiohttp discord.py
exec "$PY" check_bot.py
