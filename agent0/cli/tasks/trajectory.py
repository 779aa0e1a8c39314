"""Attempts, and items of evaluations, with what was said and done in them."""

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent0.assembly.api.trajectories import transcript_of
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.trajectories.import_trajectories import TraceImport, import_recording, import_trajectories
from agent0.assembly.trajectories.token_check import check_tokens
from agent0.assembly.trajectories.turn_values import MOST, measure_turns, value_lines
from agent0.cli import console, flags, lookup
from agent0.errors import ConfigError, GateError
from agent0.experiments.interchange.formats import written
from agent0.infra.storage.row_formats import parquet_file
from agent0.ports.storage import Artifacts
from agent0.projections.attempts import list_attempts, show_attempt
from agent0.projections.base import Row
from agent0.projections.evaluation_items import evaluated_run, list_items
from agent0.projections.passages import PassageKind, search_passages
from agent0.projections.rewards import explain_rewards
from agent0.projections.runs import resolve
from agent0.projections.tasks import show_task
from agent0.projections.trajectories import FORMATS as OWN_FORMATS
from agent0.projections.trajectories import export as rows_of
from agent0.projections.trajectories import whole_attempts
from agent0.provenance.redaction import Patterns, Redaction, blanked_attempt
from agent0.report.html.rendering import render

Evaluation = Annotated[
    str, typer.Option(help="Items of this evaluation instead (its id, or a split, checkpoint or benchmark).")
]
_CALLS = "turns tool_calls tool_ok"
Format = Literal[
    "jsonl", "trl", "trl-messages", "trl-preference", "trl-prompt", "trl-stepwise", "trl-unpaired",
    "atif", "html", "inspect", "openai-chat", "openenv", "parquet", "pi", "verifiers", "verifiers-trace",
]  # fmt: skip

ForeignFormat = Literal["", "atif", "inspect", "openai-chat", "openenv", "trl", "verifiers", "verifiers-trace"]
FAULTS = 20
"""Attempts at fault that people see; --json has all."""
LOSSES = 8
"""Losses that people see; --json has all, line by line."""


