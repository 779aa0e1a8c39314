"""One training of a language model, told in three lines: before and after, the best prompt, what may not be claimed."""

import json
from pathlib import Path

import pytest

from agent0.cli.models import train
from agent0.report.answers import BenchmarkOutcome, training_lines
from tests.terminal import agent0 as call

TOOL = BenchmarkOutcome("with its tool", "1" * 10 + "0" * 50, 0.35)
WORDS = BenchmarkOutcome("in words", "1" * 20 + "0" * 40)
LEARNED = "It was trained on 40 answers to its own tasks."


def test_a_gain_that_a_prompt_has_too_is_no_gain_of_training() -> None:
    trained = BenchmarkOutcome("r/student-0", "1" * 21 + "0" * 39, 1.0)
    after, prompt, limits = training_lines("GSM8K", [TOOL, WORDS], trained, LEARNED)
    assert after.startswith("GSM8K: r/student-0 solves 35% of 60 rows, 17% before: +18.3 points")
    assert "improved" in after and after.endswith(LEARNED)
    assert "chosen on these rows: 33% (with its tool 17%, in words 33%)" in prompt and "+1.7 points" in prompt
    assert limits.startswith("Not to be claimed: that training gains what a prompt does not; that verdicts taught more")
    assert "35% before, 100% after" in limits and "60 rows are few" in limits


def test_even_a_proven_gain_is_not_the_verdicts() -> None:
    trained = BenchmarkOutcome("r/student-0", "1" * 50 + "0" * 10, 1.0)
    _, prompt, limits = training_lines("GSM8K", [TOOL, WORDS], trained, LEARNED)
    assert "improved" in prompt
    assert limits.startswith("Not to be claimed: that verdicts taught more than form")


FORM = BenchmarkOutcome("form alone", "1" * 22 + "0" * 38, 1.0)


def test_ahead_of_form_alone_verdicts_may_be_claimed_and_else_not() -> None:
    ahead, level = (BenchmarkOutcome("r/student-0", "1" * n + "0" * (60 - n), 1.0) for n in (50, 22))
    _, prompt, limits = training_lines("GSM8K", [TOOL, WORDS], ahead, LEARNED, FORM)
    assert "; form alone 37%, trained less it: +46.7 points" in prompt and "form" not in limits
    _, prompt, limits = training_lines("GSM8K", [TOOL, WORDS], level, LEARNED, FORM)
    assert "trained less it: +0.0 points" in prompt and "that verdicts taught more than form (" in limits


def test_the_best_prompt_may_be_the_one_that_was_trained() -> None:
    trained = BenchmarkOutcome("r/student-0", "1" * 30 + "0" * 30, 1.0)
    after, prompt, _ = training_lines("GSM8K", [WORDS, TOOL], trained, LEARNED)
    assert after.partition("before: ")[2].partition(". It")[0] == prompt.partition("best prompt: ")[2].rstrip(".")


def test_where_nothing_was_learned_nothing_is_compared() -> None:
    first, second, limits = training_lines("GSM8K", [TOOL, WORDS], None, "off_frontier 9.")
    assert first == "Nothing was learned: off_frontier 9."
    assert second == "GSM8K, 60 rows, untrained: with its tool 17%, in words 33%."
    assert "that training gains what a prompt does not" in limits


def test_a_command_goes_from_a_name_to_three_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "PROFILE", "scripted")
    monkeypatch.setattr(train, "PROVIDER", "scripted")
    monkeypatch.setattr(train, "_get", lambda name: None)
    rows = [{"id": f"gsm8k/test/{n}", "question": f"How many are {n} and 1?", "answer": str(n + 1)} for n in range(5)]
    (tmp_path / "gsm8k_test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sizes = [part for pair in ("tasks=4", "attempts=3", "evaluation.validation=3") for part in ("-s", f"run.{pair}")]
    done = call("model", "train", "", "--data", str(tmp_path), "--items", "4", *sizes, home=tmp_path / "home")
    assert done.code == 0, done.err
    last = done.out.strip().splitlines()[-3:]
    assert last[0].startswith(("GSM8K: ", "Nothing was learned: "))
    assert "in words" in last[1] and last[2].startswith("Not to be claimed: ")
