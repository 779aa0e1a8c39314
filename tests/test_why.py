"""Runs broken on purpose: the first line says why, whatever it was, and a sound run is not accused."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.config.loading import packaged_run
from agent0.config.setting_entries import fields
from agent0.errors import Agent0Error, sentence
from agent0.events.alarms import DependencyRestored, ReactionFailed
from agent0.events.base import Recorded
from agent0.report.diagnosis.findings import diagnosis, observation_lines, why_lines
from agent0.report.diagnosis.settings import changes_of
from agent0.run.diagnosis import diagnose, registered_causes
from agent0.run.diagnosis.case import Case, HeldOutScore, Iteration, Observation, Setting, Training
from agent0.settings import RunConfig
from tests.broken_runs import WAYS, lost, retried, then, trained_badly
from tests.story import whole_run
from tests.test_report import told
from tests.test_run import played
from tests.world import small


def why(events: Sequence[Recorded], here: Mapping[str, Any] | None = None) -> dict[str, Any]:
    with closing(told([*events])) as db:
        return diagnosis(db, "r1", here)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_line_names_the_cause(way: str) -> None:
    broken, here, name, line = WAYS[way]
    found = why(broken(), here)
    assert why_lines(found)[0].startswith(f"r1: {line}"), why_lines(found)
    assert found["cause"] == name and not found["well"]
    assert found["step"]["event"] or here.keys() & {"log", "disk_free", "log_left", "idle_s"}, found["step"]
    assert all(one["event"] for one in found["evidence"] if one["attempt"] or one["task"])
    assert len(why_lines(found)) <= 3
    assert found["mend"].startswith(("agent0 ", "AGENT0_"))


def test_a_used_up_budget_is_mended_by_a_higher_cap() -> None:
    assert why(WAYS["budget used up"][0](), {})["mend"] == "agent0 router budget set day 2026-01-01 --cap 3"


def test_a_key_that_is_refused_in_the_middle_is_mended_by_its_variable() -> None:
    refused = [
        one.model_copy(update={"event": one.event.model_copy(update={"error": "AuthError"})})
        if isinstance(one.event, ReactionFailed)
        else one
        for one in WAYS["given up"][0]()
    ]
    found = why(refused)
    assert found["advice"].startswith("First: export PROVIDER_KEY=") and "run.student.key_env" in found["advice"]
    assert "--set run.student.key_env=PROVIDER_KEY" in found["mend"]


@pytest.mark.parametrize("quoted", ["it broke", "it broke.", "it broke..", "it broke!", "broke (again.)", "- a\n- b"])
def test_what_others_said_ends_with_one_full_stop(quoted: str) -> None:
    said = str(Agent0Error("It failed.", quoted, "Mend it."))
    assert ".." not in said and said.startswith("It failed. ") and said.endswith(" Mend it.")
    assert sentence(sentence(quoted)) == sentence(quoted)
    assert sentence("it broke...") == "it broke..."


SOUND: dict[str, Callable[[], list[Recorded]]] = {
    "scripted": played,
    "told": lambda: whole_run(incidents=False),
    "told, with incidents that passed": whole_run,
    "after a wait": lambda: then(
        lost("Ollama", "away"), DependencyRestored(dependency="Ollama", waiting="attempt_task")
    ),
}


@pytest.mark.parametrize("run", SOUND)
def test_a_sound_run_is_not_accused(run: str) -> None:
    found = why(SOUND[run](), {"disk_free": 1 << 40, "disk_least": 1 << 29, "log_left": 1 << 33, "idle_s": 9.0})
    assert found["well"], found["conclusion"]
    assert why_lines(found) == [found["conclusion"]]
    assert found["evidence"] == [] and found["mend"] == ""


def test_every_cause_has_a_run_that_is_broken_by_it() -> None:
    tried = {name for _, _, name, _ in WAYS.values()}
    assert set(registered_causes()) - tried == {"sandbox"}  # it needs a real one: tests/test_why_cli.py
    ranks = [rank for rank, _ in registered_causes().values()]
    assert ranks == sorted(ranks) and len(set(ranks)) == len(ranks)


@pytest.mark.parametrize("outcomes", [("failed",), ("begun", "left noted", "begun"), ("begun", "failed noted")])
def test_a_handler_that_failed_once_is_not_accused(outcomes: tuple[str, ...]) -> None:
    assert why(retried(*outcomes))["well"]


def test_a_handler_that_came_through_is_not_accused() -> None:
    tried = retried("failed", "failed")
    verified = next(one for one in played() if one.type == "ResultVerified" and one.cause == tried[-1].cause)
    assert why([*tried, verified.model_copy(update={"seq": tried[-1].seq + 1})])["well"]


def test_the_tries_of_a_handler_that_fails_are_the_evidence() -> None:
    tried = retried("failed", "failed", "failed")
    shown = why(tried)["evidence"]
    assert [one["event"] for one in shown] == [one.seq for one in tried[-3:]]
    assert {one["attempt"] for one in shown} == {"t0-000-a0"}


RUN = RunConfig()
FEW = st.integers(0, 9)
COUNTS = dict.fromkeys(("accepted", "cut_off", "attempts", "answered", "unread", "right", "wrong", "undecided"), FEW)
MORE = dict.fromkeys(("misjudged", "all_right", "all_wrong", "mixed", "repeated", "alike", "given_up"), FEW)
KINDS = st.dictionaries(st.sampled_from(["malformed", "similar", "ok", "unknown", "timeout", "length"]), FEW)
PARTS = st.fixed_dictionaries({**COUNTS, **MORE, "refused": KINDS, "calls": KINDS, "ends": KINDS})
SCORES = st.builds(HeldOutScore, st.just("e"), st.just("student-0"), FEW, st.just("validation"), st.booleans(), FEW,
                   st.none() | st.floats(0, 1))  # fmt: skip
TRAININGS = st.builds(
    Training,
    checkpoint=st.sampled_from(["student-0", "teacher-0"]),
    role=st.sampled_from(["student", "teacher"]),
    iteration=FEW,
    parent=st.just("base"),
    status=st.sampled_from(["requested", "unchanged", "promoted", "rejected"]),
    samples=FEW,
    skipped=st.dictionaries(st.text(max_size=3) | st.just("off_frontier"), FEW),
    metrics=st.dictionaries(st.sampled_from(["loss", "skipped", "steps"]), st.floats()),
)


@given(
    st.lists(PARTS, max_size=4),
    st.lists(TRAININGS, max_size=4),
    st.lists(SCORES, max_size=3),
    st.sampled_from(["running", "paused", "failed", "finished", "cancelled"]),
)
def test_a_diagnosis_is_total(
    parts: list[dict[str, Any]], trainings: list[Training], scores: list[HeldOutScore], status: str
) -> None:
    """Whatever a run came to: nothing is raised, and every cause has a sentence and fits the order."""
    counted = tuple(Iteration(number=n, **one) for n, one in enumerate(parts))
    case = Case("r1", "tiny", status, RUN, iterations=counted, trainings=tuple(trainings), scores=tuple(scores))
    found = diagnose(case)
    assert all(one.conclusion and not one.conclusion.endswith(".") for one in found)
    first = [one.fatal or one.explained for one in found]
    assert first == sorted(first, reverse=True)
    assert bool(found) or status in ("running", "finished")


@pytest.mark.parametrize(("unread", "told"), [(0, False), (1, False), (2, False), (3, True), (8, True)])
def test_calls_that_cannot_be_read_are_told_with_another_form(unread: int, told: bool) -> None:
    seen = Observation("wrote a call that cannot be read", attempt="t0-000-a0")
    counted = Iteration(0, attempts=8, unread=unread, examples={"unread": seen}, calls={"ok": 9}, right=4, wrong=4)
    found = [one for one in diagnose(Case("r1", "tiny", "finished", RUN, iterations=(counted,))) if one.name == "tools"]
    assert bool(found) is told
    if told:
        assert f"the student's calls cannot be read in {unread} of 8 attempts" in found[0].conclusion
        assert found[0].observations == (seen,) and "run.student.tool_form=fence" in str(found[0].mend)


def test_evidence_names_task_and_event_and_says_what_was_written() -> None:
    found = why(trained_badly("teacher"))
    loss, refused = found["evidence"][0], found["evidence"][-1]
    assert loss["checkpoint"] == "teacher-0" and loss["event"] == found["step"]["event"]
    assert refused["task"] == "t1-000" and refused["wrote"].startswith("7777")
    assert observation_lines([refused])[0].startswith(f"t1-000, event {refused['event']}: refused as malformed: ")
    assert found["step"] == {"iteration": 0, "checkpoint": "teacher-0", "event": loss["event"]}


def test_the_setting_that_is_to_blame_is_set_back_from_just_before_the_bad_step() -> None:
    found = why(trained_badly("student"))
    words = shlex.split(found["mend"])
    assert words[:5] == ["agent0", "run", "fork", "r1", "--at"]
    assert int(words[5]) == found["step"]["event"] - 1
    assert words[6:] == ["--set", "run.training.student.lr=0.0025"]
    assert {one["key"] for one in found["settings"]} > {"run.training.student.lr", "run.tasks"}


@pytest.mark.parametrize(
    ("profile", "score", "keys"),
    [
        ("scripted", 0.1, {"run.student.temperature"}),
        ("scripted", 0.9, {"run.student.temperature", "run.training.student.minibatch", "run.tasks"}),
        ("my own", 0.1, {"run.student.temperature"}),
        ("my own", 0.9, set()),
    ],
)
def test_settings_that_a_run_that_went_well_had_too_are_not_blamed(profile: str, score: float, keys: set[str]) -> None:
    """``score``: of the base. Where it is above the last one, that run is no measure."""
    good = [one.model_copy(update={"run": "r0", "id": f"good {one.id}"}) for one in played()]
    bad = played(small(student={"temperature": 0}))
    bad = [one.model_copy(update={"seq": len(good) + one.seq}) for one in bad]
    with closing(told([*good, *bad])) as db:
        db.execute("UPDATE runs SET started = '2025' WHERE run = 'r0'")
        db.execute("UPDATE runs SET profile = ?", (profile,))
        db.execute("UPDATE evaluations SET accuracy = ? WHERE run = 'r0' AND checkpoint = 'base'", (score,))
        db.execute("UPDATE evaluations SET accuracy = 0.5 WHERE run = 'r0' AND checkpoint != 'base'")
        found = diagnosis(db, "r1")["settings"]
    assert {one["key"] for one in found} >= keys
    assert score > 0.5 or {one["key"] for one in found} == keys
    source = "profile scripted" if profile == "scripted" else "run r0, which went well,"
    assert all(one["source"] == source for one in found)


def test_every_setting_that_a_cause_blames_is_one() -> None:
    known = {key for key, _ in fields()}
    changes = tuple(Setting(key, 1, 2, "profile x") for key in known)
    assert Case("r", "x", "finished", RUN, changes=changes).changed("run.student.temperature")
    for name in {look.__module__ for _, look in registered_causes().values()}:
        module = import_module(name)
        for key in _keys(vars(module)):
            assert key in known or any(one.startswith(key) for one in known), f"{name} blames {key}"


def _keys(names: Mapping[str, Any]) -> list[str]:
    held = [value for key, value in names.items() if key.isupper()]
    flat = [part for value in held for part in (value.values() if isinstance(value, dict) else [value])]
    found = [one for part in flat if isinstance(part, tuple) for one in part]
    found = [one for part in found for one in (part if isinstance(part, tuple) else [part])]
    return [one for one in found if isinstance(one, str) and one.startswith("run.")]


def test_settings_of_another_version_are_no_obstacle() -> None:
    first, *rest = played()
    strange = first.event.model_copy(update={"config": {"of": "another age", "iterations": 1, "tasks": 1}})
    assert why([first.model_copy(update={"event": strange}), *rest])["settings"] == []


def test_what_a_start_resolved_is_no_difference() -> None:
    """The file of a model that the profile names, and the form of calls that was tried; another model is one."""
    profile = packaged_run("qwen")
    assert profile is not None
    name = profile.student.model
    for file, keys in (
        (f"/home/cache/models/{name}/weights.gguf", set()),
        ("/home/cache/models/other/weights.gguf", {"run.student.model", "run.student.num_ctx"}),
    ):
        student = profile.student.model_copy(update={"model": file, "tool_form": "fence", "num_ctx": 4096})
        config = profile.model_copy(update={"student": student})
        with closing(told(played())) as db:
            row = {"run": "r1", "profile": "qwen", "started": "2026"}
            assert {setting.key for setting in changes_of(db, row, config)} == keys
