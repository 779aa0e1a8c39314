"""``agent0 bench``: plumbing that gets everything right with references, taking up what was begun, fair comparisons."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.evaluation.benchmark_run import Plan, Progress, run_benchmarks
from agent0.assembly.log.access import open_log
from agent0.cli.evaluation.bench import BenchmarkReporter, paired
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.evaluation.benchmark_scores import compared, grouped, modes_compared, results, tally
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.events.values import Usage
from tests.terminal import agent0

ROOT = Path(__file__).parents[1]
ROWS = ROOT.parent / "shared" / "benchmarks"
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


def test_what_cannot_be_compared_is_an_error_that_says_why() -> None:
    tools, other, plain = [item("a", True)], [item("a", True, benchmark="math")], [item("a", True, "plain")]
    assert [one.benchmark for one in paired("r1", tools, "r2", tools)] == ["gsm8k"]
    for right, told in ((other, "math tools"), (plain, "gsm8k plain"), ([item("b", True)], "gsm8k tools")):
        with pytest.raises(OperationError, match=rf"no items .* r1 has scored gsm8k tools. r2 has scored {told}\."):
            paired("r1", tools, "r2", right)
    with pytest.raises(OperationError, match="only one mode"):
        paired("r1", tools, "r1", tools)


BEGAN = BenchmarkStarted(
    name="tiny", benchmarks=("gsm8k",), modes=("tools", "plain"), samples=1, limit=0, seed=0,
    actor={"provider": "tiny"}, files={"gsm8k_test.jsonl": "0" * 64}, versions={"gsm8k": "abc"},
)  # fmt: skip


def test_results_are_shaped_as_lm_eval_shapes_them() -> None:
    items = [item("a", True), item("b", False), item("a", True, "plain"), item("b", True, "plain")]
    told = results(BEGAN, [tally(part) for part in grouped(items).values()], "bench-1", "2026-01-01")
    entry = told["results"]["gsm8k"]
    assert (entry["acc,tools"], entry["acc,plain"]) == (0.5, 1.0)
    assert {"acc_stderr,tools", "pass@1,plain", "acc_lower95,tools"} <= set(entry)
    assert told["n-samples"]["gsm8k"]["effective"] == 2
    json.dumps(told)


@pytest.mark.slow  # part of make crash
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
    assert said.json["results"]["gsm8k"]["items_per_s,tools"] > 0
    unknown = agent0("bench", "run", *words, "--resume", "bench-ffffff", home=tmp_path)
    assert (unknown.code, "'bench-ffffff'" in unknown.err, "agent0 bench runs" in unknown.err) == (1, True, True)
    (listed,) = agent0("bench", "runs", "--json", home=tmp_path).json
    assert (listed["run"], listed["status"], listed["benchmarks"][3]) == (run, "finished", "mbpp")
    both = agent0("bench", "compare", run, run, "--json", home=tmp_path).json
    assert {one["verdict"] for one in both} == {"no difference shown"}


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    def fails(*words: str) -> Any:
        return agent0("bench", *words, "--data", str(tmp_path), home=tmp_path / "home")

    missing = fails("run", "gsm8k", "--provider", "scripted")
    assert (missing.code, "agent0 bench fetch gsm8k" in missing.err) == (1, True), missing
    unknown = fails("run", "gsm9k", "--provider", "scripted")
    assert (unknown.code, "Known:" in unknown.err) == (2, True)
    none = fails("run", " , ", "--provider", "scripted")
    assert (none.code, "No benchmark is named" in none.err) == (2, True)
    for provider in ("tiny", "scripted"):
        for command in (("run", "adversarial", "--limit", "1"), ("baseline", "--suites", "adversarial", "--out", "-")):
            ignored = fails(*command, "--provider", provider, "--model", "/nonexist")
            assert (ignored.code, "knows no model '/nonexist'" in ignored.err) == (2, True)
    listed = fails("list", "--json").json
    assert all(row["rows"] is None or row["made"] for row in listed)
    assert all(row["rows"] for row in listed if row["made"] and row["benchmark"] != "gym")


def test_what_a_run_costs_and_takes_is_in_its_results() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=500)
    items = [item(str(n), True).model_copy(update={"usage": usage, "wall_s": float(n)}) for n in range(20)]
    found = tally(items, (2.0, 8.0))
    assert found.metrics["cost"] == pytest.approx(20 * (1000 * 2 + 500 * 8) / 1e6)
    assert (found.metrics["latency_p50_s"], found.metrics["latency_p95_s"]) == pytest.approx((9.0, 18.0))
    entry = results(BEGAN, [found], "bench-1", "2026-01-01")["results"]["gsm8k"]
    assert (entry["cost,tools"], entry["latency_p95_s,tools"]) == pytest.approx((0.12, 18.0))
    now = Progress("gsm8k", "tools", 20, 40, 20, items, (2.0, 8.0))
    assert (now.cost, now.latency_s(0.5)) == pytest.approx((0.12, 9.0))
    assert Progress("gsm8k", "tools", 0, 40, 0).latency_s(0.5) == 0.0


class Shown:
    """What a person sees of items that come at given moments."""

    def __init__(self, whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.whole, self.lines = 0.0, whole, list[str]()
        monkeypatch.setattr("agent0.cli.console.say", self.lines.append)
        self._told = BenchmarkReporter(False, lambda: self.now)

    def at(self, moment: float, *done: int) -> list[str]:
        """The lines that these counts lead to."""
        self.now, before = moment, len(self.lines)
        for n in done:
            items = [item(str(i), True).model_copy(update={"wall_s": moment}) for i in range(n)]
            self._told(Progress("gsm8k", "tools", n, self.whole, n, items, at_once=50))
        return self.lines[before:]


def test_a_batch_that_comes_at_once_foretells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of fifty items that took 25 seconds together says nothing of the other forty-nine."""
    shown = Shown(150, monkeypatch)
    assert shown.at(0.0, 0) == []
    (first,) = shown.at(25.0, *range(1, 51))
    assert "left" not in first and "items/s" not in first
    assert "25.00 s wall" in first and "up to 50 at once" in first
    (second,) = shown.at(50.0, *range(51, 101))
    assert "2 items/s" in second and "50 s left" in second, second
    third = shown.at(75.0, *range(101, 151))
    assert "left" not in third[-1] and "2 items/s" in third[-1]


