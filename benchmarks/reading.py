"""How many replies of a real model are read as what they hold: calls, answers and proposed tasks.

``python -m benchmarks.reading`` prints a table of tests/data/real_replies.jsonl, whose labels were written by reading
each reply, not by running the readers. ``--beside PATH`` reads them with a checkout of 5e77c3fb, too, the last commit
whose readers knew no other form than the three that prompts taught; ``--write`` puts the table into
docs/results/reading.md.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from agent0.ports.models import Generation
from agent0.rollout.parsing import parse_turn
from agent0.rollout.proposals import read_parts
from agent0.rollout.student import specs_of
from agent0.rollout.tool_prompts import toolbox, until_call
from benchmarks.measured_page import write

HERE = Path(__file__).parents[1]
REPLIES = HERE / "tests" / "data" / "real_replies.jsonl"
Row = Mapping[str, Any]
Reading = dict[str, Any]
"""What a reply holds: ``calls`` (name and arguments each), ``answer``, ``question`` and ``program``; none is empty."""
Outcome = Literal["read", "unread", "misread", "nothing"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
BEFORE = """
import json, sys
from agent0.rollout.parsing import parse_turn
from agent0.rollout.proposals import read_parts
from agent0.rollout.student import specs_of, text_arguments
for row in map(json.loads, sys.stdin):
    if row["kind"] != "teacher":
        turn = parse_turn(row["reply"], text_arguments(specs_of(row["tools"])))
        calls = [{"name": call.name, "arguments": call.arguments} for call in turn.calls if not call.error]
        reading = {"calls": calls, "answer": "" if calls else turn.answer}
    else:
        parts = read_parts(row["reply"])
        is_read = row["finish"] != "length" and not isinstance(parts, str)
        reading = {"question": parts.question, "program": parts.program} if is_read else {}
    print(json.dumps(reading))
"""


def rows() -> list[Row]:
    """Load the labelled replies."""
    return [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").split("\n") if line]


def reading(row: Row) -> Reading:
    """Read the reply of ``row`` as a run does."""
    parts = _proposal(row) if row["kind"] == "teacher" else _turn(row)
    return {name: value for name, value in parts.items() if value}


def _turn(row: Row) -> Reading:
    specs, form = specs_of(row["tools"]), row["kind"].removeprefix("student-")
    written = until_call(Generation(row["reply"], finish=row["finish"]), specs, form)
    turn = parse_turn(written.text, toolbox(specs), form=form)
    calls = [{"name": call.name, "arguments": call.arguments} for call in turn.calls if not call.error]
    return {"calls": calls, "answer": "" if calls else turn.answer}


def _proposal(row: Row) -> Reading:
    parts = read_parts(row["reply"])
    if row["finish"] == "length" or isinstance(parts, str):
        return {}
    return {"question": parts.question, "program": parts.program}


def outcome(label: Row, reading: Reading) -> Outcome:
    """Compare what was ``found`` in a reply with its ``label``.

    ``read``: all that it holds. ``unread``: nothing, or its answer without the call before it. ``misread``: something
    that it does not hold. ``nothing``: it holds nothing that has to be read, and nothing is. Answers in words without a
    mark (``says``) and what can be read in two ways (``ambiguous``) do not have to be read.
    """
    if not reading:
        holds = set(label) & {"calls", "answer", "question"} and "ambiguous" not in label
        return "unread" if holds else "nothing"
    labelled = {name: label[name] for name in ("calls", "question", "program") if name in label}
    if reading == labelled:
        return "read"
    answer = reading.get("answer")
    if answer and set(reading) == {"answer"} and answer in (label.get("answer"), label.get("says")):
        return "unread" if labelled else "read"
    return "misread"


def counts(readings: Sequence[Reading]) -> dict[str, Counter[str]]:
    """Count the outcomes of all replies by kind of prompt."""
    kinds: dict[str, Counter[str]] = {}
    for row, reading in zip(rows(), readings, strict=True):
        kinds.setdefault(row["kind"], Counter())[outcome(row["label"], reading)] += 1
    return kinds


def read_before(checkout: Path) -> list[Reading]:
    """Read all replies with the readers of a ``checkout`` of 5e77c3fb."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = (sys.executable, "-c", BEFORE)
    text = REPLIES.read_text(encoding="utf-8")
    done = subprocess.run(
        command, cwd=checkout, env=environment, input=text, capture_output=True, text=True, check=True
    )
    return [{name: value for name, value in json.loads(line).items() if value} for line in done.stdout.splitlines()]


def table(present: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]]) -> str:
    """Write both counts as a table."""
    heads = [f"{when}: {name}" for when in (("before", "now") if before else ("now",)) for name in OUTCOMES]
    lines = [f"| prompt | replies | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for kind in (*present, "all"):
        sides = [_of(side, kind) for side in (before, present) if side]
        cells = [str(side[name]) for side in sides for name in OUTCOMES]
        lines.append(f"| {kind} | {sides[-1].total()} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _of(side: Mapping[str, Counter[str]], kind: str) -> Counter[str]:
    return sum(side.values(), Counter()) if kind == "all" else side[kind]


def main() -> None:
    """Read, count, and print or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--beside", type=Path, help="a checkout of 5e77c3fb")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results/reading.md")
    options = parser.parse_args()
    readings = [reading(row) for row in rows()]
    before = counts(read_before(options.beside.resolve())) if options.beside else {}
    text = table(counts(readings), before)
    print(text)
    for row, parts in zip(rows(), readings, strict=True):
        if (result := outcome(row["label"], parts)) in ("unread", "misread"):
            print(f"{result} {row['id']}: {json.dumps(parts)[:200]}")
    if options.write:
        write("reading.md", text)


if __name__ == "__main__":
    main()
