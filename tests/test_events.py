"""Facts are for ever: whatever 0.1.0 wrote can be read, and whatever can be written can be read back.

``python -m tests.test_events`` adds new classes and fields to the golden files; it changes nothing that is there.
"""

import json
import types
import typing
import uuid
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from agent0.events import (
    alarms,
    base,
    benchmarks,
    budgets,
    checkpoints,
    decode,
    effect_id,
    event_types,
    experiments,
    models,
    new_id,
    policies,
    runs,
    submissions,
    tasks,
    values,
)
from agent0.events.base import Event, Recorded, Value, record
from agent0.run.lifecycle import evolve

GOLDEN = Path(__file__).parent / "golden"
LINES = (GOLDEN / "events.jsonl").read_text().splitlines()
SCHEMA = json.loads((GOLDEN / "schema.json").read_text()) if (GOLDEN / "schema.json").exists() else {}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def schema() -> dict[str, Any]:
    """Class -> field -> type, allowed values and whether it is required: of events, of values and of the envelope."""
    nested = [c for c in vars(values).values() if isinstance(c, type) and issubclass(c, Value) and c is not Value]
    found: dict[str, Any] = {c.__name__: _fields(c) for c in [*event_types().values(), *nested, Recorded]}
    return found | {"ToolState": {"values": [state.value for state in values.ToolState]}}


def _fields(cls: type[BaseModel]) -> dict[str, Any]:
    return {
        name: {
            "type": "Literal" if get_origin(f.annotation) is Literal else _name(f.annotation),
            "values": list(get_args(f.annotation)) if get_origin(f.annotation) is Literal else [],
            "required": f.is_required(),
        }
        for name, f in cls.model_fields.items()
    }


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)


def broken(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What of ``old`` a reader of ``new`` could not read any more."""
    problems = [f"{name} is gone" for name in old if name not in new]
    for name, fields in ((n, f) for n, f in old.items() if n in new and n != "ToolState"):
        problems += [f"{name}.{key} is gone" for key in fields if key not in new[name]]
        problems += [
            f"{name}.{key} is new and has no default" for key, f in new[name].items() if _added(key, f, fields)
        ]
        problems += [f"{name}.{key} changed" for key, f in fields.items() if _changed(f, new[name].get(key, f))]
    missing = set(old.get("ToolState", {}).get("values", [])) - set(new["ToolState"]["values"])
    return problems + [f"ToolState {value} is gone" for value in sorted(missing)]


def _added(key: str, field: dict[str, Any], old: dict[str, Any]) -> bool:
    return key not in old and bool(field["required"])


def _changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    stricter = bool(new["required"]) and not old["required"]
    return stricter or old["type"] != new["type"] or not set(old["values"]) <= set(new["values"])


def test_nothing_that_was_ever_written_changed() -> None:
    assert broken(SCHEMA, schema()) == []


def test_the_golden_files_are_complete() -> None:
    told = "run: python -m tests.test_events, and write a line of the new event into tests/golden/events.jsonl"
    assert schema() == SCHEMA, told
    assert [json.loads(line)["type"] for line in LINES] == [*dict.fromkeys(json.loads(line)["type"] for line in LINES)]
    assert {json.loads(line)["type"] for line in LINES} == set(event_types()), told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: s["TaskProposed"].pop("slot"), "TaskProposed.slot is gone"),
        (lambda s: s.pop("RunPaused"), "RunPaused is gone"),
        (lambda s: s["ToolCall"]["name"].update(type="int"), "ToolCall.name changed"),
        (lambda s: s["RunPaused"]["reason"].update(required=True), "RunPaused.reason changed"),
        (lambda s: s["TaskRejected"]["reason"]["values"].remove("similar"), "TaskRejected.reason changed"),
        (lambda s: s["RunPaused"].update(by={"type": "str", "values": [], "required": True}), "has no default"),
        (lambda s: s["ToolState"]["values"].remove("busy"), "ToolState busy is gone"),
    ],
)
def test_a_change_of_what_was_written_is_noticed(change: Any, told: str) -> None:
    changed = json.loads(json.dumps(schema()))
    change(changed)
    (problem,) = broken(schema(), changed)
    assert told in problem


def test_additions_are_welcome() -> None:
    changed = json.loads(json.dumps(schema()))
    changed["RunPaused"]["by"] = {"type": "str", "values": [], "required": False}
    changed["TaskRejected"]["reason"]["values"].append("dull")
    assert broken(schema(), changed) == []


@pytest.mark.parametrize("line", LINES, ids=[json.loads(line)["type"] for line in LINES])
def test_every_line_of_the_past_is_readable(line: str) -> None:
    recorded = decode(line, seq=7)
    assert (recorded.seq, recorded.type) == (7, type(recorded.event).__name__)
    assert decode(recorded.to_json(), 7) == recorded


def test_a_run_of_the_past_can_be_folded() -> None:
    """The configuration inside RunStarted is part of the fact."""
    first = next(decode(line, 1) for line in LINES if json.loads(line)["type"] == "RunStarted")
    state = evolve(None, first)
    assert state is not None and state.phase == "baseline"


@cache
def strategy(annotation: Any) -> st.SearchStrategy[Any]:
    """Everything a field of this type can hold."""
    anything = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False)
    plain = {
        str: st.text(max_size=12),
        int: st.integers(-(2**63), 2**63),
        float: st.floats(),
        bool: st.booleans(),
        type(None): st.none(),
        Any: anything,
        JsonValue: anything,
    }
    if annotation in plain:
        return plain[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([strategy(arg) for arg in args])
    if origin is tuple:
        return st.lists(strategy(args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(max_size=6), strategy(args[1]), max_size=2)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return built(annotation)


TOKEN, SHORT = (st.from_regex(rf"[A-Za-z0-9_-]{{1,{longest}}}", fullmatch=True) for longest in (64, 20))
TOKENS = {"task": TOKEN, "attempt": TOKEN, "evaluation": SHORT, "measurement": SHORT}


@cache
def built(cls: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Instances of ``cls``; tokens are ids."""
    ids = TOKENS if issubclass(cls, Event) else {}
    fields = cls.model_fields.items()
    return st.builds(cls, **{name: ids[name] if name in ids else strategy(f.annotation) for name, f in fields})


@pytest.mark.parametrize("name", sorted(event_types()))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject) -> None:
    """Infinite and undefined numbers too: a diverging training must not make the log unreadable."""
    event = data.draw(built(event_types()[name]))
    body = record(event, run="r1", time=NOON, cause="c", handler="h", code_rev="1").to_json()
    assert json.loads(body, parse_constant=pytest.fail)
    assert decode(body).to_json() == body


