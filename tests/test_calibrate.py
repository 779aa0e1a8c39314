"""``agent0 calibrate``: fitted on one split and scored on another, stored as revisions, taken up where it was, told."""

import functools
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from agent0.cli.models.calibrate import command_line, trained
from agent0.config.loading import load
from agent0.evaluation.calibration_report import CalibrationReport, judged, picture, to_event
from agent0.events.base import record
from agent0.events.benchmarks import ItemScored
from agent0.events.values import Artifact
from agent0.projections import Projector, tables
from agent0.projections.calibrators import confidence, list_calibrators
from agent0.report.markdown.calibration import page
from agent0.rollout.confidence.signals import MEANING
from agent0.settings import Settings
from agent0.stats.calibrators import Bin, sigmoid
from tests.kept_open import attached
from tests.story import bodies, renumbered
from tests.terminal import agent0
from tests.world import NOON


def scored(n: int, seed: int) -> list[ItemScored]:
    """Items of both splits, each asked twice, whose ``answer`` signal is half as far from even as it should be."""
    rng, out = random.Random(seed), []
    for number in range(n):
        for sample in (0, 1):
            odds = rng.gauss(0, 2)
            signals = {"answer": sigmoid(odds / 2), "grounded": float(rng.random() < 0.5)}
            more = {} if sample else {"agreement": rng.random()}
            out.append(
                ItemScored(
                    benchmark="test" if number % 2 else "validation", item=str(number), mode="tools", sample=sample,
                    answer="1", correct=rng.random() < sigmoid(odds), reason="", end="answered", signals=signals | more,
                )
            )  # fmt: skip
    return out


@functools.cache
def found(seed: int = 1, checkpoint: str = "base") -> CalibrationReport:
    return judged(f"c-{seed}", "tiny", checkpoint, seed, scored(600 if seed == 1 else 100, seed))


def test_it_is_fitted_on_one_split_and_scored_on_the_other() -> None:
    one, best = found(), found().measured[0]
    assert (one.attempts, one.fitted_on, one.scored_on, one.unanswered, one.undecided) == (600, 300, 300, 0, 0)
    assert best.ece_after < best.ece_before
    assert (best.candidate.fitted_on, best.scored_on) == (300, 300)
    assert one.verdict.startswith("below 0.10")


def test_sampled_answers_have_calibrators_of_their_own() -> None:
    one = found()
    assert one.sampled and one.carried and one.sampled.name == "tiny sampled"
    assert one.sampled.attempts == 600 and one.sampled.scored_on == one.carried.scored_on == 300
    assert not {"agreement"} & {name for each in one.sampled.measured for name in each.candidate.names}
    assert "agreement" not in one.carried.candidate.names and one.carried.candidate in [
        m.candidate for m in one.measured
    ]
    greedy = [each for each in scored(60, 1) if each.sample == 0]
    assert judged("c", "tiny", "base", 1, greedy).sampled is None


def test_what_the_scoring_half_holds_changes_no_calibrator() -> None:
    turned = [
        one if one.benchmark == "validation" else one.model_copy(update={"correct": not one.correct})
        for one in scored(600, 1)
    ]
    other = judged("c", "tiny", "base", 1, turned)
    assert [one.candidate for one in other.measured] == [one.candidate for one in found().measured]
    assert other.measured[0].ece_after > 0.2 and other.verdict == "missed: 0.10 or more"


def test_answers_that_are_missing_or_undecided_are_left_out_and_counted() -> None:
    items = scored(60, 1)
    items[0] = items[0].model_copy(update={"answer": None, "correct": False})
    items[2] = items[2].model_copy(update={"correct": None})
    one = judged("c", "tiny", "base", 1, items)
    assert (one.unanswered, one.undecided, one.fitted_on, one.scored_on) == (1, 1, 29, 29)
    assert one.verdict == "not shown: only 29 items"


def test_the_page_tells_every_seed_signal_and_number() -> None:
    told = [found(1), found(2), found(3, "r/c1")]
    text = page(told, "agent0 calibrate --provider tiny")
    assert "\nagent0 calibrate --provider tiny\n" in text and "Seeds 1, 2, 3:" in text
    assert "<summary>tiny, base</summary>" in text and "<summary>tiny, r/c1</summary>" in text
    for one in told:
        best = one.measured[0]
        assert f"| {best.ece_before:.3f} ({best.before95[0]:.3f} to {best.before95[1]:.3f}) |" in text
        assert f"| {best.ece_after:.3f} ({best.after95[0]:.3f} to {best.after95[1]:.3f}) |" in text
    for each in found(1).measured:
        (again,) = (one for one in found(2).measured if one.candidate.signal == each.candidate.signal)
        assert (
            f"| {each.ece_before:.3f}, {again.ece_before:.3f} | {each.ece_after:.3f}, {again.ece_after:.3f} |" in text
        )
    assert all(f"- `{name}`" in text for name in MEANING)


