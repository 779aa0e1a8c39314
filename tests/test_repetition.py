"""How alike questions are: the same numbers to the last bit as when receipts were recorded, and never computed where
the event loop waits."""

import asyncio
import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.tasks import ResultVerified
from agent0.events.values import Task
from agent0.handlers.assign_reward import assign_reward
from agent0.rewards import batch_similarity
from agent0.rewards.assign import assigned_rewards
from agent0.rewards.batch_similarity import ORDER, bleu, distances, shares
from agent0.settings import RewardConfig, RunConfig
from agent0.state.run_state import AttemptState, RunState, TaskState

TASKS = 1000
BATCH = (
    "What is 12+30?",
    "Compute 12+30.",
    "What is 12+31?",
    "What is the sum of 3 and 4 and 3 and 4?",
    "What is the sum of 3 and 4?",
    "",
    "Sort [3, 1, 2].",
    "the the the the",
)
RECORDED = [
    "0x1.84f9dec791305p-1",
    "0x1.f9dfffe650c94p-1",
    "0x1.e8c386fa24150p-1",
    "0x1.84f9dec791305p-1",
    "0x1.f9dfffe650c94p-1",
    "0x1.e8c386fa24150p-1",
    "0x1.f9dfffe650c94p-1",
    "0x1.f9dfffe650c94p-1",
    "0x1.ae1fc86aad9b0p-2",
    "0x1.f7476d1e0b167p-1",
    "0x1.e8c386fa24150p-1",
    "0x1.e8c386fa24150p-1",
    "0x1.ae1fc86aad9b0p-2",
    "0x1.f1c751b5c3712p-1",
    "0x1.f7476d1e0b167p-1",
    "0x1.f1c751b5c3712p-1",
]
"""Distances strictly between 0 and 1, row by row, as they were when receipts of sets ``paper`` and ``released`` were
first recorded."""


def test_distances_are_those_of_recorded_receipts_to_the_last_bit() -> None:
    apart = distances([question.split() for question in BATCH])
    assert [one.hex() for row in apart for one in row if 0 < one < 1] == RECORDED
    assert shares(BATCH) == (0.125, 0.125, 0.125, 0.25, 0.25, 0.125, 0.125, 0.125)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=2, max_size=6))
def test_a_batch_is_compared_as_each_two_are(questions: list[list[str]]) -> None:
    apart = distances(questions)
    for first, one in enumerate(questions):
        for second in range(first + 1, len(questions)):
            assert apart[first][second] == apart[second][first] == 1 - bleu(questions[second], one)


class Counted(Sequence[str]):
    """Words that count how often n-grams are taken from them."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.taken = words, 0

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, place: Any) -> Any:
        self.taken += isinstance(place, slice)
        return self.words[place]


def test_n_grams_are_counted_once_a_question_however_large_the_batch() -> None:
    batch = [Counted(f"what is {n} and {n + 1} ?".split()) for n in range(64)]
    distances(batch)
    assert {one.taken for one in batch} == {sum(len(batch[0]) - size + 1 for size in range(1, ORDER + 1))}


def large() -> tuple[RunState, ResultVerified]:
    """A run of 1,000 tasks, the first of which was just settled."""
    rng = random.Random(0)
    tasks = {}
    for n in range(TASKS):
        question = f"What is {rng.randint(2, 99)}{rng.choice('+-*')}{rng.randint(2, 99)}?"
        proposal = Task(question=question, domain="math", family="arithmetic", level=1, canonical=question)
        tasks[f"t0-{n:03d}"] = TaskState(n, "math", "arithmetic", 1, proposed=True, proposal=proposal, novelty=1.0)
    attempt = AttemptState(0, answer="42", attempted=True, verified=True, judge="v", correct=True)
    vars(tasks["t0-000"]).update(accepted=True, attempts={"t0-000-a0": attempt})
    config = RunConfig(tasks=TASKS, attempts=1, rewards=RewardConfig(set="paper"))
    run = RunState("r", 9, config, "", iteration=0, tasks=tasks, just_settled="t0-000")
    event = ResultVerified(task="t0-000", attempt="t0-000-a0", iteration=0, correct=True, verifier="v", reason="")
    return run, event


async def test_a_thousand_questions_are_never_compared_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[int] = []
    compare = batch_similarity.distances

    def noted(questions: Sequence[Sequence[str]]) -> list[list[float]]:
        where.append(threading.get_ident())
        return compare(questions)

    monkeypatch.setattr(batch_similarity, "distances", noted)
    shares.cache_clear()
    run, event = large()
    first, again = await asyncio.gather(assign_reward(event, run), assign_reward(event, run))
    assert len(where) == 1, "reactions that wait for one batch compare it once"
    assert threading.get_ident() not in where
    assert first == again == assigned_rewards(event, run)
    (share,) = [part.inputs["cluster_share"] for one in first for part in one.parts if part.name == "repetition"]
    assert 0 < share <= 1
