"""The first lines about benchmarks: words, intervals and p are of one test, and few items say so."""

import re
from typing import Any

import pytest

from agent0.cli import console
from agent0.cli.evaluation import bench
from agent0.events.benchmarks import ItemScored
from agent0.report.benchmark_findings import difference_row, tool_effects
from agent0.report.score_answers import FEW, benchmark_answer, compared_answer
from tests.test_bench_report import scored


def items(name: str, mode: str, right: int, n: int) -> list[ItemScored]:
    return [scored(mode, number, number < right, benchmark=name, item=f"{name}/{number}") for number in range(n)]


def score(n: int) -> dict[str, Any]:
    return {"benchmark": "a", "mode": "tools", "n": n, "accuracy": 0.5, "lower95": 0.4, "upper95": 0.6} | {
        "samples": 1,
        "truncated": 0,
        "undecided": 0,
    }


def test_few_benchmarks_are_told_with_interval_and_p_and_many_by_their_words() -> None:
    before, after = items("a", "tools", 5, 40), items("a", "tools", 30, 40)
    (line, limits) = compared_answer(rows(before, after), "b1", "b2")
    assert re.fullmatch(
        r"b2 less b1: a with tools \+62\.5 points \(\+\S+ to \+\S+\): better \(adjusted p \S+\)\.", line
    )
    assert "from 40 items" in limits
    names = "abcd"
    old = [one for name in names for one in items(name, "tools", 5, 40)]
    new = [one for name in names for one in items(name, "tools", 30 if name == "c" else 6, 40)]
    (line, _) = compared_answer(rows(old, new), "b1", "b2")
    assert line == "b2 less b1: of 4 comparisons, p adjusted: not significant on 3; better on 1 (c with tools)."


def rows(before: list[ItemScored], after: list[ItemScored]) -> list[dict[str, Any]]:
    return [difference_row(one) for one in bench.paired("b1", before, "b2", after)]


def test_a_run_of_benchmarks_says_what_tools_change_and_what_it_may_not_claim() -> None:
    effects = tool_effects([*items("a", "plain", 5, 40), *items("a", "tools", 6, 40)])
    found = {"scores": [score(40)], "tools_against_plain": effects, "provider": "tiny"}
    found |= {"max_tokens": 96, "max_truncated": 0.1}
    right, tools, limits = benchmark_answer(found)
    assert right == "Right: a with tools 50.0% (40.0% to 60.0%) of 40." and "from 40 items" in limits
    assert re.search(r"a \+2\.5 points \(-\S+ to \+\S+\): not significant \(adjusted p 1, smallest", tools)
    assert "small differences" not in benchmark_answer({**found, "scores": [score(FEW)]})[-1]
    assert "replays references" in benchmark_answer({**found, "provider": "scripted"})[-1]
    assert benchmark_answer({**found, "scores": [], "tools_against_plain": []})[0] == "Right: nothing is scored."
    unclear = benchmark_answer({**found, "scores": [score(40) | {"undecided": 3}]})
    assert "Undecided, and counted as not right: a with tools 3 of 40." in unclear
    many = benchmark_answer({**found, "scores": [score(FEW)] * 6})
    assert "2 more below" in many[0] and len(many) == 3


def test_a_comparison_of_benchmarks_shows_its_table_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = iter([(items("a", "tools", 5, 40), []), (items("a", "tools", 30, 40), [])] * 2)
    monkeypatch.setattr(console, "run_async", lambda _: next(sides))
    bench.compare("b1", "b2")
    short = capsys.readouterr().out
    bench.compare("b1", "b2", full=True)
    full = capsys.readouterr().out
    assert full.startswith(short) and "\t" not in short and "\t" in full
