"""How far a verdict can be trusted, measured on labelled pairs."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.cli import console, flags
from agent0.cli.lazy_group import takes_dashes
from agent0.errors import ConfigError
from agent0.grading import Grade
from agent0.grading.explanations import explain
from agent0.grading.math.symbolic import settle
from agent0.verification.labelled_pairs import PairSummary, decide_pairs, decoded, read_pairs, summary


@takes_dashes
def answer(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A whole reply; - reads it from standard input.")],
    expected: Annotated[str, typer.Option("--expected", help="The right answer.")],
    kind: Annotated[str, typer.Option("--kind", help="Kind of answer; as the right one reads by default.")] = "",
    as_json: console.Json = False,
) -> None:
    """Explain one verdict: what was read of a reply and where, what was compared, by which rule, and what would have
    changed it."""
    if not expected.strip():
        raise ConfigError("There is no right answer to compare with.", "--expected is empty.", "Name it: --expected 42")
    explanation = explain(expected, sys.stdin.read() if text == "-" else text, kind)
    grade = explanation.grade
    if grade.symbolic:
        grade = console.run_async(lambda: _settled(explanation.grade))
        explanation = replace(explanation, rule=grade.reason, mend="" if grade.correct else explanation.mend)
    verdict = {True: "right", False: "wrong", None: "undecided"}[grade.correct]
    fields = ("kind", "answer", "place", "expected", "got", "rule", "mend")
    console.record({"verdict": verdict} | {name: getattr(explanation, name) for name in fields}, as_json)


async def _settled(grade: Grade) -> Grade:
    """``grade`` with the symbolic engine's decision."""
    settings = flags.settings()
    sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings))
    try:
        return await settle(grade, sandbox)
    finally:
        await sandbox.close()


def pairs(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON lines.")],
    as_json: console.Json = False,
) -> None:
    """Decide labelled pairs and count. Rows: pair_id, gold, candidate, form, label, policy for answers; pair_id, setup,
    test, entry_point, candidate, label for programs. Rows with policy=true, on which graders may differ, are apart."""
    rows = read_pairs(decoded(file.read_bytes(), str(file)), str(file))
    settings = flags.settings()

    async def work() -> PairSummary:
        sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings))
        try:
            at_once = max(1, settings.sandbox.workers // 2) * settings.sandbox.calls
            return summary(await decide_pairs(rows, sandbox, at_once))
        finally:
            await sandbox.close()

    counts = console.run_async(work)
    if as_json:
        console.data(counts)
    else:
        _show(counts)


def _show(counts: PairSummary) -> None:
    policy = counts["policy"]
    console.record({name: count for name, count in counts.items() if name not in ("policy", "wrong")}, False)
    if counts["wrong"]:
        console.text(f"wrong: {', '.join(counts['wrong'])}")
    if policy["n"]:
        console.text(f"apart, policy: {policy['n']} pairs, accuracy {policy['accuracy']:.3f}")
