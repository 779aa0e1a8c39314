"""The page of a grid says what its numbers say: yes, no, not shown, and how much could have been seen; the command on
it writes it again."""

import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.experiments.ablation_results import (
    ONE_SEED,
    RunOutcome,
    as_json,
    comparison_rows,
    cost_rows,
    curves,
    measured,
    run_rows,
    variant_rows,
)
from agent0.report.charts.ablation_charts import chart_files
from agent0.report.conclusions import conclusion
from agent0.report.html.benchmark_page import ablation_page
from agent0.report.markdown.ablation import page, sentences
from agent0.report.markdown.rendering import points, span
from tests.terminal import agent0 as call
from tests.test_grids import cell

TASKS = 60
FULL = {
    "attempts": 100.0,
    "tokens": 5000.0,
    "learned_tokens": 900.0,
    "model_s": 1.0,
    "steps": 3.0,
    "training_s": 1.0,
    "wall_s": 9.0,
}
Right = Mapping[str, Sequence[int]]
"""By arm, seed by seed: how many of the tasks are solved at the end, the first so many."""


def outcomes_of(right: Right, before: int = 10) -> list[RunOutcome]:
    return [
        replace(cell(arm, seed, marks(before), marks(n)), cost=FULL)
        for arm, solved in right.items()
        for seed, n in enumerate(solved)
    ]


def marks(solved: int) -> str:
    return "1" * solved + "0" * (TASKS - solved)


def found_of(outcomes: Sequence[RunOutcome], arms: Sequence[str], failed: Sequence[str] = ()) -> dict[str, Any]:
    whys = [{"cell": name, "why": f"No. (exit code 2; /somewhere/try/{name}/said.txt)"} for name in failed]
    return {
        "grid": "try", "question": "Which is best?", "command": ["agent0", "experiment", "ablation", "try.toml"],
        "profile": "tiny", "seeds": [0, 1, 2], "own_bases": False, "given": {}, "effort": "Asked alike.",
        "folder": "/somewhere/try", "about": dict.fromkeys(arms, "an arm"),
        "settings": {arm: {"tasks": "3"} for arm in arms}, "complete": not failed, "failed": whys,
        "measures": measured(outcomes), "arms": variant_rows(outcomes), "against": comparison_rows(outcomes),
        "curves": curves(outcomes), "cost": cost_rows(outcomes), "cells": run_rows(outcomes),
    }  # fmt: skip


def told(right: Right) -> dict[str, Any]:
    return found_of(outcomes_of(right), list(right))


def answer(found: Mapping[str, Any], other: str = "b") -> str:
    (text,) = [one for one in sentences(found) if one.startswith(f"**Does {other} beat a?")]
    return text


# --- words follow from numbers


def test_a_clear_win_is_a_yes_and_a_clear_loss_a_no() -> None:
    found = told({"a": (20, 20, 21), "b": (50, 51, 52), "c": (5, 5, 5)})
    assert answer(found).startswith("**Does b beat a? Yes.** b less a, in points: test accuracy +51.1 (")
    assert answer(found, "c").startswith(
        "**Does c beat a? No, it is worse.** c less a, in points: test accuracy -25.6 ("
    )
    assert "would have been found" not in "".join(sentences(found))


def test_a_benchmark_that_runs_are_scored_on_is_a_measure_after_the_splits() -> None:
    def with_benchmark(outcome: RunOutcome, before: int, after: int) -> RunOutcome:
        scores = [score for score in outcome.scores if score.split == "test"]
        solved = [(score, before if score.iteration < 0 else after) for score in scores]
        fields = {"split": "benchmark", "benchmark": "gsm8k"}
        extra = [score.model_copy(update={**fields, "outcomes": marks(right)}) for score, right in solved]
        return replace(outcome, scores=(*outcome.scores, *extra))

    right = {"a": (20, 20, 21), "b": (20, 20, 21)}
    outcomes = [with_benchmark(entry, 10, 12 if entry.arm == "a" else 50) for entry in outcomes_of(right)]
    results = found_of(outcomes, list(right))
    assert results["measures"] == ["test", "validation", "gsm8k"]
    assert answer(results).startswith("**Does b beat a? Not significant.**")
    assert "gsm8k accuracy +63.3" in answer(results)
    assert "gsm8k accuracy" in page(results, {}, "docs/try.md") and "Gsm8k accuracy" in ablation_page(results)


def test_where_nothing_is_shown_it_says_what_would_have_been() -> None:
    found = told({"a": (30, 32, 31), "b": (31, 31, 31)})
    least = found["against"][0]["detectable"]
    assert 0 < least < 0.5
    assert answer(found).startswith("**Does b beat a? Not significant.** b less a, in points: test accuracy +0.0 (")
    assert f"With 3 seeds and 60 tasks a true difference of {100 * least:.1f} points would have been" in answer(found)
    few = told({"a": (10, 50), "b": (30, 30)})
    assert "With 2 seeds and 60 tasks no difference would have been found" in answer(few)


def test_one_seed_claims_nothing() -> None:
    found = told({"a": (0,), "b": (60,)})
    assert answer(found).startswith(
        "**Does b beat a? Not significant.** b less a, in points: test accuracy +100.0 (no interval"
    )
    assert ONE_SEED in answer(found) and "would have been found" not in answer(found)
    text = page(found, {}, "docs/try.md")
    assert "improved |" not in text and "decreased |" not in text


