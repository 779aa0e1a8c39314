"""Questions to a role's models, asked or only planned."""

from contextlib import aclosing
from typing import Annotated, Any

import typer

from agent0.assembly.routing.asking import ask_role, dry_route
from agent0.cli import console, flags
from agent0.cli.routing.router import in_dollars


def route(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What a model would be asked.")],
    role: Annotated[str, typer.Option(help="Whose models: teacher, student or judge.")] = "judge",
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="What each model's answer would have; without it: unknown.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Call no model; this is the default.")] = True,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """What the settings' strategy would ask, step by step, with the most that each model may cost. Calls no model:
    agent0 router ask does. JSON: in nano-dollars."""
    decision = dry_route(flags.settings(None, pairs), role, text, confidence)
    if as_json:
        console.data(decision)
        return
    shown = [{**row, "most": in_dollars(row["most"]) or "unknown"} for row in decision["models"]]
    console.table(shown, False, ("model", "most", "right"))
    steps = [{"step": n, **step} for n, step in enumerate(decision["steps"], 1)]
    console.table(steps, False, ("step", "ask", "give", "reason"))


def ask(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the model is asked.")],
    role: Annotated[str, typer.Option(help="Whose models: teacher, student or judge.")] = "judge",
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Ask a role's model, or those that stand in for it, under the budgets; the answer is shown while it is written.
    A model takes over only until the first words are shown (`router.hold`)."""

    async def work() -> dict[str, Any]:
        async with aclosing(ask_role(flags.settings(None, pairs), role, text)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str):
                    return {"model": piece.model, "text": piece.text, "finish": piece.finish, "note": piece.untrainable}
                if not as_json:
                    typer.echo(piece, nl=False)
        raise AssertionError("a turn ends with itself")

    answer = console.run_async(work)
    if as_json:
        console.data(answer)
        return
    typer.echo()
    console.say(f"By {answer['model']}.")
