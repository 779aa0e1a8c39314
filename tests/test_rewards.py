"""Rewards: bounded, pure, total over whatever is known, with receipts that add up, in every set."""

import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0 import rewards as room
from agent0.events.values import Role
from agent0.registry import Registry
from agent0.rewards import Reward, RewardSet, features_read, receipt, reward_set, reward_sets, rewards
from agent0.rewards.features import features as registered_facts
from agent0.tasks.curriculum.sampler import frontier_value

SETS = list(reward_sets())


def test_a_set_is_registered_with_what_it_is_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_sets", Registry("reward set"))

    def combine(role: str, worth: object) -> float:
        """Nothing."""
        return 0.0

    for name, options in (("plain", {}), ("voted", {"like": "plain", "label": "majority"})):
        assert reward_set(name, **options)(combine) is combine  # type: ignore[arg-type]
    assert reward_sets() == {
        "plain": RewardSet("plain", combine, "", "verifier"),
        "voted": RewardSet("voted", combine, "plain", "majority", ""),
    }


ALL = [entry for name in SETS for role in get_args(Role) for entry in rewards(role, name).values() if entry.set == name]
SHARE = st.none() | st.floats(0, 1)
FACTS: dict[str, st.SearchStrategy[Any]] = {
    "correct": st.none() | st.booleans(),
    "credit": SHARE,
    "changed_lines": st.none() | st.integers(0, 10**6),
    "grounded": st.booleans(),
    "accepted": st.none() | st.booleans(),
    "reason": st.sampled_from(["", "malformed", "reserved", "duplicate", "similar", "off_target"]),
    "novelty": st.none() | st.floats(-1e-9, 2.0),
    "solve_rate": SHARE,
    "digit_share": SHARE,
    "student_gain": SHARE,
    "self_consistency": SHARE,
    "token_confidence": SHARE,
    "mean_tool_ok": st.none() | st.floats(0, 100),
    "tool_ok": st.integers(0, 100),
    "tool_calls": st.integers(0, 100),
    "parse_errors": st.integers(0, 100),
    "answered": st.booleans(),
    "tokens": st.integers(0, 10**6),
    "well_formed": st.none() | st.booleans(),
    "cluster_share": SHARE,
    "calls_run": st.none() | st.lists(st.integers(0, 100), max_size=8),
    "useful_calls": st.none() | st.floats(0, 100),
    "teacher_text": st.none() | st.text() | st.integers(0, 9).map(lambda n: "```output" * n),
    "teacher_answer": st.none() | st.text(max_size=9),
    "majority": st.none() | st.text(max_size=9),
    "agrees": st.none() | st.booleans(),
    "answer_margin": SHARE,
    "answer_confidence": SHARE,
    "token_entropy": st.none() | st.floats(0, 100),
    "fused_confidence": SHARE,
    "critique": SHARE,
    "self_critique": SHARE,
    "answer_entropy": st.none() | st.floats(0, 100),
    "attempts": st.none() | st.integers(0, 100),
    "confidence": SHARE,
    "skill": st.none() | st.sampled_from(["", "abc"]),
    "skill_seen": st.none() | st.integers(0, 10**6),
    "rests_on_call": st.none() | st.booleans(),
    "wall_s": st.none() | st.floats(0, 1e6),
    "most_tokens": st.none() | st.integers(1, 10**6),
    "cut_off": st.none() | st.booleans(),
}
"""Everything a handler tells about a deed. A part that reads another fact adds it here."""


def facts() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(FACTS)


@pytest.mark.parametrize("entry", ALL, ids=lambda e: f"{e.set}-{e.role}-{e.name}")
@settings(max_examples=50)
@given(data=st.data())
def test_every_part_is_bounded_and_pure(entry: Reward, data: st.DataObject) -> None:
    assert set(entry.reads) <= set(FACTS)
    inputs = data.draw(st.fixed_dictionaries({key: FACTS[key] for key in entry.reads}))
    before = dict(inputs)
    value = entry.score(inputs)
    assert value is None or (isinstance(value, float) and -1 <= value <= 1)
    assert entry.score(inputs) == value
    assert inputs == before


