"""Attempts with what was said and done in them."""

from typing import Annotated, Any, Literal

import typer

from agent0.cli import terminal

app = typer.Typer(help="Attempts with transcripts, tool calls, verdicts and rewards; export as training data.")
Format = Literal["jsonl", "trl", "trl-messages", "trl-preference", "trl-unpaired"]


@app.command("list")
def list_(
    run: terminal.Run = "LAST",
    task: Annotated[str, typer.Option(help="One task only.")] = "",
    iteration: Annotated[int | None, typer.Option("--iteration", "-i", min=0, help="One iteration only.")] = None,
    correct: Annotated[bool | None, typer.Option("--correct/--wrong", help="By verdict.")] = None,
    limit: terminal.Limit = 100,
    as_json: terminal.Json = False,
) -> None:
    """Attempts in the order they were asked for."""
    from projections.attempts import list_attempts
    from projections.runs import resolve

    with terminal.tables() as db:
        rows = list_attempts(db, resolve(db, run), task, iteration, correct, limit)
    seen = ("attempt", "student", "status", "answer", "correct", "reward", "tool_calls", "tool_ok", "end", "wall_s")
    terminal.table(rows, as_json, seen)


@app.command()
def show(
    attempt: Annotated[str, typer.Argument(metavar="ATTEMPT", help="Attempt id, for example t0-003-a2.")],
    run: terminal.Run = "LAST",
    as_json: terminal.Json = False,
) -> None:
    """One attempt: the conversation, its tool calls, the verdict and the receipt of its reward."""
    from projections.attempts import show_attempt
    from projections.rewards import explain_rewards
    from projections.runs import resolve

    with terminal.tables() as db:
        name = resolve(db, run)
        found = show_attempt(db, name, attempt)
        receipts = explain_rewards(db, name, attempt=attempt)
    found["transcript"] = found["transcript"] or _stored(found.get("transcript_artifact"))
    found["receipts"] = receipts
    if as_json:
        terminal.data(found)
    else:
        _tell(found)


@app.command()
def export(
    run: terminal.Run = "LAST",
    format: Annotated[Format, typer.Option(help="jsonl has everything; the others are TRL's dataset types.")] = "jsonl",
) -> None:
    """All attempts of a run as JSON lines on stdout."""
    import json

    from agent0.cli.terminal import settings
    from infra.artifacts import FileArtifacts
    from projections.runs import resolve
    from projections.trajectories import export as rows_of

    with terminal.tables() as db:
        kind = "agent0" if format == "jsonl" else format
        for row in rows_of(db, resolve(db, run), kind, FileArtifacts(settings().home)):
            typer.echo(json.dumps(row, default=str))


def _tell(found: dict[str, Any]) -> None:
    lists = {name: found.pop(name) or [] for name in ("transcript", "calls", "verdicts", "receipts")}
    terminal.record({k: v for k, v in found.items() if v is not None}, False)
    for turn in lists["transcript"]:
        terminal.text(f"\n[{turn['role']}{' ' + turn['name'] if turn.get('name') else ''}]\n{turn['content']}")
    terminal.text("")
    terminal.table(lists["calls"], False, ("number", "tool", "arguments", "state", "output", "wall_s", "cached"))
    terminal.table(lists["verdicts"], False, ("verifier", "correct", "reason", "expected", "got"))
    parts = [part for receipt in lists["receipts"] for part in receipt["parts"]]
    terminal.table(parts, False, ("name", "inputs", "value", "weight", "worth"), title="reward")


def _stored(artifact: Any) -> list[dict[str, Any]]:
    """A transcript too long for its event."""
    import json

    from events.values import Artifact
    from infra.artifacts import FileArtifacts

    if not artifact:
        return []
    turns: list[dict[str, Any]] = json.loads(
        FileArtifacts(terminal.settings().home).get(Artifact.model_validate(artifact))
    )
    return turns
