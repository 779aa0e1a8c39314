"""Screening a batch: in slot order, against what was accepted before it and against lower siblings."""

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.values import Task
from agent0.tasks.screening import Archive, Decision, Proposed, decide_batch
from agent0.tasks.splits import split_of

FREE = [f"form {n}" for n in range(200) if split_of(f"form {n}") == "train"]
HELD = next(f"form {n}" for n in range(200) if split_of(f"form {n}") != "train")


def proposed(slot: int, canonical: str | None, domain: str = "math", asked: str = "math") -> Proposed:
    task = (
        Task(question="q", domain=domain, family="f", level=1, canonical=canonical) if canonical is not None else None
    )
    return Proposed(f"t{slot}", slot, asked, task, "" if task else "no question")


def at(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def decide(
    batch: list[Proposed], angles: list[float], archive: Archive | None = None, limit: float = 0.9
) -> list[Decision]:
    vectors = {p.task: at(a) for p, a in zip(batch, angles, strict=True)}
    return decide_batch(batch, archive or Archive(), vectors, limit)


def test_reasons() -> None:
    batch = [proposed(0, None), proposed(1, HELD), proposed(2, FREE[0], domain="code"), proposed(3, FREE[1])]
    decisions = decide(batch, [0, 0, 0, 0])
    assert [d.reason for d in decisions] == ["malformed", "reserved", "off_target", None]
    assert decisions[0].detail == "no question"
    assert [d.novelty for d in decisions] == [None, None, None, 1.0]


def test_the_first_of_two_alike_siblings_stays() -> None:
    batch = [proposed(2, FREE[0]), proposed(0, FREE[1]), proposed(1, FREE[2])]
    decisions = decide(batch, [0.0, 0.1, math.pi / 2])
    assert [(d.slot, d.reason) for d in decisions] == [(0, None), (1, None), (2, "similar")]
    assert [d.against for d in decisions] == [0, 1, 2]
    assert decisions[2].novelty == pytest.approx(1 - math.cos(0.1), abs=1e-6)


def test_a_refused_sibling_stands_in_nobodys_way() -> None:
    batch = [proposed(0, HELD), proposed(1, FREE[0]), proposed(2, FREE[0])]
    decisions = decide(batch, [0.0, 0.0, 2.0])
    assert [d.reason for d in decisions] == ["reserved", None, "duplicate"]
    assert decisions[1].against == 0


def test_the_archive_counts() -> None:
    archive = Archive(canonicals={FREE[0]}, size=1, nearest={"t0": 1.0, "t1": 0.95, "t2": 0.5}, position=9)
    decisions = decide([proposed(0, FREE[0]), proposed(1, FREE[1]), proposed(2, FREE[2])], [0, 0, 2], archive)
    assert [d.reason for d in decisions] == ["duplicate", "similar", None]
    assert decisions[1].novelty == pytest.approx(0.05)
    assert (decisions[2].novelty, decisions[2].against) == (0.5, 1)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([None, HELD, *FREE[:5]]), st.floats(0, 3)), max_size=8),
    st.floats(0.1, 1.0),
    st.randoms(use_true_random=False),
)
def test_the_outcome_does_not_depend_on_the_order_of_arrival(
    drawn: list[tuple[str | None, float]], limit: float, rng: random.Random
) -> None:
    batch = [proposed(slot, canonical) for slot, (canonical, _) in enumerate(drawn)]
    angles = [angle for _, angle in drawn]
    decisions = decide(batch, angles, limit=limit)
    order = rng.sample(range(len(batch)), len(batch))
    assert decisions == decide([batch[n] for n in order], [angles[n] for n in order], limit=limit)
    accepted = [d for d in decisions if d.reason is None]
    assert len({batch[d.slot].proposal.canonical for d in accepted}) == len(accepted)
    for place, one in enumerate(accepted):
        near = [math.cos(angles[one.slot] - angles[other.slot]) for other in accepted[:place]]
        assert all(similarity <= limit + 1e-9 for similarity in near)
        assert one.novelty == pytest.approx(1 - max(near, default=0.0), abs=1e-5)


@pytest.mark.parametrize(("asked", "got"), [("short", "long"), ("long", "short"), ("short", "short"), ("long", "long")])
def test_a_short_task_for_a_long_one_and_the_reverse_are_off_target(asked: Any, got: Any) -> None:
    task = Task(question="q", domain="math", family="linear", level=1, canonical=FREE[0], kind=got)
    (decision,) = decide_batch([Proposed("t", 0, "math", task, kind=asked)], Archive(), {"t": [1.0, 0.0]}, 0.95)
    assert decision.reason == (None if asked == got else "off_target")
    assert asked == got or decision.detail == f"asked for a {asked} task, got a {got} one"
