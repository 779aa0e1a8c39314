"""The report on a benchmark run: what was scored is what is shown, and no reply of a model can do anything."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent0.errors import NotFoundError
from agent0.evaluation.benchmarks import Item
from agent0.events.base import Event, Recorded, record, sha256
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.events.values import Artifact, Conversation, Turn, Usage
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.report.benchmark_findings import bench_findings
from agent0.report.html.benchmark_page import bench_page
from agent0.stats.intervals import wilson
from tests.story import benchmark_run
from tests.terminal import agent0
from tests.test_report import NASTY, NOWHERE, Reader, told

N = 40


def talk(reply: str) -> Conversation:
    return Conversation(transcript=(Turn(role="user", content="asked"), Turn(role="assistant", content=reply)))


def scored(mode: str, number: int, correct: bool | None, **more: object) -> ItemScored:
    held = {
        "benchmark": "gsm8k", "item": f"gsm8k/{number}", "mode": mode, "sample": 0, "answer": NASTY, "correct": correct,
        "reason": NASTY, "end": "answered", "conversation": talk(NASTY), "facts": {"subject": NASTY},
        "wall_s": number / 10,
        "confidence": 0.9 if correct else 0.3, "usage": Usage(prompt_tokens=1000, completion_tokens=100),
    }  # fmt: skip
    return ItemScored.model_validate(held | more)


def started(**more: object) -> BenchmarkStarted:
    held = {
        "name": NASTY, "benchmarks": ("gsm8k", "gone"), "modes": ("tools", "plain"), "samples": 1, "limit": 0,
        "seed": 0, "actor": {"provider": "tiny", "model": NASTY, "price": [2.0, 10.0]},
        "files": {NASTY: sha256("rows")}, "versions": {"gsm8k": NASTY},
    }  # fmt: skip
    return BenchmarkStarted.model_validate(held | more)


def recorded(events: list[Event]) -> list[Recorded]:
    time = benchmark_run()[0].time
    return [record(event, run="b1", time=time).model_copy(update={"seq": n}) for n, event in enumerate(events, 1)]


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """With tools 30 of 40 are right, without 10 of them; one more is undecided; nothing is finished."""
    events: list[Event] = [started()]
    events += [scored("tools", n, n < 30, tool_calls=2, tool_ok=int(n < 35)) for n in range(N)]
    events += [scored("plain", n, n < 10 if n else None, error="" if n < 10 else "wrong_value") for n in range(N)]
    events += [
        scored(
            "tools",
            0,
            False,
            benchmark="gone",
            conversation=None,
            conversation_artifact=Artifact(sha256="0" * 64, size=9),
        )
    ]
    with closing(told(recorded(events))) as held:
        yield held


def test_scores_are_those_of_the_items(db: sqlite3.Connection) -> None:
    found = bench_findings(db, NOWHERE, "LAST", {})
    assert (found["run"], found["status"]) == ("b1", "started")
    scores = {(score["benchmark"], score["mode"]): score for score in found["scores"]}
    tools, plain = scores["gsm8k", "tools"], scores["gsm8k", "plain"]
    assert (tools["accuracy"], plain["accuracy"], plain["undecided"]) == (0.75, 9 / N, 1)
    assert (tools["lower95"], tools["upper95"]) == wilson(30, N)
    assert tools["cost"] == pytest.approx(N * (1000 * 2 + 100 * 10) / 1e6)
    assert scores["gone", "tools"]["domain"] == ""
    (both,) = found["tools_against_plain"]
    assert (both["items"], both["gained"], both["lost"], both["word"]) == (N, 21, 0, "better")
    assert both["detectable"] > 0


def test_failures_are_told_by_mode(db: sqlite3.Connection) -> None:
    tools, plain = bench_findings(db, NOWHERE, "b1", {})["failures"]
    assert (tools["mode"], tools["items"], tools["wrong"]) == ("tools", N + 1, 11)
    found = {(mode["by"], mode["mode"]): mode["wrong"] for mode in tools["modes"]}
    assert found["tool", "no call went well"] == 5
    assert found["benchmark", "gsm8k"] == 10
    assert {mode["mode"] for mode in plain["modes"] if mode["by"] == "error"} == {"wrong_value", "undecided"}


def test_confidence_is_measured_where_it_was_given(db: sqlite3.Connection) -> None:
    found = {one["mode"]: one for one in bench_findings(db, NOWHERE, "b1", {})["calibration"]}
    assert found["tools"]["n"] == N + 1
    assert found["plain"]["n"] == N - 1
    assert found["tools"]["ece"] == pytest.approx((30 * 0.1 + 11 * 0.3) / 41)
    assert found["tools"]["lower95"] <= found["tools"]["ece"] <= found["tools"]["upper95"]


def test_no_reply_becomes_markup(db: sqlite3.Connection) -> None:
    item = Item(id="gsm8k/30", question=NASTY, gold=NASTY, reference=NASTY)
    text = bench_page(bench_findings(db, NOWHERE, "b1", {"gsm8k": {item.id: item}}))
    seen = Reader(text)
    assert {"script", "img", "link", "iframe", "object", "embed", "form", "base"} & set(seen.tags) == set()
    names = {name for name, _ in seen.attributes}
    assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name in names)
    assert all(value.startswith("#") for name, value in seen.attributes if name in ("href", "xlink:href"))
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text
    shown = "".join(seen.words)
    assert shown.count('<script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}') > 10
    assert not set("\x00\x1b\u202e") & set(text)
    assert sha256("rows") in shown
    assert "75.0%" in shown
    assert "Artifact 000000000000 is not in the store" in shown
    assert text == bench_page(bench_findings(db, NOWHERE, "b1", {"gsm8k": {item.id: item}}))


def test_a_run_that_only_began_has_a_page() -> None:
    with closing(told(recorded([started(actor={"provider": "scripted", "model": ""})]))) as db:
        words = "".join(Reader(bench_page(bench_findings(db, NOWHERE, "b1", {}))).words)
        with pytest.raises(NotFoundError, match="no benchmark run 'b2'"):
            bench_findings(db, NOWHERE, "b2", {})
    assert "Nothing is scored yet." in words
    assert "check the plumbing, and nothing else" in words


def test_samples_are_of_different_mistakes(tmp_path: Path) -> None:
    store = FileArtifacts(tmp_path)
    long = store.put(talk("a long reply").model_dump_json().encode(), "application/json")
    events: list[Event] = [started()]
    events += [scored("tools", n, False, reason="same") for n in range(10)]
    events += [scored("tools", 77, False, reason="other", conversation=None, conversation_artifact=long)]
    with closing(told(recorded(events))) as db:
        wrong = bench_findings(db, store, "b1", {})["wrong"]
    assert [one["reason"] for one in wrong] == ["same", "other", "same"]
    assert wrong[1]["reply"] == "a long reply"


def test_report_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    told(benchmark_run(), tmp_path / "tables" / "view.db").close()
    said = agent0("bench", "report", "--data", str(tmp_path), home=tmp_path)
    assert said.code == 0, said.err
    full = agent0("bench", "report", "--full", "--data", str(tmp_path), home=tmp_path)
    for words in ("Benchmark run bench-1", "Accuracy", "With tools against without", "Where it fails"):
        assert words in full.out and (words not in said.out)
    shown = agent0("bench", "report", "--json", "--data", str(tmp_path), home=tmp_path).json
    assert said.out.splitlines()[:-1] == full.out.splitlines()[: len(shown["answer"])] == shown["answer"]
    assert shown["answer"][0].startswith("Right: ") and shown["answer"][-1].startswith("Not to be claimed: ")
    path = Path(said.out.rstrip().splitlines()[-1])
    text = agent0("bench", "report", "bench-1", "--out", "-", "--data", str(tmp_path), home=tmp_path).out
    assert path.read_text() == text[:-1]
    assert {score["mode"] for score in shown["scores"]} == {"tools", "plain"}
    missing = agent0("bench", "report", "nowhere", home=tmp_path)
    assert (missing.code, "agent0 bench run" in missing.err) == (1, True)
