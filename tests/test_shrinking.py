"""Where only a cold sandbox works a run is made smaller, before it begins, and a person is told."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import fitted, fitted_begin
from agent0.assembly.runtime.port_openers import LimitedSandbox
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load, profiles
from agent0.config.setting_entries import leaves
from agent0.experiments.smaller_run import TASKS, TEST, VALIDATION, difference, shrunk
from agent0.settings import RunConfig
from tests.terminal import agent0 as call

sizes = st.integers(1, 400)


def _run(tasks: int, validation: int, test: int) -> RunConfig:
    return RunConfig.model_validate({"tasks": tasks, "evaluation": {"validation": validation, "test": test}})


@given(tasks=sizes, validation=sizes, test=st.integers(0, 400))
def test_a_shrunk_run_is_never_larger_and_otherwise_the_same(tasks: int, validation: int, test: int) -> None:
    before = _run(tasks, validation, test)
    after = shrunk(before)
    seen = (after.tasks, after.evaluation.validation, after.evaluation.test)
    assert seen == (min(tasks, TASKS), min(validation, VALIDATION), min(test, TEST))
    assert shrunk(after) == after
    assert _run(tasks, validation, test) == before, "the one asked for is as it was"
    there = {"tasks": tasks, "evaluation": before.evaluation}
    assert after.model_copy(update=there) == before, "nothing else changed"
    assert (difference(before, after) == "") == (before == after)


@pytest.mark.parametrize("profile", profiles())
def test_every_profile_is_still_a_run(profile: str) -> None:
    check_names(shrunk(load(profile, {}, {}).run))


def _world(backend: str, wanted: str = "auto", typed: frozenset[str] = frozenset()) -> SimpleNamespace:
    settings = SimpleNamespace(sandbox=SimpleNamespace(backend=wanted), typed=typed)
    return SimpleNamespace(ports={"sandbox": SimpleNamespace(backend=backend)}, settings=settings)


@pytest.mark.parametrize("backend", ["bwrap-cold", "docker-cold"])
def test_a_run_that_begins_cold_says_what_was_shrunk(backend: str) -> None:
    begin, notices = started(load("tiny", {}, {}), "x"), list[str]()
    observer = SimpleNamespace(say=lambda text, warning: notices.append(text))
    smaller = asyncio.run(fitted_begin(_world(backend), begin, observer))
    run = RunConfig.model_validate(begin.event.config)
    assert (smaller.event.config, smaller.event.config_sha) == shrunk(run).to_record()
    assert (smaller.run, smaller.id, smaller.event.prompts) == (begin.run, begin.id, begin.event.prompts)
    (notice,) = notices
    assert f"Only {backend} works here" in notice
    (_, asked_for) = fitted(_world(backend, backend), run)
    assert asked_for.startswith(f"sandbox.backend is {backend}: ") and "Only" not in asked_for
    assert "tasks an iteration 64 -> 16, validation 150 -> 30, test 300 -> 60" in notice


@pytest.mark.parametrize("backend", ["zygote-bwrap", "zygote-docker", ""])
def test_a_warm_one_changes_nothing(backend: str) -> None:
    run = load("tiny", {}, {}).run
    assert fitted(_world(backend), run) == (run, "")


def test_what_is_recorded_is_the_smaller_run_but_for_what_was_typed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(LimitedSandbox, "backend", "bwrap-cold")
    small = ("--profile", "scripted", "--tasks", str(TASKS + 1), "--attempts", "1", "--iterations", "1")
    sets = ("-s", "run.evaluation.test=0", "-s", "sandbox.workers=1")
    monkeypatch.setenv("AGENT0_RUN__EVALUATION__VALIDATION", str(VALIDATION + 1))
    begun = call("run", "start", *small, *sets, home=tmp_path)
    assert begun.code == 0, begun.err
    assert f"validation {VALIDATION + 1} -> {VALIDATION}" in begun.err + begun.out
    assert "tasks an iteration" not in begun.err + begun.out
    (event,) = call("events", "tail", "--type", "RunStarted", "--json", home=tmp_path).lines
    assert f'"tasks": {TASKS + 1}' in json.dumps(event)


@given(typed=st.frozensets(st.sampled_from(["run.tasks", "run.evaluation.validation", "run.evaluation.test"])))
def test_what_a_person_typed_is_never_reduced(typed: frozenset[str]) -> None:
    settings = load("tiny", dict.fromkeys(typed, "100"), {})
    assert settings.typed == typed and settings.model_copy(update={"profile": "x"}).typed == typed
    smaller, _ = fitted(_world("bwrap-cold", typed=settings.typed), settings.run)
    sizes = dict(leaves({"run": smaller.model_dump(mode="json")}))
    assert all(sizes[key] == 100 for key in typed)
    assert sizes["run.tasks"] == (100 if "run.tasks" in typed else TASKS)
