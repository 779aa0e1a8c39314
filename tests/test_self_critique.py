"""The self-critique turn: whatever a model can tell of its own answer is told, and what it cannot is absent."""

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from agent0.errors import OperationError
from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted
from agent0.events.values import Artifact, SelfCritique, Turn
from agent0.infra.storage import sqlite
from agent0.ports.models import GenerateRequest, Generation, Likely
from agent0.projections import Projector, tables
from agent0.projections.base import Row
from agent0.report.findings import findings
from agent0.report.html.run_page import page
from agent0.report.tables import confidence_rows
from agent0.rewards import rewards
from agent0.rollout.confidence.run_signals import confidence_signals
from agent0.rollout.confidence.self_critique import criticise, read_verdict
from agent0.rollout.confidence.signals import SELF_CRITIQUE
from agent0.settings import StudentConfig
from agent0.stats.calibrators import auroc, brier, ece, worth
from studies.self_critique import InWords, drawn
from tests.memory import MemoryArtifacts
from tests.play import play
from tests.world import ports, small, started

TRANSCRIPT = (Turn(role="user", content="What is 12+30?"), Turn(role="assistant", content="\\boxed{42}"))


@dataclass
class Replying:
    """Writes one text, a token a character, each of log-probability ``logprob`` where that is given."""

    text: str
    logprob: float | None = None
    asked: list[GenerateRequest] = field(default_factory=list)
    name: str = "replying"

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        known = () if self.logprob is None else (self.logprob,) * len(self.text)
        return Generation(self.text, logprobs=known, ends=tuple(range(1, len(known) + 1)))

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Scoring(Replying):
    """Scores texts; ``said`` are log-probabilities of Yes and No, none where the context is too short."""

    text: str = "never asked"
    said: tuple[float, float] | None = None

    async def likelihood(
        self, turns: Sequence[Turn], continuations: Sequence[str], adapter: Artifact | None = None
    ) -> Sequence[Likely]:
        assert [*turns[:-1]] == [*TRANSCRIPT] and turns[-1].role == "user" and "42" in turns[-1].content
        if self.said is None:
            raise OperationError("The texts do not fit into the model's context.")
        return [Likely(one, 1, len(text)) for one, text in zip(self.said, continuations, strict=True)]


async def judged(model: Replying) -> SelfCritique:
    return await criticise(model, StudentConfig(), TRANSCRIPT, "42", seed=1)


@given(st.floats(-900, 0), st.floats(-900, 0))
def test_likelihoods_of_both_words_share_the_probability(yes: float, no: float) -> None:
    found = asyncio.run(judged(Scoring(said=(yes, no))))
    other = asyncio.run(judged(Scoring(said=(no, yes))))
    assert found.by == "likelihood" and found.probability is not None and other.probability is not None
    assert math.isclose(found.probability + other.probability, 1, abs_tol=1e-9)
    if abs(yes - no) > 1e-9:
        assert found.verdict == (yes > no) and found.text == ("Yes" if yes > no else "No")


async def test_what_does_not_fit_has_no_probability() -> None:
    found = await judged(Scoring(said=None))
    assert (found.probability, found.verdict) == (None, None) and "do not fit" in found.problem


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes", True), ("no.", False), ("**No**, it is 43", False), ("<think>No? yes</think>\nNo", False),
        (" YES!", True), ("Not at all", None), ("I think yes", None), ("", None), ("Yesterday", None),
        ("<think>Yes", None),
    ],
)  # fmt: skip
async def test_a_reply_is_read_strictly(reply: str, verdict: bool | None) -> None:
    found = read_verdict(reply)
    assert (found[0] if found else None) == verdict
    by_text = await judged(Replying(reply))
    assert by_text.probability == (None if verdict is None else float(verdict))
    assert by_text.by == ("" if verdict is None else "text") and bool(by_text.problem) == (verdict is None)


async def test_of_a_reply_the_probability_of_its_word_counts() -> None:
    yes, no = await judged(Replying("Yes, it is", -0.1)), await judged(Replying("No", -0.1))
    assert yes.probability == pytest.approx(math.exp(-0.3)) and no.probability == pytest.approx(1 - math.exp(-0.2))
    assert (yes.by, no.by) == ("tokens", "tokens")
    unknown = await judged(Replying("Yes", math.nan))
    assert (unknown.by, unknown.probability) == ("text", 1.0)