def test_the_command_of_a_page_is_without_the_note_that_stands_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["agent0", "calibrate", "--note", "From a run.", "--seeds", "3"])
    assert command_line() == "agent0 calibrate --seeds 3"


def test_the_picture_shows_where_bars_should_end() -> None:
    low, high = picture([Bin(0.0, 0.1, 3, 0.05, 0.0), Bin(0.9, 1.0, 2, 1.0, 1.0)])
    assert "#" not in low and low.index("|") == low.index("[") + 3
    assert high.count("#") == 39 and high.endswith("items    2")


def test_a_confidence_is_that_of_its_own_student_by_its_newest_calibrators() -> None:
    events = [
        record(to_event(one, each, 1), run=one.run, time=NOON + timedelta(seconds=number))
        for number, one in enumerate((found(1), found(2), found(3, "r/c1")))
        for each in one.measured
    ]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        Projector(Path("memory"), lambda _: db, tables(), "stream").apply(bodies(renumbered(events)))
        best = found(2).measured[0].candidate
        assert [row["signal"] for row in list_calibrators(db, "tiny", "base", limit=1)] == [best.signal]
        signals = {"answer": 0.7, "grounded": 1.0, "agreement": 0.5}
        told = confidence(db, signals, "tiny", "base")
        assert told and (told["run"], told["signal"]) == ("c-2", best.signal)
        assert told["probability"] == pytest.approx(best.apply(signals))
        alone = confidence(db, {"answer": 0.7, "grounded": 1.0}, "tiny", "base")
        assert alone and "agreement" not in alone["signal"]
        assert confidence(db, {"mean_token": 0.7}, "tiny", "base") is None
        assert confidence(db, signals, "tiny", "r/c2") is None is confidence(db, signals, "other", "base")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with attached(tmp_path):
        yield tmp_path


def test_the_command_asks_nothing_twice_and_counts_revisions(home: Path) -> None:
    words = ("calibrate", "--provider", "scripted", "--items", "20", "--samples", "1", "--json")
    wanted = home / "pages" / "calibration.md"
    wanted.parent.mkdir()
    first = agent0(*words, "--resume", "cal", "--page", str(wanted), home=home)
    assert first.code == 0, first.err
    (one,) = first.json
    assert (one["attempts"], one["samples"], one["seed"], one["name"]) == (20, 1, 0, "scripted")
    assert {each["signal"] for each in one["calibrators"]} >= {"mean_token", "agreement"}
    assert "cal" in one["run"] and "<summary>scripted, base</summary>" in wanted.read_text()
    assert agent0(*words, "--resume", "cal", home=home).json == first.json
    fitted = len(one["calibrators"]) + len(one.get("sampled", {}).get("calibrators", ()))
    query = (
        "SELECT (SELECT count(*) FROM benchmark_items) AS items, count(*) AS n, max(revision) AS last FROM calibrators"
    )
    counted = json.loads(agent0("projections", "query", query, "--json", home=home).out)
    assert counted == [{"items": 40, "n": fitted, "last": 1}]
    other = agent0(*words, "--resume", "cal", "--set", "run.student.temperature=0.5", home=home)
    assert other.code and "was begun otherwise" in other.err and "actor" in other.err


def test_a_checkpoint_is_found_by_whatever_names_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "start", "--profile", "scripted", "--name", "mine", "--detach", "--json")
    run = agent0(*words, home=tmp_path).json["run"]
    adapter = Artifact(sha256="0" * 64, size=1)

    async def found(held: Settings, *place: str) -> Artifact:
        assert place == (run, "student-0")
        return adapter

    monkeypatch.setattr("agent0.cli.models.calibrate.adapter_of", found)
    held = load("scripted", {"home": str(tmp_path)}, {})
    for name in ("mine", "LAST", run, run[:-2]):
        assert trained(held, f"{name}/student-0") == {"checkpoint": f"{run}/student-0", "adapter": adapter}
    assert trained(held, "base") == {}
