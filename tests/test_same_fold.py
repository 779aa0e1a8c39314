"""What is kept from one event to the next changes nothing: fold, digest, screening and reading come to what they do
from the beginning."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, decode, record, sha256
from agent0.events.digest import _plain, digest_of
from agent0.infra.log import decoder
from agent0.infra.log.decoder import Decoder
from agent0.registry import Registry
from agent0.run import lifecycle
from agent0.run.lifecycle import RunState
from agent0.tasks.screening import Archive, Proposed, decide_batch
from tests.test_novelty import FREE, proposed
from tests.test_run import brief, brief_run, failing, played, states
from tests.world import NOON

FEW = settings(max_examples=4, deadline=None, derandomize=True)


# --- the end of an iteration


def first_open(state: RunState) -> str:
    """The former definition, by a look at every task."""
    return next((name for name, task in state.tasks.items() if not task.done), "")


@FEW
@given(st.integers(0, 2**32), st.sampled_from(["propose_task", "attempt_task", "verify_result", "assign_reward"]))
def test_phases_change_at_the_same_events_as_with_a_look_at_every_task(seed: int, name: str) -> None:
    rng = random.Random(seed)
    told = played(brief(max_given_up=1.0), failing(name, rng.sample(range(8), 2)), seed)
    found = states(told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "_open_task", first_open)
        former = states(told)
    assert [replace(one, open_task="") for one in found] == [replace(one, open_task="") for one in former]
    assert any(state.open_task for state in found)


def test_whichever_task_was_open_before() -> None:
    """What is remembered is where to look first, never what is found."""
    for state in [state for state in states(brief_run()) if state.phase == "tasks"]:
        for tasks in (state.tasks, dict(reversed(state.tasks.items()))):
            for hint in ("", "t9-999", *tasks):
                found = lifecycle._open_task(replace(state, tasks=tasks, open_task=hint))
                assert bool(found) == bool(first_open(state)) and (not found or not tasks[found].done)


# --- digests


@dataclass(frozen=True)
class Part:
    number: int
    held: tuple[int, ...] = ()


@dataclass(frozen=True)
class Whole:
    parts: Any
    text: str = ""


def from_the_beginning(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":")))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_a_digest_is_that_of_the_whole_value_whatever_was_digested_before(data: Any) -> None:
    pool = [Part(n % 3, (n,)) for n in range(6)]
    names = ["b", "a", "ü", '"', "t0-001"]
    parts: dict[Any, Any] = {}
    for _ in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(["put", "put", "drop", "copy", "odd"])):
            case "put":
                parts = {**parts, data.draw(st.sampled_from(names)): data.draw(st.sampled_from(pool))}
            case "drop":
                parts = {name: one for name, one in parts.items() if name != data.draw(st.sampled_from(names))}
            case "copy":
                parts = {name: replace(one) if isinstance(one, Part) else one for name, one in parts.items()}
            case "odd":
                parts = {**parts, "a": data.draw(st.sampled_from([1, [2], {"b": pool[0]}]))}
        whole = Whole(parts, data.draw(st.sampled_from(["", "x"])))
        assert digest_of(whole) == from_the_beginning(whole)


def test_the_digests_of_a_run_are_those_of_its_whole_states() -> None:
    for state in states(brief_run())[::3]:
        assert state.digest == from_the_beginning(state)


# --- screening


def one_by_one(batch: Sequence[Proposed], vectors: dict[str, list[float]], limit: float) -> list[tuple[Any, Any]]:
    """The former way: with every accepted sibling in turn."""
    held: list[np.ndarray] = []
    found: list[tuple[Any, Any]] = []
    for entry in batch:
        own = np.asarray(vectors[entry.task])
        near = [float(one @ own) for one in held]
        reason = "similar" if near and max(near) > limit else None
        found.append((reason, round(1 - max(near, default=0.0), 6)))
        if reason is None:
            held.append(own)
    return found


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(2, 40), st.sampled_from([0.3, 0.9, 1.0]), st.integers(2, 256))
def test_siblings_are_as_similar_as_one_by_one(seed: int, count: int, limit: float, width: int) -> None:
    """To the bit: a vector's product with itself may be a little more than 1, and then it is too similar."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(max(1, count // 2), width))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    batch = [proposed(slot, f"{FREE[0]}{slot}") for slot in range(count)]
    vectors = {one.task: unit[rng.integers(len(unit))].tolist() for one in batch}
    found = decide_batch(batch, Archive(), vectors, limit)
    kept = [one for one in batch if found[one.slot].reason in (None, "similar")]
    assert [(found[one.slot].reason, found[one.slot].novelty) for one in kept] == one_by_one(kept, vectors, limit)


# --- reading


def stored(name: str) -> bytes:
    return record(AlarmRaised(alarm=name, severity="info", message="m"), run="r", time=NOON).to_json()


def test_a_body_is_read_once_and_another_in_its_place_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = decode

    def count(body: bytes, seq: int) -> Recorded:
        reads.append(seq)
        return read(body, seq)

    monkeypatch.setattr(decoder, "decode", count)
    a, b = stored("a"), stored("b")
    held = Decoder(kept=2 * len(a))
    assert held.decode(1, a) is held.decode(1, a) and reads == [1]
    assert held.decode(1, b) == read(b, 1) and held.decode(1, a) == read(a, 1)
    held.decode(2, b)
    assert held.decode(3, b, keep=False).seq == 3
    reads.clear()
    assert (held.decode(1, a).seq, held.decode(2, b).seq) == (1, 2) and reads == []
    held.decode(4, b)
    assert held.decode(1, a).seq == 1 and reads == [4, 1]  # the oldest went
    with pytest.raises(ValueError, match="unknown event type"):
        held.decode(5, b'{"type": "Nothing"}')


# --- registers


def test_a_register_is_in_order_after_every_change() -> None:
    known = Registry[str, int]("numbers", order=lambda _, number: -number)
    known.add("a", 1)
    known.all()["z"] = 9  # whoever gets it may change what he got
    known.add("b", 2)
    assert known.all() == {"b": 2, "a": 1} and [*known.all()] == ["b", "a"]
    known.entries["a"] = 3
    assert [*known.all()] == ["a", "b"]
    del known.entries["b"]
    assert [*known.all()] == ["a"]
