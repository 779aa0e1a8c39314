"""A told event whose every free text is hostile: markup, Markdown, a template, terminal controls, direction marks."""

from typing import Any

from pydantic import ValidationError

from agent0.events.base import Recorded
from tests.test_report import NASTY

HOSTILE = (
    f"{NASTY} [here](javascript:alert(3)) ![x](http://evil.example/x.png) <http://evil.example> `code` # head\n- item"
)
FREE = frozenset(
    {
        *("answer", "by", "chosen", "code", "content", "detail", "error", "excluded", "expected", "fingerprint"),
        *("got", "host", "location", "message", "model", "name", "output", "problem", "prompt", "question", "raw"),
        *("reason", "reply", "requested_model", "reviewer", "subgoals", "text", "traceback", "trajectory_problem"),
        *("tried", "verifier"),
    }
)
"""Fields that models, servers, persons or plugins fill; names of ours lead to pages and stay."""


def hostile_words(recorded: Recorded) -> Recorded:
    """``recorded`` with ``HOSTILE`` in place of every text of ``FREE`` that may hold any."""
    plain = recorded.event.model_dump(mode="json")
    words = _changed(plain, "")
    try:
        event = type(recorded.event).model_validate(words)
    except ValidationError as error:  # a choice of a few, or a text with a limit
        for one in error.errors():
            _restore(words, plain, one["loc"])
        event = type(recorded.event).model_validate(words)
    return recorded.model_copy(update={"event": event})


def _changed(held: Any, name: str) -> Any:
    if isinstance(held, dict):
        return {key: _changed(value, key) for key, value in held.items()}
    if isinstance(held, list):
        return [_changed(value, name) for value in held]
    return HOSTILE if isinstance(held, str) and held and name in FREE else held


def _restore(words: Any, plain: Any, place: tuple[int | str, ...]) -> None:
    """Put the former text back at ``place``."""
    for key in place[:-1]:
        words, plain = words[key], plain[key]
    words[place[-1]] = plain[place[-1]]