@pytest.mark.parametrize("entry", ALL, ids=lambda e: f"{e.set}-{e.role}-{e.name}")
def test_what_is_not_known_is_not_scored(entry: Reward) -> None:
    assert entry.score(dict.fromkeys(entry.reads)) is None


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("role", get_args(Role))
@settings(max_examples=40)
@given(told=facts(), weight=st.floats(-2, 2))
def test_a_receipt_adds_up(role: Role, name: str, told: dict[str, Any], weight: float) -> None:
    weights = {"novelty": weight, "correctness": weight, "repetition": weight, "tools": weight}
    parts, total = receipt(role, told, weights, name)
    worth = {p.name: p.value * p.weight for p in parts if p.value is not None}
    wanted = sum(worth.values())
    if (name.partition("/")[0], role) == ("paper", "teacher"):
        format_ = worth.pop("format", 0.0)
        wanted = format_ * max(0.0, sum(worth.values()))
    assert total == pytest.approx(wanted, abs=1e-9)
    assert [p.name for p in parts] == sorted(p.name for p in parts)
    for part in parts:
        entry = rewards(role, name)[part.name]
        assert part.inputs == {key: told[key] for key in entry.reads}
        assert entry.score(part.inputs) == part.value
        assert part.weight == weights.get(part.name, entry.weight)


BASE = {
    "teacher": "accepted reason novelty solve_rate self_consistency answer_entropy token_confidence mean_tool_ok "
    "attempts",
    "student": "correct credit grounded tool_ok tool_calls parse_errors answered tokens token_confidence",
}
"""What every receipt tells."""


@pytest.mark.parametrize("entry", ALL, ids=lambda e: f"{e.set}-{e.role}-{e.name}")
def test_what_a_part_reads_somebody_tells(entry: Reward) -> None:
    assert set(entry.reads) <= {*BASE[entry.role].split(), *registered_facts(entry.role)}
    assert set(entry.reads) <= features_read(entry.role, {entry.name: 1.0}, entry.set)
    assert (entry.score.__doc__ or "").strip()


def test_a_part_without_weight_is_left_out() -> None:
    parts, total = receipt("student", {"correct": True, "rests_on_call": True}, {"tool_use": 0})
    assert ([p.name for p in parts], total) == (["correctness", "subgoals"], 1.0)


def _score(role: Role, name: str, **told: Any) -> float | None:
    entry = rewards(role)[name]
    return entry.score({**dict.fromkeys(entry.reads), **told})


@pytest.mark.parametrize(("rate", "value"), [(0, 0), (0.25, 0.5), (0.5, 1), (0.75, 0.5), (1, 0)])
def test_uncertainty_pays_the_frontier(rate: float, value: float) -> None:
    assert frontier_value(rate) == value
    assert _score("teacher", "uncertainty", solve_rate=rate) == value
    assert _score("teacher", "agreement", self_consistency=rate) == value


@given(st.floats(0, 1))
def test_the_frontier_is_symmetric(rate: float) -> None:
    assert math.isclose(frontier_value(rate), frontier_value(1 - rate), abs_tol=1e-9)


def test_tool_use_pays_only_where_the_answer_rests_on_it() -> None:
    assert _score("student", "tool_use", correct=True, rests_on_call=True) == 1
    assert _score("student", "tool_use", correct=True, rests_on_call=False) == 0
    assert _score("student", "tool_use", correct=False, rests_on_call=True) == 0
    assert _score("student", "tool_use", correct=None, rests_on_call=True) is None


@pytest.mark.parametrize(("calls", "value"), [(0, 0), (1, 0.25), (4, 1), (40, 1)])
def test_tool_demand_is_capped_at_four_calls(calls: float, value: float) -> None:
    assert _score("teacher", "tool_demand", useful_calls=calls) == value


def test_a_rejected_task_costs_and_an_accepted_one_does_not() -> None:
    assert _score("teacher", "validity", accepted=True, reason="") == 0
    assert _score("teacher", "validity", accepted=False, reason="malformed") == -1
    assert _score("teacher", "validity", accepted=False, reason="reserved") is None


@pytest.mark.parametrize(("credit", "value"), [(None, None), (0.0, 0.0), (0.4, 0.4), (1.0, 1.0)])
def test_steps_are_paid_by_the_share_that_is_right(credit: float | None, value: float | None) -> None:
    assert _score("student", "subgoals", credit=credit) == value


@given(told=facts())
def test_steps_change_nothing_for_a_task_without_any(told: dict[str, Any]) -> None:
    """None is unscored: the total is that of the other parts, to the last bit."""
    short = told | {"credit": None}
    _, total = receipt("student", short, {})
    assert total == receipt("student", short, {"subgoals": 0})[1]
    _, paid = receipt("student", told | {"credit": 0.5}, {})
    assert paid == pytest.approx(total + 0.1)
