"""Scores of benchmarks, their items and what is refused as such, with all fields, by hand."""

import dataclasses
import json
from typing import Any

import pytest

from agent0.errors import Agent0Error, ConfigError
from agent0.evaluation import benchmark_scores
from agent0.evaluation.benchmark_scores import (
    by_item,
    chosen_by,
    compared,
    cost,
    grouped,
    modes_compared,
    results,
    tally,
)
from agent0.evaluation.benchmarks import Benchmark, Item, benchmarks, chosen, drawn, make_items, plus, read_items
from agent0.evaluation.suite import BenchmarkSuite, made_suites, same_rows
from agent0.events.base import sha256
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.events.checkpoints import EvaluationRequested
from agent0.events.values import Usage
from agent0.grading import Grade
from agent0.ports.models import Likely
from agent0.settings import EvaluationConfig
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import agreeing, compare
from agent0.verification.programs import Problem, ProgramOutcome
from tests.memory import TrustingSandbox


def refused(work: Any, kind: type[Agent0Error]) -> tuple[str, str, str]:
    with pytest.raises(kind) as found:
        work()
    return found.value.what, found.value.why, found.value.fix


def answered(item: str, sample: int = 0, correct: bool | None = True, mode: str = "tools", **more: Any) -> ItemScored:
    plain = {"benchmark": "b", "answer": "1", "reason": "", "end": "answered"}
    return ItemScored.model_validate(
        {**plain, "item": item, "sample": sample, "correct": correct, "mode": mode, **more}
    )


ANSWERS = [
    answered("y", 0, True, usage=Usage(prompt_tokens=10, completion_tokens=3), wall_s=1.0, tool_ok=2, metrics={"m": 1}),
    answered("x", 1, None, usage=Usage(prompt_tokens=20, completion_tokens=4), wall_s=2.0),
    answered("x", 0, False, usage=Usage(prompt_tokens=30, completion_tokens=5), wall_s=4.0, metrics={"m": 2, "a": 5}),
    answered("y", 1, False, wall_s=8.0),
]


def test_items_are_grouped_in_order_and_shared_by_their_samples() -> None:
    plain = answered("z", mode="plain")
    held = grouped([*ANSWERS, plain])
    assert list(held) == [("b", "plain"), ("b", "tools")]
    assert [(one.item, one.sample) for one in held["b", "tools"]] == [("x", 0), ("x", 1), ("y", 0), ("y", 1)]
    assert by_item(ANSWERS) == {"y": 0.5, "x": 0.0} and by_item([]) == {}
    assert cost(ANSWERS, (2.0, 100.0)) == pytest.approx((2 * 60 + 100 * 12) / 1_000_000)


def test_a_tally_has_all_fields() -> None:
    low, high = wilson(0, 2)  # a quarter of two items, to the nearest count
    assert tally(ANSWERS, (1.0, 10.0)).model_dump() == {
        "benchmark": "b", "mode": "tools", "n": 2, "samples": 2, "correct": 1, "undecided": 1, "truncated": 0,
        "accuracy": 0.25,
        "lower95": low, "upper95": high, "pass_at": {"1": 0.25, "2": 0.5}, "wall_s": 15.0,
        "metrics": {
            "latency_p50_s": 2.0, "latency_p95_s": 8.0, "prompt_tokens": 60.0, "completion_tokens": 12.0,
            "tool_use": 0.25, "cost": pytest.approx(180 / 1e6), "a": 5.0, "m": 1.5,
        },
    }  # fmt: skip
    uneven = tally([*ANSWERS, answered("w")])
    assert (uneven.n, uneven.samples, uneven.accuracy, set(uneven.pass_at)) == (3, 2, 0.5, {"1"})
    assert tally([answered("x", n) for n in range(9)]).pass_at == dict.fromkeys(("1", "2", "4", "8"), 1.0)
    assert tally(ANSWERS).metrics["cost"] == 0.0


