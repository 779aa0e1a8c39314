"""Replies that met the limit of tokens are counted and named first; where they are many, the result says that it is no
score of the model, and what to do."""

from typing import Any

import pytest

from agent0.cli.evaluation.bench import _answer
from agent0.config.loading import load
from agent0.evaluation.benchmark_scores import grouped, results, tally
from agent0.evaluation.checkpoint_score import ScoredItem, score
from agent0.evaluation.item_events import items_of
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.events.checkpoints import EvaluationItemScored, EvaluationRequested
from agent0.events.values import Artifact
from agent0.report.answers import run_answer, truncation_line
from agent0.report.html.benchmark_page import bench_page
from agent0.report.markdown.baseline import baseline_page
from agent0.settings import EvaluationConfig
from tests.memory import MemoryArtifacts
from tests.test_baseline import MADE, findings
from tests.test_bench_report import scored

ACTOR = {"provider": "openai", "max_tokens": 512}
BEGAN = BenchmarkStarted(
    name="p", benchmarks=("gsm8k",), modes=("tools", "plain"), samples=1, limit=0, seed=0, actor=ACTOR, files={}
)


def items(mode: str, cut: int, n: int, right: int = 0, benchmark: str = "gsm8k", samples: int = 1) -> list[ItemScored]:
    return [
        ItemScored(
            benchmark=benchmark, item=str(number), mode=mode, sample=sample, answer="1" if number >= cut else None,
            correct=number >= n - right, reason="", end="length" if number < cut else "answered",
        )
        for number in range(n)
        for sample in range(samples)
    ]  # fmt: skip


def said(*scored: ItemScored, share: float = 0.1) -> list[str]:
    settings = load("tiny", {"run.student.provider": "openai", "run.student.max_tokens": "512"}, env={})
    evaluation = settings.run.evaluation.model_copy(update={"max_truncated": share})
    run = settings.run.model_copy(update={"evaluation": evaluation})
    return _answer(scored, settings.model_copy(update={"run": run}))


NO_SCORE = ": not a score of the model ("
MANY = [(6, 6), (1, 1), (2, 6), (3, 20), (50, 50), (11, 100), (6, 50), (100, 900), (5, 9), (9, 10)]
FEW = [(0, 6), (0, 1), (1, 10), (1, 50), (5, 50), (90, 900), (0, 900), (1, 100), (2, 20), (1, 11)]


@pytest.mark.parametrize(("cut", "n"), MANY)
def test_many_replies_that_were_cut_off_are_no_score(cut: int, n: int) -> None:
    first, right, *_ = said(*items("plain", cut, n))
    assert right.startswith("Right: ")
    replies = f"{cut} of {n} repl{'ies' if n > 1 else 'y'}"
    assert first.startswith(f"{replies} met max_tokens (512){NO_SCORE}gsm8k without tools). ")
    assert first.endswith("--set run.student.max_tokens=2048")


@pytest.mark.parametrize(("cut", "n"), FEW)
def test_few_are_counted_and_none_are_not_spoken_of(cut: int, n: int) -> None:
    first, second, *_ = said(*items("plain", cut, n, right=1))
    if not cut:
        assert first.startswith("Right: ") and "max_tokens" not in first + second
        return
    assert first == f"{cut} of {n} replies met max_tokens (512): gsm8k without tools."
    assert second.startswith("Right: ")


def test_what_was_cut_off_is_named_by_benchmark_and_mode() -> None:
    scored = [*items("tools", 0, 6, right=6), *items("plain", 6, 6), *items("plain", 1, 20, benchmark="math")]
    first = said(*scored)[0]
    assert first.startswith(f"6 of 6 replies met max_tokens (512){NO_SCORE}gsm8k without tools). ")
    assert "So did 1 of 20 replies of math without tools." in first and "with tools" not in first
    assert said(*items("plain", 3, 10, samples=4))[0].startswith("12 of 40 replies met max_tokens (512): not a score")
    both = said(*items("tools", 5, 6), *items("plain", 6, 6))[0]
    assert "11 of 12 replies" in both and "(gsm8k without tools 6 of 6, gsm8k with tools 5 of 6)" in both


def test_the_share_is_a_setting() -> None:
    scored = items("plain", 3, 10)
    assert said(*scored, share=0.5)[0] == "3 of 10 replies met max_tokens (512): gsm8k without tools."
    assert NO_SCORE in said(*scored, share=0.0)[0]
    assert said(*items("plain", 0, 10), share=0.0)[0].startswith("Right: ")
    assert EvaluationConfig().max_truncated == 0.1