async def test_the_turn_follows_the_attempt() -> None:
    model = Replying("Yes")
    found = await judged(model)
    assert model.asked[0].turns[:2] == TRANSCRIPT and model.asked[0].turns[2].content == found.question
    assert model.asked[0].sampling.temperature == 0 and model.asked[0].tools == ()


def _of(told: list[Recorded], kind: type) -> list[Recorded]:
    return [one for one in told if isinstance(one.event, kind)]


async def test_a_run_records_rewards_and_reports_it(tmp_path: Path) -> None:
    weights = {"student": {"self_critique": True}, "rewards": {"weights": {"self_critique": 0.5, "self_doubt": 0.25}}}
    told = await play(started(small(iterations=1, **weights)), ports())
    verdicts = {one.attempt: one.event.correct for one in _of(told, ResultVerified)}  # type: ignore[attr-defined]
    tried = [one.event for one in _of(told, TaskAttempted)]
    seen = {x.attempt: x for x in tried if isinstance(x, TaskAttempted)}
    answered = [x for x in seen.values() if x.answer is not None]
    assert answered and all(x.critique and x.critique.by == "tokens" for x in answered)
    assert all(x.critique is None and SELF_CRITIQUE not in x.signals for x in seen.values() if x.answer is None)
    for x in answered:
        assert x.critique and x.signals[SELF_CRITIQUE] == x.critique.probability
        assert "Is your answer" not in "".join(turn.content for turn in x.transcript)  # it is no part of the attempt
    paid = [one.event for one in _of(told, RewardAssigned)]
    for receipt in (x for x in paid if isinstance(x, RewardAssigned) and x.role == "student"):
        part = next(part for part in receipt.parts if part.name == "self_critique")
        said, right = seen[receipt.attempt].signals.get(SELF_CRITIQUE), verdicts[receipt.attempt]
        assert part.value == (None if said is None or right is None else pytest.approx(-((said - right) ** 2)))
    doubts = [
        part.value for x in paid if isinstance(x, RewardAssigned) for part in x.parts if part.name == "self_doubt"
    ]
    assert any(value is not None and 0 < value <= 1 for value in doubts)
    decided = [name for name, x in seen.items() if x.answer is not None and verdicts[name] is not None]
    _reported(told, tmp_path / "view.db", len(decided), sum(verdicts[name] is True for name in decided))


def _reported(told: list[Recorded], place: Path, answers: int, right: int) -> None:
    projector = Projector(place, sqlite.connect, tables(), "stream")
    projector.apply([(one.seq, one.to_json()) for one in told])
    projector.close()
    with sqlite.reading(place) as db:
        found = {row["signal"]: row for row in findings(db, MemoryArtifacts(), "r1")["confidence"]}
        assert set(found) == {"mean_token", "agreement", "self_critique"}
        assert all((row["items"], row["right"]) == (answers, right) for row in found.values())
        drawn = page(db, MemoryArtifacts(), "r1")
    row = confidence_rows([found["self_critique"]])[0]
    assert ">Signals of confidence</h2>" in drawn and row["Brier"] in drawn


async def test_a_run_is_not_asked_by_default() -> None:
    told = await play(started(small(iterations=1)), ports())
    assert all(one.event.critique is None for one in _of(told, TaskAttempted))  # type: ignore[attr-defined]


def test_entropy_of_answers_is_a_share_of_the_most_there_can_be() -> None:
    score = rewards("teacher")["answer_entropy"].score
    assert score({"answer_entropy": math.log(4), "attempts": 4, "self_consistency": 0.25}) == pytest.approx(1)
    assert score({"answer_entropy": 0.0, "attempts": 4, "self_consistency": 1.0}) == 0
    assert score({"answer_entropy": 0.0, "attempts": 4, "self_consistency": 0.0}) is None  # nobody answered
    assert score({"answer_entropy": 0.0, "attempts": 1, "self_consistency": 1.0}) is None


def test_worth_agrees_with_the_measures_and_its_intervals_hold_them() -> None:
    rng = random.Random(4)
    said = [rng.random() for _ in range(300)]
    came = [rng.random() < one for one in said]
    found = worth(said, came)
    assert found and found.auroc95
    assert (found.ece, found.brier, found.auroc) == (ece(said, came), brier(said, came), auroc(said, came))
    assert found.brier == pytest.approx(brier_score_loss(came, said))
    assert found.auroc == pytest.approx(roc_auc_score(came, said))
    assert found.brier95[0] < found.brier < found.brier95[1] and found.auroc95[0] < found.auroc < found.auroc95[1]
    row = confidence_rows([{"signal": "s", "within": None, "within95": None, **vars(found)}])[0]
    assert (row["answers"], row["tasks"]) == (300, 300) and f"{found.auroc:.3f}" in row["AUROC"]