@given(st.text(max_size=70))
def test_only_ids_become_subjects(text: str) -> None:
    clean = 0 < len(text) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in text)
    if clean:
        assert record(runs.RunPaused(), run=text, time=NOON).subject == f"a0.ev.{text}.-.-.RunPaused"
        return
    with pytest.raises(ValueError, match="no valid id"):
        record(runs.RunPaused(), run=text, time=NOON)


@pytest.mark.parametrize("token", ["t.1", "*", ">", "a b", "..", "a/b", "ü", "t" * 65, "a\n", "a\0"])
def test_no_part_of_a_subject_can_be_forged(token: str) -> None:
    called = models.ModelCalled(
        task=token, provider="p", model="m", role="student", finish="stop", usage=values.Usage()
    )
    with pytest.raises(ValueError, match="no valid id"):
        record(called, run="r1", time=NOON)
    with pytest.raises(ValueError, match="no valid id"):
        record(called.model_copy(update={"task": "t", "attempt": token}), run="r1", time=NOON)


def test_the_same_effect_has_the_same_name_for_ever() -> None:
    assert effect_id("cause", "propose_task", 0) == "c59f35be-e6f3-5055-851a-cb19369fc237"
    ids = {effect_id(c, h, n) for c in ("a", "b") for h in ("x", "y") for n in (0, 1)}
    assert len(ids) == 8


def test_ids_of_people_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for second in (1.0, 2.5, 1e9, 2e9):
        monkeypatch.setattr(base._time, "time", lambda second=second: second)
        made.append(new_id())
    assert made == sorted(made)
    assert {uuid.UUID(one).version for one in made} == {7}
    assert len({new_id() for _ in range(100)}) == 100


def test_older_versions_are_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.RunPaused, "version", 3)
    monkeypatch.setitem(base._upcasters, ("RunPaused", 1), lambda data: {"text": data["why"]})
    monkeypatch.setitem(base._upcasters, ("RunPaused", 2), lambda data: {"reason": data["text"]})
    old = {"id": "x", "type": "RunPaused", "version": 1, "run": "r", "time": NOON.isoformat(), "data": {"why": "tea"}}
    recorded = decode(json.dumps(old))
    assert (recorded.version, recorded.event) == (3, runs.RunPaused(reason="tea"))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("nonsense", "Expecting value"),
        ("[1]", "JSON object"),
        ('{"type": "Unheard"}', "unknown event type 'Unheard'"),
        ('{"type": "RunPaused"}', "no data"),
        ('{"type": "RunPaused", "version": 9, "data": {}}', "newer than"),
        ('{"type": "RunPaused", "data": {"extra": 1}}', "unknown field extra"),
        ('{"type": ["RunPaused"]}', "names no event type"),
    ],
)
def test_what_cannot_be_read_says_so(body: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        decode(body)


def test_events_neither_inherit_nor_share_a_name() -> None:
    with pytest.raises(TypeError, match="from nothing else"):
        type("Nap", (runs.RunPaused,), {})
    with pytest.raises(TypeError, match="two events are named RunPaused"):
        type("RunPaused", (Event,), {"__module__": __name__})


def test_every_class_is_registered_and_told_in_the_past_tense() -> None:
    rooms = (runs, tasks, checkpoints, models, alarms, policies, benchmarks, budgets, experiments, submissions)
    classes = {n for room in rooms for n, c in vars(room).items() if isinstance(c, type) and issubclass(c, Event)}
    assert classes - {"Event"} == set(event_types())
    assert not [name for name in event_types() if not name.removesuffix("Back").endswith(("ed", "Lost"))]


if __name__ == "__main__":
    if problems := broken(SCHEMA, schema()):
        raise SystemExit("\n".join(problems))
    told = [f'"{name}": {json.dumps(fields)}' for name, fields in sorted(schema().items())]
    (GOLDEN / "schema.json").write_text("{\n" + ",\n".join(told) + "\n}\n")