def test_a_reply_that_was_cut_off_behind_its_answer_counts_as_answered() -> None:
    (one,) = items("plain", 0, 1, right=1)
    assert tally([one]).truncated == 0 and tally(items("plain", 4, 9)).truncated == 4


def test_results_and_scores_have_the_count() -> None:
    scored = [*items("tools", 2, 6), *items("plain", 6, 6)]
    found = results(BEGAN, [tally(part) for part in grouped(scored).values()], "b1", "2026-01-01")
    assert (found["results"]["gsm8k"]["truncated,tools"], found["results"]["gsm8k"]["truncated,plain"]) == (2, 6)


def test_no_limit_is_named_where_it_is_not_known() -> None:
    line = truncation_line([("b1", 3, 4)], None, 0.1)
    assert line == f"3 of 4 replies met max_tokens{NO_SCORE}b1). Ask again with more: run.student.max_tokens"


# --- evaluations of a run --------------------------------------------------------------------------------------------

REQUEST = EvaluationRequested(
    evaluation="base-test", checkpoint="base", iteration=-1, split="test", n=10, seed=1, state_sha="0" * 64
)


def held(cut: int, n: int) -> list[ScoredItem]:
    common: dict[str, Any] = {"domain": "math", "level": 1, "question": "q", "answer": None, "correct": False}
    return [ScoredItem(task=str(k), **common, tool_ok=0, tokens=1, seconds=0.1, truncated=k < cut) for k in range(n)]


@pytest.mark.parametrize(("cut", "n"), [*MANY, *FEW])
def test_a_checkpoint_s_score_counts_its_replies_that_were_cut_off(cut: int, n: int) -> None:
    stored = Artifact(sha256="0" * 64, size=1)
    assert score(REQUEST, held(cut, n), stored).truncated == cut


def test_an_item_of_an_evaluation_remembers_that_it_was_cut_off() -> None:
    common: dict[str, Any] = {"evaluation": "base-test", "domain": "math", "level": 1, "question": "q", "answer": None}
    ends = ("length", "answered", None)
    events = [
        EvaluationItemScored(number=k, item=str(k), correct=False, tool_ok=0, tokens=1, seconds=0.1, end=end, **common)
        for k, end in enumerate(ends)
    ]
    assert [item.truncated for item in items_of(events, MemoryArtifacts())] == [True, False, False]
    cut, whole = held(1, 2)
    assert cut.row()["truncated"] is True and "truncated" not in whole.row()


def overview(**changes: Any) -> dict[str, Any]:
    config = {"student": {"max_tokens": 96}, "evaluation": {"max_truncated": 0.1}, "curriculum": {}}
    plain = {
        "run": "r1",
        "profile": "p",
        "seed": 0,
        "status": "finished",
        "iterations": 1,
        "tasks": 1,
        "attempts": 1,
        "parent": None,
    }
    plain |= {"parent": None, "parent_seq": None}
    return {**plain, "wall_s": 1.0, "gain": [], "validation": [], "config": config, "truncated": [], **changes}


def test_the_first_lines_of_a_run_name_evaluations_that_were_cut_off() -> None:
    cut = [{"evaluation": "base-test", "truncated": 290, "n": 300}, {"evaluation": "v-0", "truncated": 1, "n": 60}]
    state, line, *_ = run_answer(overview(truncated=cut))
    assert state.startswith("Run r1")
    assert line.startswith(
        f"290 of 300 replies met max_tokens (96){NO_SCORE}base-test). So did 1 of 60 replies of v-0."
    )
    assert line.endswith("Ask again with more: --set run.student.max_tokens=384")
    assert "max_tokens" not in " ".join(run_answer(overview()))
    old = overview(truncated=cut, config={"student": {"max_tokens": 96}, "evaluation": {}, "curriculum": {}})
    assert run_answer(old)[1] == line


def test_the_pages_of_a_benchmark_run_begin_with_what_was_cut_off() -> None:
    whole = [scored("tools", number, True) for number in range(8)]
    cut = [scored("plain", number, False, answer=None, end="length") for number in range(8)]
    line = f"8 of 8 replies met max_tokens{NO_SCORE}gsm8k without tools)"
    for items_of_run, named in (([*whole, *cut], True), (whole, False)):
        found = findings(*items_of_run)
        pages = [baseline_page(found, {}, {}, MADE), bench_page(found)]
        assert [line in " ".join(page.split()) for page in pages] == [named, named]