def test_attempts_at_one_task_are_drawn_together() -> None:
    rng = random.Random(5)
    said = [rng.random() for _ in range(60)]
    came = [rng.random() < one for one in said]
    alone, repeated = worth(said, came), worth(said * 8, came * 8, [str(n) for n in range(60)] * 8)
    naive = worth(said * 8, came * 8)
    assert alone and repeated and naive and repeated.brier95 == pytest.approx(alone.brier95)
    assert naive.brier95[1] - naive.brier95[0] < (repeated.brier95[1] - repeated.brier95[0]) / 2


def test_outcomes_that_are_all_alike_have_no_area() -> None:
    found = worth([0.2, 0.7], [True, True])
    assert found and found.auroc is None and found.auroc95 is None and worth([], []) is None
    assert confidence_rows([]) == []


def test_signals_are_measured_over_answered_attempts_alone_and_agreement_over_the_others_of_a_task() -> None:
    def attempt(task: str, answer: str | None, correct: bool | None, mean_logprob: float | None = None) -> Row:
        texts = {"task": task, "answer": answer}
        return texts | {"correct": correct, "mean_logprob": mean_logprob, "self_critique": None}

    traces = [attempt("a", "4", True, -0.1), attempt("a", "4", True, -0.2), attempt("a", "5", False, -0.9)]
    traces += [attempt("a", None, False, -0.1), attempt("b", "7", None, -0.1), attempt("c", "1", False)]
    signals = {row["signal"]: row for row in confidence_signals(traces)}
    assert set(signals) == {"mean_token", "agreement"}, "nobody was asked for a judgement"
    assert (signals["mean_token"]["items"], signals["mean_token"]["auroc"]) == (3, 1.0)
    assert (signals["mean_token"]["mixed"], signals["mean_token"]["within"]) == (1, 1.0)
    assert signals["agreement"]["items"] == 3, "the lone attempt at c agrees with nothing, and is not one of these"
    assert signals["agreement"]["confidence"] == pytest.approx((1 / 3 + 1 / 3 + 0) / 3)
    assert confidence_signals([]) == []


def test_a_bootstrap_in_parts_is_that_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values, outcomes = [0.1, 0.4, 0.6, 0.9] * 5, [False, True] * 10
    whole = worth(values, outcomes)
    monkeypatch.setattr("agent0.stats.calibrators._CELLS", 100)
    assert worth(values, outcomes) == whole


def test_a_signal_that_knows_hard_tasks_alone_tells_nothing_within_a_task() -> None:
    traces = [
        {"task": task, "answer": str(n), "correct": correct, "mean_logprob": level, "self_critique": None}
        for task, level, right in (("easy", -0.1, 3), ("hard", -2.0, 1))
        for n, correct in enumerate([True] * right + [False] * (4 - right))
    ]
    signal = confidence_signals(traces)[0]
    assert signal["auroc"] == pytest.approx(0.75) and (signal["mixed"], signal["within"]) == (2, 0.5)


def test_a_finished_run_is_asked_about_whole_tasks_until_enough_answers_were_judged() -> None:
    rows: list[Row] = [
        {"task": f"t{task}", "answer": None if number == 3 else "4", "correct": number == 0}
        for task in range(9)
        for number in range(4)
    ]
    chosen = drawn(rows, 10, seed=0)
    assert len(chosen) == 16 and {row["task"] for row in chosen} == {row["task"] for row in drawn(rows, 10, seed=0)}
    assert all(sum(row["task"] == name for row in chosen) == 4 for name in {row["task"] for row in chosen})
    assert {row["task"] for row in drawn(rows, 10, seed=1)} != {row["task"] for row in chosen}
    assert len(drawn(rows, 10_000, seed=0)) == len(rows) and not drawn([], 5, seed=0)


def test_a_model_that_scores_texts_is_asked_in_words_where_many_answers_share_a_beginning() -> None:
    scoring = Scoring("No", -0.5)
    critique = asyncio.run(criticise(InWords(scoring), StudentConfig(), TRANSCRIPT, "42", seed=1))
    assert critique.by == "tokens" and critique.verdict is False and len(scoring.asked) == 1
    assert critique.probability == pytest.approx(1 - math.exp(-1))
