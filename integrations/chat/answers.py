"""What a bot answers to commands: the calls of the Python client, and what the API alone has."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from agent0.assembly.api.handles import AsyncRuns
from agent0.assembly.api.servers import ServerTransport
from agent0.errors import Agent0Error, ConfigError
from agent0.infra.web.agent0_server import ServerLink
from integrations.chat.core import DECIDING, READING, Command, Row, command_of, dollars, harmless, require_allowed

LONGEST_ANSWER_S = 600.0
"""Seconds in which a command is answered; Discord forgets it after 900."""
SHOWN = 10
"""Rows of an answer."""
UNSAID: dict[str, Row] = {
    **{verb: {"wait": False} for verb in ("start", "fork", "resume")},
    **{verb: {"reason": "from a chat"} for verb in ("pause", "cancel")},
}
"""What a command means where it leaves it out."""
VERDICTS = {"right": True, "wrong": False, "unclear": None}


@dataclass(frozen=True)
class CommandAnswers:
    """Answers commands. ``allowed``: ids of users who may decide; ``templates``: a body of POST /v1/runs by name."""

    link: ServerLink
    allowed: frozenset[str]
    templates: dict[str, Row]

    async def reply(self, text: str, user: str, again: str, run: str = "") -> str:
        """What to answer to the ``text`` of a ``user``: harmless, and never an error. ``again``: the chat's own id of
        the request, under which it is done once; ``run``: that of the thread that it was written in."""
        try:
            command = command_of(text, user, self.allowed, run)
            async with asyncio.timeout(LONGEST_ANSWER_S):
                lines = await self._lines(command, again)
            return "\n".join(harmless(line) for line in lines) or "nothing"
        except Agent0Error as error:
            return harmless(" ".join(str(error).split()))
        except (KeyError, TypeError) as error:
            return f"The server's answer lacks {harmless(str(error))}: it and this bot are of different versions."
        except TimeoutError:
            return f"It takes longer than {LONGEST_ANSWER_S:g} s; what was decided is decided."

    async def value(self, command: Command, again: str) -> Any:
        """What the Python client gives for ``command``, each call of which is a verb.

        Raises:
            Agent0Error: what it refuses, or the server.
        """
        transport = ServerTransport(self.link, again)
        runs, options = AsyncRuns(transport), {**UNSAID.get(command.verb, {}), **command.options}
        match command.verb:
            case "start":
                return await runs.start(**options | self._template(command.argument))
            case "runs":
                return await runs.runs(**options)
            case "status" | "overview":
                return await transport.overview(command.argument)
        run = await runs.run(command.argument)
        if command.verb == "events":
            return [event async for event in run.events(**options)]
        return await getattr(run, command.verb)(*command.words, **options)

    async def verdict(self, value: str, user: str, name: str, press: str) -> str:
        """Record what a button says (verdict, run, attempt) as the word of ``name``; what to answer. What comes again
        with the id ``press`` is recorded once."""
        try:
            require_allowed(user, self.allowed)
            verdict, run, attempt = value.split()
            body = {"attempt": attempt, "correct": VERDICTS[verdict], "reviewer": name[:100] or user}
            await self.link.post(f"/v1/runs/{run}/review", body, f"chat-{run}-{attempt}-{user}-{press}")
            return f"{harmless(name)}: {attempt} is {verdict}"
        except (KeyError, ValueError):
            return "This button is of another version."
        except Agent0Error as error:
            return harmless(" ".join(str(error).split()))

    async def _lines(self, command: Command, again: str) -> list[str]:
        if command.verb in _ANSWERS:
            return await _ANSWERS[command.verb](self.link, command.argument)
        value = await self.value(command, again)
        if command.verb == "runs":
            rows = [await each.overview() for each in value[:SHOWN]]
            return [f"{row['run']}: {row['status']}, profile {row['profile']}" for row in rows]
        if command.verb in _SHOWN:
            return [line for row in _rows(value)[-SHOWN:] for line in _SHOWN[command.verb](row)]
        return [f"{command.verb}: {command.argument}"]

    def _template(self, name: str) -> Row:
        if name not in self.templates:
            names = ", ".join(self.templates) or "none"
            raise ConfigError(f"There is no template {name[:40]}.", fix=f"Known: {names}.")
        return self.templates[name]


def _quoted(run: str) -> str:
    if not run.strip(".") or quote(run, safe="") != run:
        raise ConfigError(f"There is no run {run[:80]!r}.")
    return run


async def _help(link: ServerLink, argument: str) -> list[str]:
    return [f"{verb} {after}".rstrip() for verb, after in (READING | DECIDING).items()]


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _overview(row: Row) -> list[str]:
    scores = [point["validation"] for point in row.get("validation", ()) if point["validation"] is not None]
    curve = " ".join(f"{100 * score:.0f}%" for score in scores) or "nothing evaluated yet"
    counts = ", ".join(f"{row.get(name)} {name}" for name in ("tasks", "attempts"))
    return [f"{row['run']}: {row.get('status')}, {counts}", f"validation {curve}"]


def _pairs(row: Row) -> str:
    pairs = {name: value for name, value in row.items() if value is not None}
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in pairs.items()
    )


async def _why(link: ServerLink, argument: str) -> list[str]:
    row = await link.get(f"/v1/runs/{_quoted(argument)}/why")
    return [row["conclusion"], *([f"To mend it: {row['mend']}"] if row["mend"] else [])]


async def _alarms(link: ServerLink, argument: str) -> list[str]:
    rows = (await link.get("/v1/alarms", {"limit": "10", **({"run": argument} if argument else {})}))["data"]
    return [f"{row['severity']} {row['run']} {row['alarm']}: {row['message']}" for row in rows]


async def _budget(link: ServerLink, argument: str) -> list[str]:
    rows = (await link.get("/v1/router/budgets", {"limit": "10"}))["data"]
    return [f"{row['scope']} {row['name']}: {dollars(row)} {row['level']}".rstrip() for row in rows]


async def _reviews(link: ServerLink, argument: str) -> list[str]:
    rows = (await link.get(f"/v1/runs/{_quoted(argument)}/reviews", {"limit": "5"}))["data"]
    return [f"{row['attempt']}: {row['question'][:200]} -> {str(row['answer'])[:100]}" for row in rows]


_ANSWERS: dict[str, Callable[[ServerLink, str], Coroutine[Any, Any, list[str]]]] = {
    "help": _help,
    "why": _why,
    "alarms": _alarms,
    "budget": _budget,
    "reviews": _reviews,
}

_SHOWN: dict[str, Callable[[Any], list[str]]] = {
    **{verb: lambda run: [f"started {run.id}"] for verb in ("start", "fork")},
    **dict.fromkeys(("status", "overview"), _overview),
    **{verb: lambda row: [_pairs(row)] for verb in ("metrics", "ledger")},
    "progress": lambda progress: [_pairs(asdict(progress))],
    "events": lambda event: [f"{event.seq} {event.type} {event.task}"],
    "wait": lambda status: [status],
}
"""How the rows of what a call gives are shown, by verb."""
