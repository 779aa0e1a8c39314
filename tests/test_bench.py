"""``agent0 bench``: plumbing that gets everything right with references, taking up what was begun, fair comparisons."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agent0.scorecards import compared, grouped, modes_compared, results, tally
from events.benchmarks import BenchmarkStarted, ItemScored
from tests.terminal import agent0

ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="needs the benchmark rows beside the checkout")


def item(name: str, correct: bool | None, mode: str = "tools", sample: int = 0, benchmark: str = "gsm8k") -> ItemScored:
    return ItemScored(
        benchmark=benchmark, item=name, mode=mode, sample=sample, answer="1", correct=correct, reason="", end="answered"
    )


def test_a_score_counts_items_and_undecided_ones_are_not_right() -> None:
    found = tally([item("a", True), item("b", None), item("c", False), item("d", True)])
    assert (found.n, found.correct, found.undecided, found.accuracy) == (4, 2, 1, 0.5)
    assert found.lower95 < 0.5 < found.upper95
    assert found.pass_at == {"1": 0.5}


def test_samples_of_an_item_are_one_observation() -> None:
    items = [item(str(n), n < 5, sample=s) for n in range(10) for s in range(8)]
    found = tally(items)
    assert (found.n, found.samples, found.correct) == (10, 8, 40)
    assert found.pass_at == {"1": 0.5, "2": 0.5, "4": 0.5, "8": 0.5}
    assert (found.lower95, found.upper95) == (tally(items[::8]).lower95, tally(items[::8]).upper95)


def test_comparisons_are_paired_and_corrected() -> None:
    rng = random.Random(3)
    names = [str(n) for n in range(200)]
    old = [item(name, rng.random() < 0.3, benchmark=b) for b in ("gsm8k", "math") for name in names]
    better = [one.model_copy(update={"correct": one.correct or rng.random() < 0.3}) for one in old[:200]]
    found = {one.benchmark: one for one in compared(old, [*better, *old[200:]])}
    assert (found["gsm8k"].verdict, found["math"].verdict) == ("better", "no difference shown")
    assert found["gsm8k"].adjusted == pytest.approx(2 * found["gsm8k"].difference.p)
    assert compared(old, []) == []
    plain = [one.model_copy(update={"mode": "plain"}) for one in old]
    assert [one.difference.mean for one in modes_compared([*old, *plain])] == [0.0, 0.0]


def test_results_are_shaped_as_lm_eval_shapes_them() -> None:
    began = BenchmarkStarted(
        name="tiny", benchmarks=("gsm8k",), modes=("tools", "plain"), samples=1, limit=0, seed=0,
        actor={"provider": "tiny"}, files={"gsm8k_test.jsonl": "0" * 64}, versions={"gsm8k": "abc"},
    )  # fmt: skip
    items = [item("a", True), item("b", False), item("a", True, "plain"), item("b", True, "plain")]
    told = results(began, [tally(part) for part in grouped(items).values()], "bench-1", "2026-01-01")
    entry = told["results"]["gsm8k"]
    assert (entry["acc,tools"], entry["acc,plain"]) == (0.5, 1.0)
    assert {"acc_stderr,tools", "pass@1,plain", "acc_lower95,tools"} <= set(entry)
    assert told["n-samples"]["gsm8k"]["effective"] == 2
    json.dumps(told)


@needs_rows
def test_references_get_everything_right_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    words = ("gsm8k,arc_challenge,bbh,mbpp", "--provider", "scripted", "--limit", "6", "--data", str(ROWS), "--json")
    said = agent0("bench", "run", *words, home=tmp_path)
    assert said.code == 0, said.err
    scores = {name: (entry["acc,tools"], entry["acc,plain"]) for name, entry in said.json["results"].items()}
    assert scores == dict.fromkeys(("gsm8k", "arc_challenge", "bbh", "mbpp"), (1.0, 1.0))
    assert set(said.json["files"]) == {
        "gsm8k_test.jsonl", "arc_challenge_test400.jsonl", "bbh_logic16x40.jsonl", "mbpp_sanitized.jsonl"
    }  # fmt: skip
    run = said.json["run"]
    again = agent0("bench", "run", *words, "--resume", run, home=tmp_path)
    assert again.json == said.json
    events = agent0(
        "projections", "query", f"SELECT count(*) AS n FROM events WHERE run = '{run}'", "--json", home=tmp_path
    )
    assert events.json[0]["n"] == 1 + 4 * 6 * 2 + 4 * 2 + 1
    other = agent0("bench", "run", *words, "--seed", "1", "--resume", run, home=tmp_path)
    assert (other.code, "Different: seed" in other.err) == (2, True)
    both = agent0("bench", "compare", run, run, "--json", home=tmp_path).json
    assert {one["verdict"] for one in both} == {"no difference shown"}


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    def fails(*words: str) -> Any:
        return agent0("bench", *words, "--data", str(tmp_path), home=tmp_path / "home")

    missing = fails("run", "gsm8k", "--provider", "scripted")
    assert (missing.code, "agent0 bench fetch gsm8k" in missing.err) == (1, True), missing
    unknown = fails("run", "gsm9k", "--provider", "scripted")
    assert (unknown.code, "Known:" in unknown.err) == (2, True)
    assert [row["rows"] for row in fails("list", "--json").json] == [None] * len(fails("list", "--json").json)