def test_a_results_file_has_all_that_lm_eval_writes() -> None:
    begun = BenchmarkStarted(
        name="n", benchmarks=("b",), modes=("tools",), samples=2, limit=5, seed=0,
        actor={"provider": "tiny", "model": "m"}, files={"f": "0"}, versions={"b": "v", "c": "w"},
    )  # fmt: skip
    one = tally(ANSWERS).model_copy(update={"metrics": {"cost": 0.5, "acc": 0.75, "other": 1.0, "items_per_s": 2.0}})
    other = one.model_copy(update={"mode": "plain", "accuracy": 0.75, "n": 1, "pass_at": {}, "metrics": {}})
    found = results(begun, [one, other], "run-1", "today")
    assert found == {
        "results": {
            "b": {
                "alias": "b", "truncated,tools": 0, "truncated,plain": 0,
                    "acc,tools": 0.25, "acc_stderr,tools": pytest.approx((0.25 * 0.75) ** 0.5),
                "acc_lower95,tools": one.lower95, "acc_upper95,tools": one.upper95, "pass@1,tools": 0.25,
                "pass@2,tools": 0.5, "cost,tools": 0.5, "items_per_s,tools": 2.0, "acc,likelihood": 0.75,
                "acc,plain": 0.75, "acc_stderr,plain": pytest.approx((0.25 * 0.75) ** 0.5),
                "acc_lower95,plain": one.lower95, "acc_upper95,plain": one.upper95,
            }
        },
        "configs": {"b": {"task": "b", "num_fewshot": 0, "version": "v"}},
        "versions": {"b": "v", "c": "w"}, "n-shot": {"b": 0},
        "n-samples": {"b": {"original": 1, "effective": 1}},
        "config": {"model": "tiny", "model_args": {"provider": "tiny", "model": "m"}, "limit": 5},
        "files": {"f": "0"}, "run": "run-1", "date": "today",
    }  # fmt: skip
    four = results(begun.model_copy(update={"versions": {}}), [one.model_copy(update={"n": 4})], "", "")
    assert four["results"]["b"]["acc_stderr,tools"] == pytest.approx(0.25) and four["configs"]["b"]["version"] == ""


def test_only_what_both_have_scored_is_compared() -> None:
    old = [answered(f"i{n}", correct=False) for n in range(10)] + [answered("old")]
    new = [answered(f"i{n}") for n in range(10)] + [answered("new", correct=False)]
    alone = [answered("i", benchmark="c")]
    (found,) = compared([*old, *alone], [*new, answered("i", benchmark="c", mode="plain")])
    test = compare([0.0] * 10, [1.0] * 10)
    assert (
        found == benchmark_scores.Compared("b", "tools", 0.0, 1.0, agreeing(test, test.p), test.p)
        and found.verdict == "better"
    )
    assert compared(new, old)[0].verdict == "worse" and compared(old, old)[0].verdict == "no difference shown"
    assert compared([answered("x")], [answered("y")]) == []
    plain = [one.model_copy(update={"mode": "plain"}) for one in old]
    assert modes_compared([*plain, *new, *alone]) == [found]
    both = [answered(f"i{n}", correct=n > 7, benchmark="c") for n in range(10)]
    twice = compared([*old, *both], [*new, *[answered(f"i{n}", benchmark="c") for n in range(10)]])
    assert [(one.benchmark, one.adjusted) for one in twice] == [("b", 2 * test.p), ("c", pytest.approx(0.5**7))]


def test_likelihoods_choose_the_first_of_equals_by_both_metrics() -> None:
    likely = [Likely(-2.0, 9, 1), Likely(-2.0, 1, 4), Likely(-9.0, 1, 0)]
    assert chosen_by(likely, 0) == {"acc": 1.0, "acc_norm": 0.0}
    assert chosen_by(likely, 1) == {"acc": 0.0, "acc_norm": 1.0}
    assert chosen_by([Likely(-3.0, 1, 0), Likely(-4.0, 1, 1)], 0) == {"acc": 1.0, "acc_norm": 1.0}


