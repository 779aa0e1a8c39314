"""What of a run's events becomes which message, and what a command asks for: no network, no clock, both bots alike."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent0.errors import ConfigError, escaped

LONGEST = 1500
"""Characters of a text that is not ours; Discord takes 2,000 a message, Slack 3,000 a block."""
REVIEWS = 5
"""Reviews of an iteration that are asked for one by one."""
STATUSES = ("RunStarted", "RunPaused", "RunResumed", "RunFailed", "RunFinished", "RunCancelled")
TYPES = (
    *STATUSES,
    *("AlarmRaised", "AlarmResolved", "CheckpointEvaluated", "CheckpointPromoted", "CheckpointRejected"),
    *("BudgetChanged", "ResultVerified"),
)
"""Event classes that the bots follow."""
READING = {"help": "", "runs": "", "status": "RUN", "why": "RUN", "alarms": "[RUN]", "budget": "", "reviews": "RUN"}
DECIDING = {"start": "TEMPLATE", "pause": "RUN", "resume": "RUN", "cancel": "RUN"}
"""Verbs with what follows them; the second need a user who is allowed."""
_tail = re.compile(r"\[event (\d+)\]\s*$")


@dataclass(frozen=True)
class Message:
    """A message in the thread of ``run``. ``text`` is harmless already; ``attempt``: its answer awaits a verdict."""

    run: str
    seq: int
    text: str
    attempt: str = ""

    @property
    def whole(self) -> str:
        """The text with the event that it tells of, by which it is known again."""
        return f"{self.text}\n[event {self.seq}]"


@dataclass
class Followed:
    """What is known of what was told: the last event, threads by run, levels of budgets, reviews asked for."""

    seq: int
    threads: dict[str, str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    reviews: dict[str, int] = field(default_factory=dict)
    sending: int = 0
    """The event whose message may have been sent when the process ended; 0: none."""


@dataclass(frozen=True)
class Command:
    """What a user asks for: a verb of ``READING`` or ``DECIDING``, and the word behind it."""

    verb: str
    word: str


def harmless(text: str) -> str:
    """``text`` of a model or a stranger so that it mentions nobody, links nowhere and obeys no terminal."""
    plain = escaped(text[: LONGEST + 1]).replace("@", "\uff20").replace("://", ": //")
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"


def event_of(text: str) -> int:
    """The event that a message of ours tells of; 0 where it tells of none."""
    found = _tail.search(text)
    return int(found[1]) if found else 0


def message_of(row: Mapping[str, Any], followed: Followed, *, asks: bool = False) -> Message | None:
    """The message that the event ``row`` makes, None for none; ``followed`` notes budgets and reviews. ``asks``:
    its run asks a person where no verdict can be given."""
    kind, data, told = row["type"], row["data"], harmless(" ".join(row["text"].split()))
    if kind == "ResultVerified":
        return (
            _review(row, followed, told) if asks and data["correct"] is None and data["verifier"] != "person" else None
        )
    if kind == "BudgetChanged":
        return _budget(row, followed)
    if kind == "CheckpointEvaluated" and (data["forced_tool"] or data["split"] not in ("validation", "test")):
        return None
    if kind == "AlarmResolved":
        told = f"alarm {harmless(data['alarm'])} is over"
    elif kind == "AlarmRaised":
        told = f"alarm, {told}"
    elif kind in ("RunPaused", "RunResumed", "RunCancelled"):
        told = f"run {kind.removeprefix('Run').lower()} {harmless(data.get('reason', ''))}".rstrip()
    return Message(row["run"], row["seq"], told)


def _review(row: Mapping[str, Any], followed: Followed, told: str) -> Message | None:
    place = f"{row['run']} {row['data']['iteration']}"
    count = followed.reviews[place] = followed.reviews.get(place, 0) + 1
    if count > REVIEWS + 1:
        return None
    if count > REVIEWS:
        text = f"more answers await a verdict: agent0 task review {row['run']}"
        return Message(row["run"], row["seq"], text)
    attempt = row["data"]["attempt"]
    return Message(row["run"], row["seq"], f"Is this right? {attempt}: {told}", attempt)


def _budget(row: Mapping[str, Any], followed: Followed) -> Message | None:
    data = row["data"]
    name, level = f"{data['scope']} {data['name']}", data["level"]
    before = followed.levels.get(name, "")
    followed.levels[name] = level
    if level in ("", before):
        return None
    return Message(row["run"], row["seq"], f"budget {harmless(name)} is {level}: {dollars(data)}")


def dollars(budget: Mapping[str, Any]) -> str:
    """What of a ``budget``, in nano-dollars, is spent."""
    spent, cap = int(budget["spent"]), budget["cap"]
    return f"${spent / 1e9:.2f} spent of {'any amount' if cap is None else f'${int(cap) / 1e9:.2f}'}"


def command_of(text: str, user: str, allowed: frozenset[str], run: str = "") -> Command:
    """Read what ``user`` wrote, in the thread of ``run`` or elsewhere.

    Raises:
        ConfigError: there is no such command, a word is missing or too many, or the user may not.
    """
    verb, *words = text.split() or ["help"]
    verb = verb.lower()
    if verb not in READING | DECIDING:
        raise ConfigError(f"There is no command {harmless(verb[:40])}.", fix=f"Known: {', '.join(READING | DECIDING)}.")
    expected = (READING | DECIDING)[verb]
    if "RUN" in expected and run and not words:
        words = [run]
    if len(words) > bool(expected) or (not words and expected.isupper() and "[" not in expected):
        raise ConfigError(f"Write it so: {verb} {expected}".rstrip() + ".")
    if verb in DECIDING:
        require_allowed(user, allowed)
    return Command(verb, words[0] if words else "")


def require_allowed(user: str, allowed: frozenset[str]) -> None:
    """Check that ``user`` may start runs and decide.

    Raises:
        ConfigError: no.
    """
    if user not in allowed:
        raise ConfigError("You may not do this.", "Who runs the bot names those who may.", "--allow YOUR_USER_ID")
