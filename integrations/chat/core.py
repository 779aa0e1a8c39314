"""What of a run's events becomes which message, and what a command asks for: no network, no clock, both bots alike."""

import json
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
READING = {
    **{"help": "", "runs": "[NAME=VALUE…]", "status": "RUN", "progress": "RUN", "overview": "RUN", "why": "RUN"},
    **{"metrics": "RUN [COLUMN…]", "events": "RUN [NAME=VALUE…]", "wait": "RUN [timeout=SECONDS]", "ledger": "RUN"},
    **{"alarms": "[RUN]", "budget": "", "reviews": "RUN"},
}
DECIDING = {
    **{"start": "TEMPLATE", "fork": "RUN [at=EVENT] [SETTING=VALUE…]"},
    **{"pause": "RUN [reason=TEXT]", "resume": "RUN", "cancel": "RUN [reason=TEXT]"},
}
"""Verbs with what follows them; the second need a user who is allowed."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "runs": ("tag", "profile", "status", "text", "forks", "hidden"),
    "events": ("type", "task", "after", "follow"),
    "wait": ("timeout",),
    "fork": ("at", "settings", "name", "wait"),
    "pause": ("reason",),
    "resume": ("wait",),
    "cancel": ("reason",),
}
"""Arguments of the Python client's calls that a chat hands over, by verb; none names a file of the bot's machine."""
Row = dict[str, Any]
"""A JSON object of a server."""
_word = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+')
_tail = re.compile(r"\[event (\d+)\]\s*$")


@dataclass(frozen=True)
class ChatMessage:
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
class BotState:
    """What is known of what was told: the last event, threads by run, levels of budgets, reviews asked for."""

    seq: int
    threads: dict[str, str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    reviews: dict[str, int] = field(default_factory=dict)
    sending: int = 0
    """The event whose message may have been sent when the process ended; 0: none."""


@dataclass(frozen=True)
class Command:
    """What a user asks for: a verb of ``READING`` or ``DECIDING``, the word behind it, the words behind that one, and
    what is written NAME=VALUE."""

    verb: str
    argument: str
    words: tuple[object, ...] = ()
    options: Row = field(default_factory=dict)


def harmless(text: str) -> str:
    """``text`` of a model or a stranger so that it mentions nobody, links nowhere and obeys no terminal."""
    plain = escaped(text[: LONGEST + 1]).replace("@", "\uff20").replace("://", ": //")
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"


def event_of(text: str) -> int:
    """The event that a message of ours tells of; 0 where it tells of none."""
    match = _tail.search(text)
    return int(match[1]) if match else 0


def message_of(row: Row, state: BotState, *, asks: bool = False) -> ChatMessage | None:
    """The message that the event ``row`` makes, None for none; ``followed`` notes budgets and reviews. ``asks``:
    its run asks a person where no verdict can be given."""
    kind, data, line = row["type"], row["data"], harmless(" ".join(row["text"].split()))
    if kind == "ResultVerified":
        return _review(row, state, line) if asks and data["correct"] is None and data["verifier"] != "person" else None
    if kind == "BudgetChanged":
        return _budget(row, state)
    if kind == "CheckpointEvaluated" and (data["forced_tool"] or data["split"] not in ("validation", "test")):
        return None
    if kind == "AlarmResolved":
        line = f"alarm {harmless(data['alarm'])} is over"
    elif kind == "AlarmRaised":
        line = f"alarm, {line}"
    elif kind in ("RunPaused", "RunResumed", "RunCancelled"):
        line = f"run {kind.removeprefix('Run').lower()} {harmless(data.get('reason', ''))}".rstrip()
    return ChatMessage(row["run"], row["seq"], line)


def _review(row: Row, state: BotState, line: str) -> ChatMessage | None:
    key = f"{row['run']} {row['data']['iteration']}"
    count = state.reviews[key] = state.reviews.get(key, 0) + 1
    if count > REVIEWS + 1:
        return None
    if count > REVIEWS:
        text = f"more answers await a verdict: agent0 task review {row['run']}"
        return ChatMessage(row["run"], row["seq"], text)
    attempt = row["data"]["attempt"]
    return ChatMessage(row["run"], row["seq"], f"Is this right? {attempt}: {line}", attempt)


def _budget(row: Row, state: BotState) -> ChatMessage | None:
    data = row["data"]
    name, level = f"{data['scope']} {data['name']}", data["level"]
    before = state.levels.get(name, "")
    state.levels[name] = level
    if level in ("", before):
        return None
    return ChatMessage(row["run"], row["seq"], f"budget {harmless(name)} is {level}: {dollars(data)}")


def dollars(budget: Row) -> str:
    """What of a ``budget``, in nano-dollars, is spent."""
    spent, cap = int(budget["spent"]), budget["cap"]
    return f"${spent / 1e9:.2f} spent of {'any amount' if cap is None else f'${int(cap) / 1e9:.2f}'}"


def command_of(text: str, user: str, allowed: frozenset[str], run: str = "") -> Command:
    """Read what ``user`` wrote, in the thread of ``run`` or elsewhere.

    Raises:
        ConfigError: there is no such command, a word is missing or too many, or the user may not.
    """
    verb, *words = _word.findall(text.translate({0x201C: '"', 0x201D: '"'})) or ["help"]
    verb = verb.lower()
    if verb not in READING | DECIDING:
        raise ConfigError(f"There is no command {harmless(verb[:40])}.", fix=f"Known: {', '.join(READING | DECIDING)}.")
    expected = (READING | DECIDING)[verb]
    arguments = [word for word in words if "=" not in word]
    if "RUN" in expected and run and not arguments:
        arguments = [run]
    first = expected.split(" ")[0]
    most = len(words) if "COLUMN" in expected else bool(first and "=" not in first)
    if len(arguments) > most or (not arguments and first.isupper() and "[" not in first):
        raise ConfigError(f"Write it so: {verb} {expected}".rstrip() + ".")
    options = _options(verb, [word.partition("=")[::2] for word in words if "=" in word])
    if verb in DECIDING:
        require_allowed(user, allowed)
    argument, *more = arguments or [""]
    return Command(verb, argument, tuple(map(_value, more)), options)


def _options(verb: str, pairs: list[tuple[str, str]]) -> Row:
    options: Row = {}
    for name, text in pairs:
        if verb == "fork" and "." in name:
            options.setdefault("settings", {})[name] = text.strip('"')
        elif name in OPTIONS.get(verb, ()):
            options[name] = _value(text)
        else:
            names = ", ".join(OPTIONS.get(verb, ())) or "it has none"
            raise ConfigError(f"{verb} has no option {harmless(name[:40])}.", fix=f"Known: {names}.")
    return options


def _value(text: str) -> object:
    """JSON where it is such, else the text as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def require_allowed(user: str, allowed: frozenset[str]) -> None:
    """Check that ``user`` may start runs and decide.

    Raises:
        ConfigError: no.
    """
    if user not in allowed:
        raise ConfigError("You may not do this.", "Who runs the bot names those who may.", "--allow YOUR_USER_ID")