def test_time_left_is_what_is_left_at_the_pace_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(100, monkeypatch)
    shown.at(0.0, 0)
    lines = [line for n in range(1, 101) for line in shown.at(float(n), n)]
    assert "left" not in lines[0]
    assert "  90 s left" in lines[1] and "1 items/s" in lines[1]
    resumed = Shown(100, monkeypatch)
    resumed.at(0.0, 40)
    assert "  50 s left" in [line for n in range(1, 11) for line in resumed.at(float(n), 40 + n)][-1]


def test_likelihoods_stand_beside_the_accuracy_of_replies() -> None:
    told = [{"acc": 1.0, "acc_norm": 0.0}, {"acc": 1.0, "acc_norm": 1.0}, {}]
    items = [item(str(n), False, "plain").model_copy(update={"metrics": found}) for n, found in enumerate(told)]
    found = tally(items)
    assert (found.accuracy, found.metrics["acc"], found.metrics["acc_norm"]) == (0.0, 1.0, 0.5)
    entry = results(BEGAN, [found], "bench-1", "2026-01-01")["results"]["gsm8k"]
    assert (entry["acc,plain"], entry["acc,likelihood"], entry["acc_norm,likelihood"]) == (0.0, 1.0, 0.5)


CHILD = """
import asyncio, sys
from pathlib import Path
from agent0.assembly.evaluation.benchmark_run import Plan, run_benchmarks
from agent0.config.loading import load

def tell(now):
    print(now.mode, now.done, flush=True)

plan = Plan(("adversarial",), Path(), limit=30, at_once=2)
asyncio.run(run_benchmarks(load("scripted"), plan, "bench-killed", tell))
"""


@pytest.mark.slow  # part of make crash
@pytest.mark.usefixtures("shared_sandbox")
async def test_what_was_scored_before_a_kill_is_not_asked_again(tmp_path: Path) -> None:
    own = {"AGENT0_HOME": str(tmp_path), "AGENT0_SANDBOX__WORKERS": "1", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **own}
    with subprocess.Popen([sys.executable, "-c", CHILD], env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        next(line for line in child.stdout if line == "tools 10\n")
        child.kill()
    settings = load("scripted", env=environment)
    told: list[Progress] = []
    plan = Plan(("adversarial",), Path(), limit=30, at_once=2)
    found = await run_benchmarks(settings, plan, "bench-killed", told.append)
    assert 10 <= told[0].done <= 30
    assert sum(now.mode == "tools" for now in told) == 1 + 30 - told[0].done, "each of the rest is asked once"
    async with open_log(settings, "reader") as log:
        events = [r.event async for r in log.read("bench-killed", ["ItemScored"])]
    keys = Counter((event.item, event.mode, event.sample) for event in events if isinstance(event, ItemScored))
    assert (len(keys), set(keys.values())) == (60, {1})
    assert found["results"]["adversarial"]["acc,plain"] == 1.0