def test_a_failed_cell_is_named_and_nothing_is_said_of_its_arm() -> None:
    right = {"a": (50, 51, 50), "b": (10, 10, 11)}
    found = found_of(outcomes_of(right), ["a", "b", "c"], ["c-0"])
    assert answer(found, "c") == "**Does c beat a? Unknown:** no seed has finished runs of both."
    text = page(found, {}, "docs/try.md")
    assert "**Not complete:** 6 runs are finished. c-0 failed: No. (exit code 2; c-0/said.txt)" in text
    found = found_of(outcomes_of(right), ["first", "a", "b"], ["first-0"])
    assert "? Yes" not in "".join(sentences(found))
    none = found_of([], ["a", "b"], ["a-0", "b-0"])
    assert "- Nothing was measured: no run is finished." in page(none, {}, "docs/try.md") and chart_files(none) == {}


def test_who_was_never_trained_is_named() -> None:
    still = [replace(one, student="base") for one in outcomes_of({"b": (10,)}, 10)]
    found = found_of([*outcomes_of({"a": (50,)}), *still], ["a", "b"])
    assert sentences(found)[-1].endswith("the student is still the base: b (seed 0).")
    assert not any("still the base" in said for said in sentences(told({"a": (50,)})))


def test_what_it_took_is_told_beside_the_first() -> None:
    outcomes = outcomes_of({"a": (1, 1), "b": (1, 1)})
    dear = [replace(one, cost={**FULL, "tokens": 6000.0}) if one.arm == "b" else one for one in outcomes]
    assert "Compared with a run of a: b attempts +0 %, tokens +20 %, learned tokens +0 %, seconds +0 %." in page(
        found_of(dear, "ab"), {}, "x.md"
    )
    free = [replace(one, cost=dict.fromkeys(FULL, 0.0)) for one in outcomes]
    assert "Compared with" not in page(found_of(free, "ab"), {}, "x.md")


seeds = st.lists(st.integers(0, TASKS), min_size=1, max_size=3)


@settings(max_examples=8, deadline=None)
@given(seeds, seeds)
def test_turning_the_arms_round_turns_the_answer(one: list[int], other: list[int]) -> None:
    there, back = (told(right) for right in ({"a": one, "b": other}, {"a": other, "b": one}))
    turned = {"Yes": "No, it is worse", "No, it is worse": "Yes", "Not significant": "Not significant"}
    verdicts = [answer(found).partition("? ")[2].partition(".**")[0] for found in (there, back)]
    assert verdicts[0] == turned[verdicts[1]]
    text = page(there, {}, "docs/try.md")
    for row in there["against"]:
        assert f"| {points(row['mean'])} | {span(row)} |" in text and conclusion(row["word"]) in text
    assert ("? Yes" in text) == (there["against"][0]["word"] == "improved")
    assert "-0.0 " not in text and "nan" not in text


# --- pictures


def test_pictures_are_whole_files_for_light_and_dark() -> None:
    found = told({"a": (50, 51, 52), "b": (20, 20, 21)})
    drawn = chart_files(found)
    assert set(drawn) == {"arms", "curve"} and drawn == chart_files(json.loads(json.dumps(found)))
    for text in drawn.values():
        root = ET.fromstring(text)
        wide, high = (float(side) for side in root.attrib["viewBox"].split()[2:])
        places = [(float(e.attrib["x"]), float(e.attrib["y"])) for e in root.iter() if e.tag.endswith("text")]
        assert len(places) > 5 and all(0 <= x < wide and 0 < y < high for x, y in places)
        assert "prefers-color-scheme: dark" in text and "http://" not in re.sub(r'xmlns(:xlink)?="http://', "", text)
        assert ">a</text>" in text and ">b</text>" in text
    dots = [e for e in ET.fromstring(drawn["arms"]).iter() if re.search(r"fill: var\(--c\d\)", e.get("style", ""))]
    assert len(dots) == 2 * 3 + 3  # two arms at the end, untrained and with their tool forced; and the key
    text = page(found, {name: f"try-{name}.svg" for name in drawn}, "docs/try.md")
    assert "](try-arms.svg)" in text and "](try-curve.svg)" in text


def test_the_html_page_says_the_same() -> None:
    found = told({"a": (50, 51, 52), "b": (20, 20, 21)})
    shown = ablation_page(found)
    assert all(said.replace("**", "") in shown for said in sentences(found))


# --- the command line


FILE = """
question = "Which is best?"
profile = "scripted"
seeds = [0, 1]
run.iterations = 3

[variants.even]

[variants.trained]
about = "the teacher is trained"
run.training.teacher.enabled = true
"""
GIVEN = ("--variant", "own:run.curriculum.patience=9", "--set", "run.evaluation.levels=[1, 2]")


def test_the_command_on_a_page_writes_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that are finished, so that none is executed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "mine.toml").write_text(FILE)
    for one in outcomes_of(dict.fromkeys(("even", "trained", "own"), (30, 31))):
        folder = tmp_path / "grids" / "mine-scripted" / f"{one.arm}-{one.seed}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(as_json(one)))
    done = call("experiment", "ablation", "mine.toml", *GIVEN, "--write", "docs/a-page.md", home=tmp_path)
    assert done.code == 0 and "Does own beat even? Not significant." in done.out, done.err
    pages = sorted((tmp_path / "docs").iterdir())
    assert [one.name for one in pages] == ["a-page-arms.svg", "a-page-curve.svg", "a-page.md"]
    written = [one.read_text() for one in pages]
    assert "# A page\n" in written[2] and str(tmp_path) not in written[2]
    assert "- **trained**: the teacher is trained; `training.teacher.enabled=true`" in written[2]
    agent0, *words = shlex.split(written[2].split("```")[1])
    assert agent0 == "agent0" and "run.evaluation.levels=[1, 2]" in words and "mine.toml" in words
    for one in pages:
        one.unlink()
    assert call(*words, home=tmp_path).code == 0
    assert [one.read_text() for one in pages] == written