def list_(
    run: console.Run = "LAST",
    task: Annotated[str, typer.Option(help="One task only.")] = "",
    iteration: console.Iteration = None,
    correct: Annotated[bool | None, typer.Option("--correct/--wrong", help="By verdict.")] = None,
    evaluation: Evaluation = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Attempts in the order they were asked for, or the items of an evaluation."""
    if evaluation and (task or iteration is not None):
        raise ConfigError(
            "An evaluation's items are of no task and no iteration.", "", "Leave --evaluation out, or them."
        )
    with lookup.tables() as db:
        if evaluation:
            name, columns = (
                evaluated_run(db, run),
                "attempt correct answer end turns tool_calls tool_ok wall_s question",
            )
            rows = console.limited(lambda n: list_items(db, name, evaluation, correct, n), limit)
        else:
            name, columns = resolve(db, run), f"attempt status correct reward answer student {_CALLS} end wall_s credit"
            if task:
                show_task(db, name, task)
            rows = console.limited(lambda n: list_attempts(db, name, task, iteration, correct, n), limit)
    console.table(rows, as_json, columns.split())


def show(
    attempt: Annotated[
        str, typer.Argument(metavar="ATTEMPT", help="Attempt or item id, for example t0-003-a2 or base-test-7.")
    ],
    run: console.Run = "LAST",
    as_json: console.Json = False,
) -> None:
    """One attempt, finished or not, or one item of an evaluation: the conversation turn by turn, what each tool call
    left in the work folder, the answers to subgoals, the verdict and the receipt of its reward."""
    with lookup.tables() as db:
        name = evaluated_run(db, run)
        shown = show_attempt(db, name, attempt)
        receipts = explain_rewards(db, name, attempt=attempt)
    shown["transcript"] = transcript_of(flags.settings(), shown)
    shown["receipts"] = receipts
    if as_json:
        console.data(shown)
    else:
        _show(shown)


def search(
    words: Annotated[list[str], typer.Argument(help='All of these words and "phrases"; a trailing *: any ending.')],
    run: Annotated[str, typer.Option("--run", help="One run only; LAST for the newest.")] = "",
    kind: Annotated[PassageKind | None, typer.Option(help="One kind of text only.")] = None,
    limit: console.Limit = 20,
    as_json: console.Json = False,
) -> None:
    """Search tasks, turns, tool calls and answers of all runs; the best match first."""
    with lookup.tables() as db:
        of, query = resolve(db, run) if run else "", " ".join(words)
        rows = console.limited(lambda n: search_passages(db, query, of, kind, n), limit)
    shown = rows if as_json else rows.like({**row, "text": _marked(row["snippet"])} for row in rows)
    console.table(shown, as_json, ("run", "attempt", "kind", "turn", "text"), keep=("text",))


def _marked(snippet: list[Row]) -> str:
    """The snippet on one line, its matches in angle brackets."""
    return " ".join("".join(f"«{part['text']}»" if part["match"] else part["text"] for part in snippet).split())


def fork(
    attempt: Annotated[str, typer.Argument(metavar="ATTEMPT", help="Attempt id, for example t0-003-a2.")],
    run: console.Run = "LAST",
    turn: Annotated[str, typer.Option(help="Turns that stay: a number, several as 2,3, or all; 0: none.")] = "all",
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=MOST, help="Continuations of each turn.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Draws the continuations.")] = 0,
    as_json: console.Json = False,
) -> None:
    """Monte-Carlo value of a turn: the attempt goes on from there under fresh seeds, with the same messages and work
    folder; each continuation is verified and rewarded as in its run, and recorded as an evaluation of its own. The same
    command goes on where it was cut."""
    turns, name = _turns(turn), lookup.run_id(run)
    settings = flags.settings()
    result = console.run_async(
        lambda: measure_turns(settings, name, attempt, turns, n, seed, console.say),
        stopping="Stopped; what is recorded is kept. The same command goes on.",
    )
    if as_json:
        console.data(asdict(result))
        return
    console.print_lines(value_lines(result))
    rows = [{name: _rounded(value) for name, value in asdict(each).items()} for each in result.values]
    columns = ("turn", "n", "reward", "lower95", "upper95", "change", "change_lower95", "change_upper95", "right")
    console.table(rows, False, (*columns, "right_lower95", "right_upper95", "undecided"))


def export(
    run: console.Run = "LAST",
    format: Annotated[Format, typer.Option(help="jsonl has everything; trl: TRL's data sets.")] = "jsonl",
    evaluation: Evaluation = "",
    redact: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Blank out what matches; such an attempt loses its token ids."),
    ] = None,
) -> None:
    """All attempts of a run as JSON lines on stdout (or one page, one table), or the items of an evaluation, which are
    never training data."""
    if format == "parquet" and sys.stdout.isatty():
        fix = f"Send it to a file: agent0 trajectory export {run} --format parquet > attempts.parquet"
        raise ConfigError("Parquet is no text.", "", fix)
    patterns = Redaction.of(redact or []).patterns
    with lookup.tables() as db:
        name, artifacts = evaluated_run(db, run), artifact_store(flags.settings())
        rows = _exported(db, name, format, artifacts, evaluation, patterns)
        if format == "parquet":
            typer.echo(parquet_file(rows), nl=False)
        elif format == "html":
            typer.echo(render("attempts.html.jinja", run=name, attempts=rows))
        else:
            for row in rows:
                typer.echo(json.dumps(row, default=str))


def _exported(
    db: sqlite3.Connection, run: str, format: Format, artifacts: Artifacts, evaluation: str, patterns: Patterns
) -> Iterator[Row]:
    kind = "agent0" if format == "jsonl" else format
    if kind in OWN_FORMATS or evaluation:
        yield from (blanked_attempt(row, patterns) for row in rows_of(db, run, kind, artifacts, evaluation))
        return
    rows = (blanked_attempt(row, patterns) for row in whole_attempts(db, run, artifacts))
    yield from rows if kind == "html" else written(rows, kind)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows or documents; .gz and Parquet, too.")],
    format: Annotated[ForeignFormat, typer.Option(help="What wrote it; without it the file's own fields say so.")] = "",
    recorded: Annotated[bool, typer.Option("--recorded", help="FILE is a NAME of /v1/recordings/NAME.")] = False,
    as_json: console.Json = False,
) -> None:
    """Import attempts that another framework recorded as a run, with its verdicts and rewards under their own name; or
    those that a program made with a student of ours at the address /v1/recordings/NAME. What no event keeps of a line
    is named. The same file again is the same run."""
    settings = flags.settings()
    if recorded:
        result = console.run_async(lambda: import_recording(settings, str(file)))
    else:
        result = console.run_async(lambda: import_trajectories(settings, file, format))
    if as_json:
        lines = [{"line": attempt.location, "losses": attempt.losses} for attempt in result.file.attempts]
        counts = {"tasks": result.tasks, "attempts": len(lines), "events": result.stored}
        console.data({"run": result.file.run, "format": result.file.format, **counts, "lines": lines})
    else:
        _show_import(result)


def _show_import(result: TraceImport) -> None:
    attempts = result.file.attempts
    counted = f"{len(attempts):,} attempts at {result.tasks:,} tasks ({result.file.format})"
    head = f"Run {result.file.run}: {counted}" if result.stored else f"Run {result.file.run} has this file already"
    console.text(f"{head}.")
    losses = Counter(loss for attempt in attempts for loss in attempt.losses)
    for loss, count in losses.most_common(LOSSES):
        console.text(f"Not kept of {count:,} attempts: {console.one_line(loss)}")
    if len(losses) > LOSSES:
        console.text(f"… and {len(losses) - LOSSES:,} more: --json has them line by line.")
    console.text(f"Judge it again: agent0 experiment reverify {result.file.run}")


def verify(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Check the tokens of a run's attempts, turn by turn: each prompt is what stood before it and what was written,
    with a log-probability for every token written, as many as were counted. Exit code 3 where one is at fault."""
    name = lookup.run_id(run)
    check = console.run_async(lambda: check_tokens(flags.settings(), name))
    if as_json:
        console.data({"run": name, **check.as_row()})
    else:
        counts = f"{check.tokens:,} tokens, {check.written:,} of them written"
        console.text(f"{check.whole:,} of {check.attempts:,} attempts of {name} hold token by token: {counts}.")
        for why, count in check.without.most_common():
            console.text(f"{count:,} have no tokens: {console.one_line(why)}")
        for attempt, fault in list(check.faults.items())[:FAULTS]:
            console.text(f"{attempt}: {console.one_line(fault)}")
    if check.faults:
        what = f"{len(check.faults):,} of {check.attempts:,} attempts of {name} do not hold token by token."
        raise GateError(what, "", "Nothing should be trained on them. --json has all.")


def _show(attempt: Row) -> None:
    lists = {name: attempt.pop(name) or [] for name in ("transcript", "calls", "verdicts", "receipts", "wanted")}
    answers, attempt["rollbacks"] = attempt.pop("subgoals"), len(_rollbacks(lists["calls"])) or None
    attempt.pop("progress", None)
    console.record({k: v for k, v in attempt.items() if v is not None}, False)
    for head, content in _conversation(lists["transcript"], lists["calls"], attempt["turns"] or 0):
        console.text(f"\n[{head}]\n{content}")
    console.text("")
    columns = ("call", "turn", "tool", "arguments", "state", "output", "wall_s", "cached", "files", "work")
    if calls := [{**call, "turn": call["turn"] + 1, "work": _short(call)} for call in lists["calls"]]:
        console.table(calls, False, columns)
    if lists["wanted"]:
        console.table(_subgoals(lists["wanted"], answers or [], lists["verdicts"]), False, title="subgoals")
    console.table(lists["verdicts"], False, ("verifier", "correct", "credit", "reason", "expected", "got"))
    if votes := [vote for verdict in lists["verdicts"] for vote in verdict["votes"]]:
        console.table(votes, False, ("check", "correct", "reason"), title="votes")
    if parts := [part for receipt in lists["receipts"] for part in receipt["parts"]]:
        console.table(parts, False, ("name", "inputs", "value", "weight", "worth"), title="reward")


def _conversation(transcript: list[Row], calls: list[Row], turns: int) -> Iterator[tuple[str, str]]:
    """(head, content) of each message; the attempt's own turns are numbered, and its calls say what they left."""
    number = turns - sum(turn["role"] == "assistant" for turn in transcript)  # a prompt may hold turns of examples
    waiting: list[Row] = []
    for turn in transcript:
        head = turn["role"]
        if head == "assistant":
            number += 1
            waiting = [call for call in calls if call["turn"] == number - 1 and not call["inner"]]
            head = f"assistant, turn {number}" if number > 0 else head
        elif head == "tool":
            head = f"tool {turn['name']}" if turn["name"] else head
            head = f"{head}: {_outcome(waiting.pop(0), calls)}" if number > 0 and waiting else head
        if turn.get("thinking"):
            yield f"{head}, thought", turn["thinking"]
        yield head, turn["content"]


def _outcome(call: Row, calls: list[Row]) -> str:
    """How a call ended, and what the work folder was after it."""
    steps = sum(c["inner"] and _plan_of(c, calls) == call["number"] for c in calls)
    parts = [call["state"], f"{steps} steps" if steps else ""]
    parts.append("rolled back" if _rollbacks([call]) else "")
    if call["files"]:
        sizes = [f"{n:,} {unit}{'s' * (n != 1)}" for n, unit in ((call["files"], "file"), (call["file_bytes"], "byte"))]
        parts += [*sizes, f"folder {_short(call)}"]
    return ", ".join(filter(None, parts))


def _plan_of(step: Row, calls: list[Row]) -> int | None:
    return next((c["number"] for c in calls if c["number"] > step["number"] and not c["inner"]), None)


def _rollbacks(calls: list[Row]) -> list[Row]:
    return [call for call in calls if call["tool"] == "rollback" and call["state"] == "ok"]


def _short(call: Row) -> str | None:
    return call["work"] and str(call["work"])[:12]


def _subgoals(subgoals: list[str], answers: list[str | None], verdicts: list[Row]) -> list[Row]:
    """One row a step of a long task."""
    right: list[bool | None] = next((verdict["subgoals"] for verdict in verdicts if verdict["subgoals"]), [])
    rows = zip_longest(subgoals, answers[: len(subgoals)], right[: len(subgoals)])
    return [{"step": n, "wanted": w, "answer": a, "correct": r} for n, (w, a, r) in enumerate(rows, 1)]


def _turns(text: str) -> list[int] | None:
    """The turns that a user named; None for all."""
    if text.strip() == "all":
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        raise ConfigError(f"{text[:80]!r} names no turns.", "", "Write --turn 2, --turn 1,2 or --turn all.")
    return [int(part) for part in parts]


def _rounded(value: float | None) -> float | None:
    return round(value, 3) if isinstance(value, float) else value
