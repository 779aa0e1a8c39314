"""What a redaction takes out: tasks by name, texts wherever they stand, and nothing else."""

import json
import re
from typing import Any

import pytest

from agent0.errors import ConfigError
from agent0.events.base import sha256
from agent0.provenance.redaction import Redaction, tombstone


def told(**fields: Any) -> dict[str, Any]:
    """An event as it is parsed."""
    return {"id": "i", "type": "TaskProposed", "run": "r", "task": "t1", "attempt": "-", "data": {}} | fields


def taken(raw: dict[str, Any], *wanted: str) -> frozenset[str]:
    return Redaction.of(wanted).takes(raw, json.dumps(raw).encode())


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (told(task="t2"), {"t2"}),
        (told(data={"cause_task": "t2"}), {"t2"}),
        (told(data={"text": "a secret"}), {"secret"}),
        (told(data={"secret": 1}), {"secret"}),
        (told(data={"text": ["deep", {"x": "s\u00e9cret"}]}), {"s\u00e9cret"}),
        (told(handler="secret"), {"secret"}),
        (told(task="t2", data={"text": "secret"}), {"t2", "secret"}),
        (told(), set()),
        (told(type="LogSealed", data={"text": "secret"}), set()),
    ],
)
def test_an_event_is_taken_for_its_task_or_for_a_text_in_it(raw: dict[str, Any], found: set[str]) -> None:
    assert taken(raw, "t2", "secret", "s\u00e9cret") == found


def test_without_a_redaction_nothing_is_taken() -> None:
    assert taken(told(task="-", data={"cause_task": None})) == frozenset()


def test_texts_are_found_in_artifacts_and_in_the_json_of_artifacts() -> None:
    seek = Redaction.of(["s\u00e9cret"])
    for content in (json.dumps({"s\u00e9cret": 1}), "a s\u00e9cret"):
        assert seek.finds(content.encode()) == {"s\u00e9cret"}
    assert seek.finds(b"\xff[") == frozenset()


@pytest.mark.parametrize(("wanted", "said"), [("(", "no regular expression"), ("x*", "finds everything")])
def test_what_cannot_be_sought_is_refused(wanted: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Redaction.of([wanted])


def test_a_redaction_that_matched_nothing_is_named() -> None:
    seek = Redaction.of(["t1", "t2"])
    seek.require_found({"t1", "t2"})
    with pytest.raises(ConfigError, match=re.escape("--redact 't2' finds nothing")):
        seek.require_found({"t1"})


def test_a_tombstone_keeps_the_envelope_or_only_the_time() -> None:
    raw = told(time="2026-01-01T00:00:00Z", cause="c", handler="h", code_rev="v")
    body = json.dumps(raw).encode()
    left = json.loads(tombstone(raw, body, 7, "forgotten"))
    assert {name: left[name] for name in raw if name not in ("type", "data")} == {
        name: raw[name] for name in raw if name not in ("type", "data")
    }
    assert left["data"] == {"sha256": sha256(body), "was": "TaskProposed", "why": "forgotten"}
    other = json.loads(tombstone(raw, body, 7, "elsewhere"))
    assert (other["task"], other["time"], other["data"]["was"]) == ("-", raw["time"], "") and "cause" not in other
    assert other["id"] not in (raw["id"], json.loads(tombstone(raw, body, 8, "elsewhere"))["id"])
