"""Failures become facts: an error is tried again and then a dead letter, an absent dependency is waited for."""

import asyncio
import contextlib
import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import nats
import nats.errors
import pytest
from nats.js.errors import NotFoundError

from agent0.errors import DependencyError, LogError, OperationError, TransientError
from agent0.events.alarms import AlarmRaised, AlarmResolved, ReactionFailed, ReactionRetried
from agent0.events.base import Event, Recorded
from agent0.events.runs import RunCancelled, RunFailed, RunPaused, RunResumed, RunStarted
from agent0.infra.bus.dispatch import Reactions
from agent0.infra.bus.run_views import RunView
from agent0.infra.log.streams import Topology, init
from agent0.settings import Settings
from tests.bus.toys import QUICK, SOON, State, Toy, World, event, raised, resolve, soon_again
from tests.patience import PATIENCE_S


async def test_an_error_is_tried_again_and_in_the_end_a_dead_letter_that_can_be_retried(world: World) -> None:
    works = False

    async def flaky(cause: Recorded, run: State) -> list[Event]:
        if not works and cause.event.alarm == "bad":  # type: ignore[attr-defined]
            raise TransientError("The model stuttered.")
        return await resolve(cause, run)

    async def retry() -> None:
        wish = ReactionRetried(failure=f.failure, cause_id=f.cause_id, cause_seq=2, failed_handler="toy")
        await world.put(event(wish))

    toy = Toy(flaky)
    bad = raised("bad")
    await world.put(bad, raised("good"))
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    f = failed.event
    assert isinstance(f, ReactionFailed)
    assert (f.cause_id, f.cause_seq, f.cause_type, f.failed_handler) == (bad.id, 2, "AlarmRaised", "toy")
    assert (f.error, f.deliveries, failed.cause, failed.handler) == ("TransientError", 3, bad.id, "toy")
    assert "The model stuttered." in f.message and "TransientError" in f.traceback
    assert Counter(toy.calls) == {"bad": 3, "good": 1}
    await retry()
    again = (await world.until(2, "ReactionFailed"))[1]
    assert again.event.failure == f.failure and again.id != failed.id  # type: ignore[attr-defined]
    works = True
    await retry()
    await world.until(2)
    await world.quiet()
    assert Counter(toy.calls) == {"bad": 7, "good": 1}


@pytest.mark.parametrize("error", [OperationError("No such prompt."), LogError("Damaged.")])
async def test_an_error_that_no_retry_can_mend_is_a_dead_letter_at_once(world: World, error: Exception) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise error

    toy = Toy(fail)
    await world.put(raised("a"))
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert failed.event.deliveries == 1 and toy.calls == ["a"]  # type: ignore[attr-defined]


async def test_no_event_holds_a_password_that_an_error_told(world: World) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise ValueError("cannot reach http://u:s3'cret@host/x")

    await world.put(raised("a"))
    await world.bus(Toy(fail))
    recorded = await world.until(1, "ReactionFailed") + await world.stored("ReactionTried")
    assert any(one.type == "ReactionTried" for one in recorded)
    assert "cannot reach http://host/x" in str(recorded) and "s3" not in str(recorded)


def nested(depth: int) -> list[Any]:
    held: list[Any] = []
    for _ in range(depth):
        held = [held]
    return held


HALF = "\ud835"
UNWRITABLE: tuple[tuple[str, Event], ...] = (
    ("half a character", AlarmResolved(alarm=HALF)),
    ("half a character in the middle", AlarmRaised(alarm="x", severity="info", message=f"a{HALF}b")),
    ("deep inside", RunStarted(name="n", profile="p", seed=0, config={"a": [{"b": HALF}]}, config_sha="")),
    ("endless", RunStarted(name="n", profile="p", seed=0, config={"a": nested(1000)}, config_sha="")),
    ("no JSON", RunStarted(name="n", profile="p", seed=0, config={"a": object()}, config_sha="")),
    ("too large", AlarmResolved(alarm="x" * (2 << 20))),
)