MADE = {"adversarial": "7badc1e1192d", "coding": "f1a795d50884", "tool_scenarios": "7ee889ad56f9"}
"""Of 42 items, without files (a database's bytes are those of its version) and references (sources of this program)."""


@pytest.mark.parametrize("name", MADE)
def test_made_items_stay_those_that_stored_scores_are_of(name: str) -> None:
    items, _ = make_items(benchmarks()[name], 42, 5)
    told = [(one.id, one.question, one.gold, one.data, sorted(one.files), dict(one.facts)) for one in items]
    texts = [data.decode() for one in items for file, data in one.files.items() if not file.endswith(".db")]
    assert sha256(json.dumps([told, texts]))[:12] == MADE[name]


def test_a_digest_is_over_all_that_is_asked_and_judged() -> None:
    def made(**more: Any) -> str:
        item = dataclasses.replace(Item("i", "q", "g", "r", files={"f": b"1"}), **more)
        entry = dataclasses.replace(benchmarks()["adversarial"], make=lambda n, seed: [item] * n, size=2)
        assert len(make_items(entry, 0, 1)[0]) == 2 and len(make_items(entry, 3, 1)[0]) == 3
        return make_items(entry, 1, 1)[1]

    assert made() == made(restatements=("other",))
    assert len({made(), *(made(**{name: "x"}) for name in ("id", "question", "gold", "data")), made(files={})}) == 6
    assert made(files={"f": b"2"}) != made()


def test_items_are_drawn_in_their_own_order() -> None:
    entry = benchmarks()["gsm8k"]
    items = [Item(str(n), "", "", "") for n in range(9)]
    assert drawn(entry, items, 0, 1) == drawn(entry, items, 9, 1) == drawn(entry, items, 10, 1) == items
    found = [int(one.id) for one in drawn(entry, items, 5, 1)]
    assert len(found) == 5 and found == sorted(found) and found != list(range(5))
    assert found == [int(one.id) for one in drawn(entry, items, 5, 1)]
    other = drawn(benchmarks()["svamp"], items, 5, 1), drawn(entry, items, 5, 2)
    assert all([int(one.id) for one in them] != found for them in other)


def rows_of(entry: Benchmark, *lines: str) -> Any:
    return lambda: read_items(entry, "\n".join(lines), "f")


def test_rows_and_names_that_are_none_are_refused_in_full() -> None:
    entry, good = benchmarks()["gsm8k"], json.dumps({"id": "a", "question": "q", "answer": "1"})
    wanted = f"Read are id, question, answer; or rows as they were published: {entry.source}"
    told = {
        ("", good, "", good): ("f, line 4: id 'a' is that of line 2.", "", ""),
        ("", " "): ("f has no rows.", "It is read as JSON objects, one a line or in one list.", ""),
        ("3",): ("f, line 1: no JSON object.", "", ""),
        ("x",): ("f, line 1: no JSON.", "Expecting value: line 1 column 1 (char 0).", ""),
        ('{"id": "a"}',): ("f, line 1: no row of gsm8k.", "Field 'answer' is missing. It has id.", wanted),
        (good.replace('"1"', '" "'),): ("f, line 1: the gold answer is empty.", "", ""),
    }  # fmt: skip
    for lines, texts in told.items():
        assert refused(rows_of(entry, *lines), ConfigError) == texts
    lettered = benchmarks()["arc_easy"]
    row = {"id": "a", "question": "q", "choices": "xy", "labels": ["A"], "answer": "A"}
    assert refused(rows_of(lettered, json.dumps(row)), ConfigError) == (
        "f, line 1: no row of arc_easy.",
        "Field 'choices' is missing or not a list. It has id, question, choices, labels, answer.",
        f"Read are id, question, choices, labels, answer; or rows as they were published: {lettered.source}",
    )  # fmt: skip
    assert refused(rows_of(lettered, json.dumps({**row, "choices": ["x"]})), ConfigError) == (
        "f, line 1: no row of arc_easy.", "ValueError: 1 labels for 1 choices.", "",
    )  # fmt: skip
    known = ", ".join(benchmarks())
    assert refused(lambda: chosen(["x" * 99]), ConfigError) == (
        f"There is no benchmark {'x' * 80!r}.", f"Known: {known}.", "See: agent0 bench list",
    )  # fmt: skip
    assert refused(lambda: chosen(["gsm8k:x"]), ConfigError) == (
        "The benchmark gsm8k has no parts.", "", "Name it alone: gsm8k",
    )  # fmt: skip


