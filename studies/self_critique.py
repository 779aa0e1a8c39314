"""What is a model's own critique of its answers worth as a confidence? Asks the student of a finished run after each of
its answers whether it is right (P(True), arXiv 2207.05221, section 4), and compares with the run's other signals.

``python -m studies.self_critique RUN --answers 200`` draws whole tasks of the run's ``--iteration`` until so many
answers have a verdict, has the untrained model behind the student write Yes or No about each, greedily, and prints a
row a signal: AUROC over all answers and within a task, calibration error and Brier score, 95 % intervals over tasks.
``--write FILE --as NAME`` puts the rows under that name into a file of JSON. AGENT0_HOME is the folder of the run,
which is only read. Stopped, it begins anew.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import agent0
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_ports
from agent0.config.loading import load
from agent0.errors import Agent0Error
from agent0.events.values import Turn
from agent0.ports.models import Model
from agent0.rollout.confidence.run_signals import Row, confidence_signals
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.tool_prompts import delivered
from agent0.settings import Settings, StudentConfig
from agent0.tasks.seeds import derive_seed

AT_ONCE = 32
WORDS = 8
"""Tokens of a verdict, at most."""


def drawn(attempts: Sequence[Row], answers: int, seed: int) -> list[Row]:
    """Every attempt of tasks that are drawn until ``answers`` of theirs were judged."""
    by_task: dict[str, list[Row]] = {}
    for row in attempts:
        by_task.setdefault(row["task"], []).append(row)
    order = random.Random(seed).sample(sorted(by_task), len(by_task))
    chosen: list[Row] = []
    for task in order:
        if sum(judged(row) for row in chosen) >= answers:
            break
        chosen += by_task[task]
    return chosen


def judged(row: Row) -> bool:
    """Whether an attempt has an answer and a verdict."""
    return row["answer"] is not None and row["correct"] is not None


class InWords(Model):
    """A model that is asked to write its verdict, where its engine could score both: what all answers share is then
    read once, which takes a tenth of the time."""

    def __init__(self, inner: Model) -> None:
        self.name, self.generate, self.close = inner.name, inner.generate, inner.close  # type: ignore[method-assign]


async def critiques(settings: Settings, student: StudentConfig, run: agent0.Run, rows: Sequence[Row]) -> list[Row]:
    """``rows`` with ``self_critique``: the probability of Yes, None without an answer to ask about and where the model
    says neither Yes nor No."""
    async with AsyncExitStack() as stack:
        ports = await open_ports(["models"], settings, artifact_store(settings), stack)
        model, out = InWords(ports["models"].open(student)), list[Row]()

        async def with_critique(row: Row) -> Row:
            if not judged(row):
                return row
            turns = tuple(Turn.model_validate(turn) for turn in run.trajectory(row["attempt"]).turns)
            seed = derive_seed(0, row["attempt"])
            critique = await criticise(model, student, delivered(turns, student.form), row["answer"], seed=seed)
            return {**row, "self_critique": critique.probability}

        for start in range(0, len(rows), AT_ONCE):
            out += await asyncio.gather(*map(with_critique, rows[start : start + AT_ONCE]))
            print(f"{len(out)} of {len(rows)} attempts", file=sys.stderr, flush=True)
        return out


def shown(signals: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of ``confidence_signals``."""
    yield "| signal | answers | tasks | right | AUROC | within a task | ECE | Brier |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in signals:
        cells = [f"{row[name]:.2f} ({row[f'{name}95'][0]:.2f} to {row[f'{name}95'][1]:.2f})"
                 if row[name] is not None else "" for name in ("auroc", "within", "ece", "brier")]  # fmt: skip
        yield f"| {row['signal']} | {row['items']} | {row['clusters']} | {row['right']} | {' | '.join(cells)} |"


def main() -> int:
    """Read the command line, ask, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m studies.self_critique", description=__doc__)
    parser.add_argument("run", help="a finished run, as `agent0 run list` names it")
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--iteration", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="", help="where the run's model lies here, if elsewhere")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--as", dest="name", default="")
    options = parser.parse_args()
    try:
        run, settings = agent0.open().run(options.run), load(None, {})
        student = StudentConfig.model_validate(run.config["student"])
        here = {"model": options.model} if options.model else {}
        student = student.model_copy(update={**here, "max_tokens": WORDS})
        rows = drawn([r for r in run.attempts() if r["iteration"] == options.iteration], options.answers, options.seed)
        signals = confidence_signals(asyncio.run(critiques(settings, student, run, rows)))
    except Agent0Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(shown(signals)))
    if options.write:
        before = json.loads(options.write.read_text()) if options.write.exists() else {}
        after = {**before, options.name or run.id: signals}
        options.write.write_text(json.dumps(after, indent=1, default=list) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
