"""``agent0 trajectory fork``: what the turns of an attempt are worth, beside a run that stays as it is."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.api.folder import open as open_folder
from agent0.assembly.runtime import port_openers
from agent0.assembly.trajectories import turn_values
from agent0.assembly.trajectories.turn_values import TurnValues, measure_turns, value_lines
from agent0.errors import Agent0Error
from agent0.events import tasks
from agent0.events.base import Recorded
from agent0.events.benchmarks import BenchmarkFinished, ItemScored
from agent0.infra.models import scripted
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import RunConfig, Settings
from tests.kept_open import attached, one_sandbox
from tests.pasts import events_of, keep
from tests.play import finished, play
from tests.terminal import agent0
from tests.test_episodes import SERVERS, added, counting, say
from tests.world import long, ports, started


@dataclass(frozen=True)
class Past:
    """A finished run in a log of its own, and two of its attempts: with turns as events, and in one go."""

    settings: Settings
    events: list[Recorded]
    long: str
    short: str

    def of(self, kind: Any, attempt: str) -> list[Any]:
        return [r.event for r in self.events if isinstance(r.event, kind) and r.event.attempt == attempt]

    def measured(self, attempt: str, turns: list[int] | None = None, **more: int) -> TurnValues:
        return asyncio.run(measure_turns(self.settings, "r1", attempt, turns, **more))

    def items(self, evaluation: str) -> list[ItemScored]:
        return [r.event for r in events_of(self.settings, evaluation) if isinstance(r.event, ItemScored)]


def kept_run(home: Path, config: RunConfig) -> tuple[Settings, list[Recorded]]:
    sandbox = asyncio.run(port_openers.open_sandbox())
    world = {**ports(), "sandbox": sandbox, "verifier_sandbox": sandbox}
    told = finished(play(started(config), world))
    return keep(home, told, world["artifacts"]), told


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with one_sandbox(), attached(tmp_path_factory.mktemp("past")) as home:
        scored = {"validation": 1, "test": 0}
        settings, told = kept_run(home, long(iterations=1, tasks=2, seed=6, evaluation=scored))
        attempts = [r.event for r in told if isinstance(r.event, tasks.TaskAttempted)]
        in_turns = next(event for event in attempts if event.turns > 4 and event.tool_ok)
        at_once = next(event for event in attempts if event.turns == 2 and event.tool_ok and event.answer)
        yield Past(settings, told, in_turns.attempt, at_once.attempt)


@pytest.mark.parametrize("kind", ["long", "short"])
def test_under_its_own_seed_an_attempt_goes_on_from_each_turn_as_it_went(
    past: Past, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = getattr(past, kind)
    (request,), (ended,) = past.of(tasks.AttemptRequested, attempt), past.of(tasks.TaskAttempted, attempt)
    monkeypatch.setattr(turn_values, "derive_seed", lambda *_: request.seed)
    result = past.measured(attempt, n=1, seed=1)
    assert [value.turn for value in result.values] == [*range(ended.turns + 1)] and result.differing == 0
    (rewarded,) = [event for event in past.of(tasks.RewardAssigned, attempt) if event.role == "student"]
    assert {value.reward for value in result.values} == {rewarded.total}
    assert {value.change for value in result.values[1:]} == {0.0}
    items = past.items(result.evaluation)
    assert len(items) == ended.turns
    for item in items:
        assert (item.answer, item.turns, item.tool_calls, item.end) == (
            ended.answer, ended.turns, ended.tool_calls, ended.end,
        )  # fmt: skip
        assert item.conversation and item.conversation.transcript == ended.transcript


class Stopped(BaseException):
    """What ends a process that is stopped."""


def test_a_measurement_that_was_cut_goes_on_and_the_run_stays_as_it_is(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = events_of(past.settings, "r1")
    begun = turn_values.step
    steps = 0

    async def step(*given: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > 20:
            raise Stopped
        return await begun(*given)

    monkeypatch.setattr(turn_values, "step", step)
    with pytest.raises(BaseExceptionGroup):
        past.measured(past.long, [0, 2], n=3)
    monkeypatch.setattr(turn_values, "step", begun)
    result = past.measured(past.long, [0, 2], n=3)
    assert [(value.turn, value.n) for value in result.values] == [(0, 3), (2, 3)]
    items = past.items(result.evaluation)
    assert sorted((item.item, item.sample) for item in items) == [(f"turn-{t}", n) for t in (0, 2) for n in range(3)]
    assert len({item.conversation.model_dump_json() for item in items if item.conversation}) > 1, "seeds are fresh"
    monkeypatch.setattr(turn_values, "step", None)  # nothing is asked again
    again = past.measured(past.long, [0, 2], n=3)
    assert again == result
    finishes = [r for r in events_of(past.settings, result.evaluation) if isinstance(r.event, BenchmarkFinished)]
    assert len(finishes) == 1
    assert events_of(past.settings, "r1") == before


def test_values_and_changes_are_means_and_their_differences(past: Past) -> None:
    result = past.measured(past.long, [1, 2], n=4)
    items = past.items(result.evaluation)
    for value in result.values:
        rewards = [item.metrics["reward"] for item in items if item.item == f"turn-{value.turn}"]
        assert value.reward == pytest.approx(sum(rewards) / 4)
        assert value.lower95 is not None and value.lower95 <= value.reward <= (value.upper95 or 0)
        assert value.right_lower95 < 1 and value.right_upper95 > 0
    first, second = result.values
    assert first.change is None and second.change == pytest.approx(second.reward - first.reward)
    certain = replace(result, values=(replace(first, change=0.5, change_lower95=0.1, change_upper95=0.9),))
    assert "Turn 1 changes the expected reward by +0.500 (+0.100 to +0.900)." in value_lines(certain)


def test_the_command_and_python_tell_the_same(past: Past) -> None:
    home = past.settings.home
    done = agent0("trajectory", "fork", past.short, "r1", "--turn", "0,1", "-n", "2", "--json", home=home)
    assert done.code == 0, done.err
    folder = open_folder(home, profile="scripted")
    values = folder.run("r1").turn_values(past.short, [0, 1], n=2)
    assert [value["reward"] for value in done.json["values"]] == [value.reward for value in values.values]
    assert done.json["evaluation"] == values.evaluation
    shown = agent0("trajectory", "list", values.evaluation, "--evaluation", f"r1/{past.short}", "--json", home=home)
    assert len(shown.json) == 4


@pytest.mark.parametrize(
    "attempt, turns, n, why",
    [
        ("short", [9], 2, "has no turn 9. It took 2."),
        ("short", [-1], 2, "has no turn -1"),
        ("short", [], 2, "No turn is named."),
        ("short", [0], 0, "0 continuations cannot be made."),
        ("t9-999-a0", [0], 2, "has no attempt 't9-999-a0'"),
        ("base-test-0", [0], 2, "Items of evaluations have no turns."),
    ],
)
def test_what_cannot_be_continued_is_refused_in_one_line(
    past: Past, attempt: str, turns: list[int], n: int, why: str
) -> None:
    with pytest.raises(Agent0Error) as error:
        past.measured(getattr(past, attempt, attempt), turns, n=n)
    assert why in str(error.value) and "\n" not in str(error.value)


def test_words_for_turns_are_refused(past: Past) -> None:
    for words in ("²", "99999"):
        done = agent0("trajectory", "fork", past.short, "r1", "--turn", words, home=past.settings.home)
        assert done.code and "Traceback" not in done.err and done.err.count("error:") == 1


def test_what_a_turn_left_is_not_guessed_where_it_is_gone(past: Past) -> None:
    store, turn = FileArtifacts(past.settings.home), past.of(tasks.TurnCompleted, past.long)[2]
    data = store.get(turn.progress)
    store.path(turn.progress).unlink()
    try:
        with pytest.raises(Agent0Error, match=turn.progress.sha256[:12]):
            past.measured(past.long, [turn.turn], n=1, seed=7)
    finally:
        store.put(data, turn.progress.media)


@pytest.mark.slow  # a model with weights is trained and asked
def test_a_model_with_weights_goes_on_from_what_it_reads(tmp_path: Path) -> None:
    student = {"provider": "tiny", "model": "long", "max_tokens": 64, "temperature": 1.0}
    tools = ("python", "write_file", "read_file", "edit_file", "rollback", "submit_answer")
    scored = {"validation": 1, "test": 0}
    config = long(iterations=1, tasks=2, attempts=1, seed=6, student={**student, "tools": tools}, evaluation=scored)
    with one_sandbox(), attached(tmp_path) as home:
        settings, told = kept_run(home, config)
        attempt = next(r.event.attempt for r in told if isinstance(r.event, tasks.TaskAttempted))
        result = asyncio.run(measure_turns(settings, "r1", attempt, [0], n=2))
        items = [r.event for r in events_of(settings, result.evaluation) if isinstance(r.event, ItemScored)]
    assert len(items) == 2 and all(item.usage.completion_tokens and item.turns for item in items)


async def test_an_episode_is_begun_anew_with_the_same_steps(
    tmp_path: Path, shared_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "_say", say)
    async with counting() as url:
        world = {**ports(), "environments": SERVERS}
        told = await play(started(await added(tmp_path / "added", url)), world)
        settings = await asyncio.to_thread(keep, tmp_path / "kept", told, world["artifacts"])
        ended = next(r.event for r in told if isinstance(r.event, tasks.TaskAttempted))
        result = await measure_turns(settings, "r1", ended.attempt, None, n=1)
    assert len(result.values) == ended.turns + 1 > 3 and result.differing == 0
    assert {value.reward for value in result.values} == {result.reward}