def test_facts_of_a_row_are_short_texts_or_numbers() -> None:
    row = {"id": "a", "question": "q", "answer": "1", "subject": "s" * 99, "level": 3}
    (item,) = read_items(benchmarks()["gsm8k"], json.dumps(row), "f")
    assert item == Item("a", "q", "1", "\\boxed{1}", facts={"subject": "s" * 80, "level": "3"})
    (item,) = read_items(benchmarks()["gsm8k"], json.dumps({**row, "subject": ["s"], "level": None}), "f")
    assert item.facts == {}
    assert Item("", "q", "", "").texts == ("q",) and Item("", "q", "", "", stem="s").texts == ("s",)
    assert Item("", "q", "", "", stem="s", restatements=("a", "b")).texts == ("a", "b")


def test_the_rows_of_a_suite_stay_those_that_the_run_began_with() -> None:
    held = BenchmarkSuite(benchmarks()["gsm8k"], (), "1" * 64, "rows.jsonl")
    request = EvaluationRequested(
        evaluation="e", checkpoint="base", iteration=0, split="benchmark", n=4, seed=7, state_sha="", benchmark="gsm8k"
    )
    assert same_rows(held, {}, request) is held is same_rows(held, {"gsm8k/4/7": "1" * 64}, request)
    assert same_rows(held, {"gsm8k/4/8": "2" * 64}, request) is held
    assert refused(lambda: same_rows(held, {"gsm8k/4/7": "2" * 64}, request), ConfigError) == (
        "The rows of gsm8k have changed.",
        f"rows.jsonl has sha256 {'1' * 12}, and the run began with {'2' * 12}.",
        "Put the rows back that the run began with, or start another run.",
    )
    plan = EvaluationConfig(benchmarks=("gsm8k", "adversarial", "heldout_math", "coding"), benchmark_items=9, seed=5)
    assert made_suites(plan) == (("adversarial", 9, 5), ("coding", 9, 5))


@pytest.mark.parametrize("rule", ["equal", "truth"])
async def test_functions_are_judged_on_inputs_whose_result_is_known(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    async def checked(problem: Problem, reply: str, sandbox: object) -> ProgramOutcome:
        seen.append((problem, reply))
        return ProgramOutcome(True, "passed", 3)

    monkeypatch.setattr(plus, "check", checked)
    data = json.dumps({"calls": ["a", "b"], "rule": rule, "atol": 0.5})
    item = Item("i", "q", "f", "def f(x): return x", problem=Problem("", "import os", "f"), data=data)

    async def graded(reply: str = "def f(x): return 1", one: Item = item) -> Grade:
        return await plus.judge(one, reply, None, TrustingSandbox())

    assert await graded() == Grade(True, "passed", "f", "3 calls")
    ((tested, reply),) = seen
    assert (tested.setup, tested.entry, tested.wall_s, tested.mem_mib) == ("import os", "f", 60.0, 4096)
    facts = (1e-06, "f", "import os\ndef f(x): return x", ["a", "b"], rule, 0.5)
    assert tested.test.startswith(f"ABOUT_ZERO, ENTRY, SOURCE, CALLS, RULE, ATOL = {facts!r}\n")
    assert reply == "def f(x): return 1"
    no_problem = dataclasses.replace(item, problem=None)
    assert await graded(" ") == Grade(False, "no program", "f") == await graded("x", no_problem)