async def test_an_event_that_cannot_be_written_fails_its_one_reaction(world: World) -> None:
    """Also among others of the same commit: those are stored, and the process goes on."""
    effects = dict(UNWRITABLE)

    async def write(cause: Recorded, run: State) -> list[Event]:
        name = cause.event.alarm  # type: ignore[attr-defined]
        return [AlarmResolved(alarm=name), effects[name]] if name in effects else await resolve(cause, run)

    names = [name for pair in zip(effects, (f"right {n}" for n in range(len(effects))), strict=True) for name in pair]
    await world.put(*map(raised, names))
    await world.bus(Toy(write))
    failed = await world.until(len(effects), "ReactionFailed")
    resolved = await world.until(len(effects))
    assert {one.event.alarm for one in resolved} == {name for name in names if name not in effects}  # type: ignore[attr-defined]
    assert not world.deaths
    for one in failed:
        assert one.event.error == "LogError" and "server" not in one.event.message  # type: ignore[attr-defined]
    messages = " ".join(one.event.message for one in failed)  # type: ignore[attr-defined]
    assert "surrogates not allowed" in messages and "RunStarted of toy" in messages and "too large" in messages
    await world.put(raised("later"))
    await world.until(len(effects) + 1)


async def test_an_error_whose_text_no_log_can_hold_is_a_dead_letter(world: World) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise ValueError(f"half {HALF} and \x00")

    await world.put(raised("a"))
    await world.bus(Toy(fail))
    [failed] = await world.until(1, "ReactionFailed")
    assert failed.event.message == "half \ufffd and \ufffd"  # type: ignore[attr-defined]
    assert not world.deaths


async def _taken_and_never_answered(world: World, times: int, within_s: float = PATIENCE_S) -> None:
    """As by processes that end before they answer. Meanwhile the server waits for an answer but a moment."""
    subscription = await world.log.client.jetstream().pull_subscribe_bind(consumer="toy-r1", stream="A0_EV")
    async with await nats.connect(**world.server.options("admin")) as admin:
        held = Topology(world.settings.nats, world.settings.handlers).run_consumer(Toy(resolve), "r1")
        with contextlib.suppress(NotFoundError):
            held = (await admin.jsm().consumer_info("A0_EV", "toy-r1")).config
        await admin.jsm().add_consumer("A0_EV", replace(held, ack_wait=0.1))
        try:
            for _ in range(times):
                await subscription.fetch(1, timeout=within_s)
        finally:
            await subscription.unsubscribe()
            await admin.jsm().add_consumer("A0_EV", held)


@soon_again
async def test_deliveries_that_ended_with_their_process_use_up_no_try(world: World) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise TransientError("No.")

    toy = Toy(fail)
    await world.provision(toy)
    await world.put(raised("a"))
    await _taken_and_never_answered(world, QUICK.max_deliver + 1)
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert (failed.event.error, failed.event.waits) == ("TransientError", False)  # type: ignore[attr-defined]
    assert toy.calls == ["a"] * QUICK.max_deliver


async def test_tries_that_failed_count_in_whichever_process(world: World) -> None:
    async def fail(cause: Recorded, run: State) -> list[Event]:
        raise TransientError("No.")

    toys = []
    await world.put(raised("a"))
    for _ in range(QUICK.max_deliver):
        toys.append(toy := Toy(fail))
        bus = await world.bus(toy)
        await world.until_any(len(toys), "ReactionTried", "ReactionFailed")
        await world.stop(bus)
    await world.until(1, "ReactionFailed")
    assert sum(len(toy.calls) for toy in toys) == QUICK.max_deliver


