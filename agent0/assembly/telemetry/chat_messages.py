"""Notices as messages of chat systems: what Slack and Discord document for their incoming webhooks. Several notices are
one message, since both limit how many may be sent."""

import json
from collections.abc import Callable, Sequence

from agent0.events.base import Recorded
from agent0.projections.wording import describe

SLACK_CHARACTERS, DISCORD_CHARACTERS = 4000, 2000
"""Slack recommends to keep a text below the one and cuts it at ten times as much; Discord refuses more than the other.
https://docs.slack.dev/reference/methods/chat.postMessage, https://docs.discord.com/developers/resources/webhook"""
LINE_CHARACTERS = 500
Message = Callable[[Sequence[Recorded]], bytes]


def slack_message(news: Sequence[Recorded]) -> bytes:
    """Make the JSON body for a Slack channel that is notified of ``news``. What models wrote mentions no person: the
    characters that make Slack's own marks are escaped, as Slack asks."""
    lines = [_line(stored).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for stored in news]
    return json.dumps({"text": _within(lines, SLACK_CHARACTERS)}).encode()


def discord_message(news: Sequence[Recorded]) -> bytes:
    """Make the JSON body for a Discord channel that is notified of ``news``; it mentions no person."""
    text = _within([_line(stored) for stored in news], DISCORD_CHARACTERS)
    return json.dumps({"content": text, "allowed_mentions": {"parse": []}}).encode()


def _line(stored: Recorded) -> str:
    text = " ".join(f"{stored.run}: {describe(stored)}".split())
    return text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…"


def _within(lines: Sequence[str], most: int) -> str:
    """The newest ``lines`` that fit, oldest first, behind the number of those left out."""
    kept: list[str] = []
    room = most - len(f"{len(lines)} earlier notices: agent0 events tail")
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return "\n".join([*([f"{left} earlier notices: agent0 events tail"] if left else []), *reversed(kept)])
