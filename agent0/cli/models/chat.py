"""Talk with a model or a checkpoint, which has its tools."""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from agent0.assembly.models.chat import ChatSession, open_chat
from agent0.cli import console, flags
from agent0.cli.models.partner import partner
from agent0.errors import Agent0Error, ConfigError
from agent0.events.values import Artifact, ToolUse
from agent0.rollout.attempt import AttemptProgress
from agent0.settings import Settings

MARK = "| "
"""What begins the lines of what a tool returned."""
PROMPT = "> "
UNSAID = {
    "length": "cut off at --max-tokens",
    "budget": "no tool call is left; ask on",
    "turn_limit": "no turn is left; ask on",
}
"""Ends of a reply that a person should know of."""


def chat(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL|CHECKPOINT]",
            help="tiny, a name of `agent0 model list --available`, a GGUF file, a folder, a provider's model; "
            "RUN/CHECKPOINT, RUN (its student of now), an adapter's digest. Without: the profile's student.",
        ),
    ] = "",
    once: Annotated[str, typer.Option("--once", metavar="TEXT", help="One question; so is what is piped in.")] = "",
    provider: Annotated[str | None, typer.Option(help="Whose model it is: ollama, openai, transformers…")] = None,
    tools: Annotated[str | None, typer.Option(help="Its tools, comma-separated; else those of the settings.")] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="No tools, and a prompt that names none.")] = False,
    temperature: Annotated[float | None, typer.Option(min=0, max=100, help="0: always the likeliest token.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Tokens a turn.")] = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Talk with a student and its tools, whose calls and output are shown between. Ctrl-C ends a reply, Ctrl-D or /quit
    the chat, /reset forgets what was said. Nothing of it is recorded, but for what it costs."""
    limits = {"temperature": temperature, "max_tokens": max_tokens, "tools": "[]" if no_tools else tools}
    values = {f"run.student.{name}": str(value) for name, value in limits.items() if value is not None}
    question = once or ("" if sys.stdin.isatty() else sys.stdin.read().strip())
    if not question and (as_json or not sys.stdin.isatty()):
        raise ConfigError(
            "A chat needs a question.", "Standard input is empty, and there is no --once.", "Write one: --once TEXT"
        )
    settings, adapter, checkpoint = partner(model, provider, profile, {**flags.overrides(pairs), **values})
    if question:
        console.run_async(lambda: _answered(settings, adapter, question, as_json))
    else:
        asyncio.run(_talk(settings, adapter, checkpoint))


async def _answered(settings: Settings, adapter: Artifact | None, question: str, as_json: bool) -> None:
    """One question, whose reply is printed."""
    screen = ReplyPrinter()
    hear, report = (_ignore, _ignore) if as_json else (screen.hear, screen.report)
    async with open_chat(settings, adapter, hear, console.say) as session:
        progress = await session.ask(question, report)
    if as_json:
        console.data(_plain(progress))
    else:
        screen.end(progress)


async def _talk(settings: Settings, adapter: Artifact | None, checkpoint: str = "") -> None:
    """Questions to ``checkpoint``, or a model, from a terminal until it ends."""
    screen = ReplyPrinter()
    async with open_chat(settings, adapter, screen.hear, console.say) as session:
        student = session.student
        having = f"tools {', '.join(student.tools)}" if student.uses_tools else "no tools"
        named = f"{student.provider} {student.model.rpartition('/')[2]}".strip()
        partner = f"{checkpoint} on {named}" if checkpoint else named
        console.say(f"{partner}, {having}. /reset forgets, /quit ends; Ctrl-C ends a reply.")
        await converse(session, screen, read_line)


def read_line() -> str | None:
    """What a person types next, with the editing of readline; None at the end of it. Ctrl-C drops the line."""
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - input() takes it from then on
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(PROMPT)
    except EOFError:
        typer.echo()
        return None
    except KeyboardInterrupt:
        typer.echo()
        return ""
    finally:
        signal.signal(signal.SIGINT, before)


async def converse(session: ChatSession, screen: "ReplyPrinter", read: Callable[[], str | None]) -> None:
    """Pass what ``read`` gives to ``session`` until it gives None or /quit. An error of a reply is printed, and
    the chat goes on."""
    while (line := read()) is not None and line.strip() != "/quit":
        if line.strip() == "/reset":
            session.reset()
            console.say("Forgotten.")
        elif line.strip().startswith("/"):
            console.say("Commands: /reset, /quit.")
        elif line.strip():
            await _reply(session, screen, line.strip())


async def _reply(session: ChatSession, screen: "ReplyPrinter", question: str) -> None:
    """One reply, which Ctrl-C ends."""
    asking, loop = asyncio.ensure_future(session.ask(question, screen.report)), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, asking.cancel)
    try:
        await asyncio.wait([asking])
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        asking.cancel()
    if asking.cancelled():
        screen.line("")
        console.say("Ended; this question is forgotten.", "yellow")
        return
    error = asking.exception()
    if isinstance(error, Agent0Error):
        screen.line("")
        console.complain(error)
        return
    screen.end(asking.result())


class ReplyPrinter:
    """A reply as it comes: what the student writes, and what its calls return, marked."""

    def __init__(self) -> None:
        self._open = False

    def hear(self, text: str) -> None:
        """Print a piece of a turn."""
        typer.echo(console.clean(text), nl=False)
        sys.stdout.flush()
        self._open = not text.endswith("\n")

    def line(self, text: str, style: str = "") -> None:
        """Print ``text`` on a line of its own; nothing: only end the line there is."""
        if self._open:
            typer.echo()
            self._open = False
        if text:
            typer.echo(console.styled(console.clean(text), style))

    def report(self, calls: Sequence[ToolUse]) -> None:
        """Print what calls came to."""
        for use in calls:
            head = f"{use.call.name}: {use.result.state.value}"
            for row in (head, *use.result.output.rstrip().splitlines()):
                self.line(MARK + row, "dim")

    def end(self, progress: AttemptProgress) -> None:
        """End the reply, and say what ended it before its student did."""
        self.line("")
        if progress.end in UNSAID:
            console.say(f"[{UNSAID[progress.end]}]", "yellow")


def _ignore(_: object) -> None:
    pass


def _plain(progress: AttemptProgress) -> dict[str, Any]:
    """A reply as JSON values."""
    turns = [turn.content for turn in progress.transcript if turn.role == "assistant"][-len(progress.written) :]
    calls = [
        {
            "tool": use.call.name,
            "arguments": use.call.arguments,
            "state": use.result.state.value,
            "output": use.result.output,
        }
        for use in progress.called
    ]
    return {"turns": turns, "calls": calls, "answer": progress.answer, "end": progress.end}