@soon_again
async def test_a_bound_on_deliveries_is_lifted_and_what_it_gave_up_waits_for_a_person(
    world: World,
) -> None:
    toy = Toy(resolve)
    await world.provision(toy)
    topology = Topology(world.settings.nats, world.settings.handlers)
    async with await nats.connect(**world.server.options("admin")) as admin:
        await admin.jsm().add_consumer("A0_EV", replace(topology.run_consumer(toy, "r1"), max_deliver=3))
        await world.put(raised("poison"))
        await _taken_and_never_answered(world, 3)
        async with asyncio.timeout(PATIENCE_S):
            while not (await admin.jsm().stream_info("A0_ADV")).state.messages:
                with contextlib.suppress(nats.errors.TimeoutError):  # the server notices when it is asked
                    await _taken_and_never_answered(world, 1, 0.5)
    await init(world.server, topology, [toy], change=False)
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert (failed.event.error, failed.event.waits) == ("CrashLoop", True)  # type: ignore[attr-defined]
    assert toy.calls == []
    f = failed.event
    await world.put(event(ReactionRetried(failure=f.failure, cause_id=f.cause_id, cause_seq=2, failed_handler="toy")))  # type: ignore[attr-defined]
    await world.until(1)


SLOW_NOTES = Settings(handlers=SOON.model_copy(update={"max_crashes": 2, "commit_ms": 500}))
"""What a process records of a try is on its way for a while, and a stop falls into that."""


@pytest.mark.parametrize("settings", [SLOW_NOTES], indirect=True)
@pytest.mark.parametrize("error", [DependencyError("model"), TransientError("No.")])
async def test_a_suspect_reaction_that_is_given_back_or_fails_is_no_crash(world: World, error: Exception) -> None:
    away = True

    async def ask(cause: Recorded, run: State) -> list[Event]:
        if away:
            raise error
        return await resolve(cause, run)

    await world.provision(toy := Toy(ask))
    await world.put(raised("a"))
    await _taken_and_never_answered(world, 3)
    for _ in range(2):
        tried = len(await world.stored("ReactionTried"))
        bus = await world.bus(toy)
        await world.until_any(tried + 1, "ReactionTried")
        await world.stop(bus, grace_s=0)
    away = False
    await world.bus(toy)
    await world.until(1)
    assert not await world.stored("ReactionFailed")


async def test_what_cannot_even_be_brought_to_its_handler_waits_for_a_person(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(*_: object) -> None:
        raise LogError("Event 1 cannot be read.")

    monkeypatch.setattr(Reactions, "_route", damaged)
    toy = Toy(resolve)
    await world.put(raised("a"))
    await world.bus(toy)
    [failed] = await world.until(1, "ReactionFailed")
    assert (failed.event.error, failed.event.waits) == ("LogError", True)  # type: ignore[attr-defined]
    await world.quiet()


@soon_again
async def test_an_absent_dependency_uses_up_no_deliveries_and_is_told_once(world: World) -> None:
    away = True

    async def ask(cause: Recorded, run: State) -> list[Event]:
        if away:
            raise DependencyError("ollama", "Connection refused.")
        return await resolve(cause, run)

    toy = Toy(ask)
    await world.put(*(raised(f"a{n}") for n in range(5)))
    await world.bus(toy)
    async with asyncio.timeout(PATIENCE_S):
        while len(toy.calls) < 5 + 2 * QUICK.max_deliver:
            await asyncio.sleep(0.02)
    await asyncio.sleep(SOON.ack_wait_s * 1.5)  # longer than the server waits for an answer
    away = False
    await world.until(5)
    [lost], [back] = await world.until(1, "DependencyLost"), await world.until(1, "DependencyRestored")
    for told in (lost.event, back.event):
        assert (told.dependency, told.waiting) == ("ollama", "toy")  # type: ignore[attr-defined]
    assert not await world.stored("ReactionFailed") and lost.seq < back.seq
    assert sorted(Counter(toy.calls).values())[:-1] == [2] * 4  # one asked again and again, four waited for it


async def test_another_process_tells_that_a_dependency_is_back(world: World) -> None:
    async def ask(cause: Recorded, run: State) -> list[Event]:
        raise DependencyError("sandbox")

    await world.put(raised("a"))
    for _ in range(2):
        bus = await world.bus(toy := Toy(ask))
        async with asyncio.timeout(PATIENCE_S):
            while len(toy.calls) < 3:
                await asyncio.sleep(0.02)
        await world.stop(bus, grace_s=0)
    await world.bus(Toy(resolve))
    await world.until(1)
    await world.until(1, "DependencyRestored")
    await world.until(1, "DependencyLost")


async def test_what_a_run_waits_for_too_long_is_told_again_and_a_failed_run_waits_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunView, "give_up_after", 0.1)
    away = True

    async def ask(cause: Recorded, run: State) -> list[Event]:
        if away:
            raise DependencyError("model")
        return await resolve(cause, run)

    await world.put(raised("a"), raised("b"))
    await world.bus(Toy(ask))
    first, late = await world.until(2, "DependencyLost")
    assert first.event.waited_s == 0 and late.event.waited_s >= 0.1  # type: ignore[attr-defined]
    await world.put(event(RunFailed(reason="away", cause_kind="dependency", iteration=0, state_sha="")))
    await world.quiet()
    assert not await world.stored("AlarmResolved")
    away = False
    await world.put(event(RunResumed()))
    await world.until(2)
    await world.until(2, "DependencyLost")


@pytest.mark.parametrize("stop", [RunPaused(), RunCancelled()])
async def test_a_stopped_run_does_not_keep_the_place_in_which_it_waits(world: World, stop: Event) -> None:
    away = True

    async def ask(cause: Recorded, run: State) -> list[Event]:
        if away and cause.run == "r1":
            raise DependencyError("model")
        return await resolve(cause, run)

    toy = Toy(ask, in_flight=1)
    await world.put(raised("a"), raised("b"))
    bus = await world.bus(toy)
    await world.until(1, "DependencyLost")
    await world.put(raised("c", "r2"))
    assert not await world.stored("AlarmResolved", "r2")
    await world.put(event(stop))
    await world.until(1, run="r2")
    away = False
    if isinstance(stop, RunPaused):
        await world.put(event(RunResumed()))
        assert [r.event.alarm for r in await world.until(2)] == ["a", "b"]  # type: ignore[attr-defined]
    await world.stop(bus)
    assert not await world.stored("ReactionFailed")


@pytest.mark.parametrize("settings", [Settings(handlers=QUICK.model_copy(update={"retry_delay_s": 60}))], indirect=True)
async def test_who_only_waits_for_a_dependency_is_given_back_when_the_process_stops(world: World) -> None:
    async def ask(cause: Recorded, run: State) -> list[Event]:
        raise DependencyError("model")

    await world.put(raised("a"), raised("b"))
    bus = await world.bus(toy := Toy(ask))
    await world.until(1, "DependencyLost")
    async with asyncio.timeout(PATIENCE_S):
        while len(toy.calls) < 2:
            await asyncio.sleep(0.02)
        await world.stop(bus, grace_s=1000)
    await world.bus(Toy(resolve))
    await world.until(2)


async def test_what_is_delivered_again_is_one_line_without_a_traceback(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reach, failures = RunView.reach, [TransientError("The view of r1 was dropped."), ValueError("a defect")]

    async def fail_at_first(view: RunView, seq: int) -> None:
        if failures:
            raise failures.pop(0)
        await reach(view, seq)

    await world.put(raised("a"))
    await world.bus(Toy(resolve))
    await world.until(1)
    monkeypatch.setattr(RunView, "reach", fail_at_first)
    await world.put(raised("b"))
    await world.until(2)
    lines = [
        record
        for record in caplog.records
        if record.name == "agent0.infra.bus.dispatch" and record.levelno >= logging.WARNING
    ]
    assert [line.getMessage().partition(": ")[2] for line in lines] == ["The view of r1 was dropped.", "a defect"]
    assert all("will be tried again" in line.getMessage() and not line.exc_info for line in lines)
