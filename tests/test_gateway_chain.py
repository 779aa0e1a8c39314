"""A chain of models: the cache first, tries that are each charged, stand-ins with reasons, one model held to a run."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.errors import (
    AuthError,
    BudgetExhaustedError,
    DependencyError,
    ModelChangedError,
    NotSentError,
    ServerBusyError,
    TransientError,
)
from agent0.events.models import ModelCalled
from agent0.events.values import Artifact, Turn
from agent0.infra.gateway.billed import Books
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.gateway import Gateway, Link, LocalLink
from agent0.infra.gateway.records import answer_json, read_answer, request_json
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation, Sampling, Served
from agent0.rollout.trajectories import assemble
from agent0.routing.health import model_alarms
from tests.test_gateway import ASKED, CENT, Vendor, books, called, link, most, spent

COST = 35 * CENT // 100
"""Of one answer of ``Vendor``."""


class Failing(Vendor):
    """Fails with each of ``errors`` in turn, then answers as what it is said to serve."""

    def __init__(self, errors: Sequence[Exception] = (), served: Sequence[Served] = ()) -> None:
        super().__init__()
        self.errors, self.served = list(errors), list(served)

    async def generate(self, request: GenerateRequest) -> Generation:
        if self.errors:
            self.asked.append(request)
            raise self.errors.pop(0)
        written = await super().generate(request)
        return replace(written, served=self.served.pop(0)) if self.served else written


class Home(Vendor):
    """A model on this machine."""

    name = "tiny"

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.append(request)
        if self.error:
            raise self.error
        return Generation("local", (1, 2), (-0.5, -0.1), (3,), model=self.name)


def chain(*links: Link) -> Gateway:
    return Gateway(links, Vendor())


async def events(log: Log) -> list[tuple[str, int, int | None, str]]:
    return [(e.requested_model, e.retries, e.cost, e.error) for e in await called(log)]


# --- tries ------------------------------------------------------------------------------------------------------------


async def test_each_try_is_charged_and_is_an_event_of_one_route(log: Log) -> None:
    vendor = Failing([TransientError("it broke off"), ServerBusyError("It", after_s=1)])
    gate = chain(link(books(log), vendor, tries=2))
    assert (await gate.generate(ASKED)).text == "4"
    assert await events(log) == [
        ("gpt-4o", 0, most(), "TransientError"),
        ("gpt-4o", 1, 0, "ServerBusyError"),
        ("gpt-4o", 2, COST, ""),
    ]
    assert await spent(log) == most() + COST
    assert len({event.route for event in await called(log)}) == 1


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (TransientError("500"), 3),
        (NotSentError("It"), 3),
        (ServerBusyError("It", after_s=60), 3),
        (ServerBusyError("It", after_s=61), 1),
        (AuthError("no key"), 1),
        (DependencyError("It", "it fell silent"), 1),
    ],
)
async def test_only_what_may_pass_is_tried_again(log: Log, error: Exception, tries: int) -> None:
    vendor = Failing([error] * 5)
    with pytest.raises(type(error)):
        await chain(link(books(log), vendor, tries=2)).generate(ASKED)
    assert len(vendor.asked) == tries


async def test_a_budget_that_ends_between_two_tries_ends_them(log: Log) -> None:
    vendor = Failing([TransientError("500")] * 5)
    with pytest.raises(BudgetExhaustedError):
        await chain(link(books(log), vendor, most() + 1, tries=4)).generate(ASKED)
    assert len(vendor.asked) == 1 and await spent(log) == most()


# --- stand-ins --------------------------------------------------------------------------------------------------------


async def test_a_stand_in_answers_whole_says_why_and_is_not_learned_from(log: Log) -> None:
    kept, broken = books(log), Failing([TransientError("it broke off after half a turn")] * 9)
    gate = chain(link(kept, broken, name="gpt-4o-mini"), link(kept, Vendor()))
    adapter = Artifact(sha256="0" * 64, size=1)
    written = await gate.generate(replace(ASKED, adapter=adapter))
    assert written.text == "4"
    assert "another model wrote it, gpt-4o" in written.untrainable and "TransientError" in written.untrainable
    first, second = await called(log)
    assert (first.requested_model, first.reason, first.error) == ("gpt-4o-mini", "", "TransientError")
    assert (second.requested_model, second.reason) == ("gpt-4o", f"{broken.name}: TransientError")
    assert first.route == second.route and broken.asked[0].adapter == adapter


async def test_who_is_asked_first_is_learned_from_and_nobody_else_is_asked(log: Log) -> None:
    home, vendor = Home(), Vendor()
    written = await chain(LocalLink(home), link(books(log), vendor)).generate(ASKED)
    assert (written.text, written.untrainable) == ("local", "") and vendor.asked == []
    assert await called(log) == []


async def test_training_takes_the_tokens_of_whom_it_trains_and_of_nobody_else(log: Log) -> None:
    own = await chain(LocalLink(Home())).generate(ASKED)
    trajectory, problem = assemble([own])
    assert trajectory and trajectory.token_ids == (3, 1, 2) and problem == ""
    away = Home(error=DependencyError("tiny"))
    other = await chain(LocalLink(away), LocalLink(Home())).generate(ASKED)
    assert other.token_ids == own.token_ids
    trajectory, problem = assemble([own, other])
    assert trajectory is None and "another model wrote it" in problem


async def test_a_local_model_that_is_away_is_stood_in_for(log: Log) -> None:
    home = Home(error=DependencyError("tiny"))
    assert (await chain(LocalLink(home), link(books(log), Vendor())).generate(ASKED)).text == "4"


async def test_a_used_up_budget_is_answered_by_a_model_that_costs_nothing(log: Log) -> None:
    vendor = Vendor()
    written = await chain(link(books(log), vendor, most() - 1), LocalLink(Home())).generate(ASKED)
    assert written.text == "local" and vendor.asked == []


async def test_where_nobody_answers_the_first_failure_is_raised(log: Log) -> None:
    with pytest.raises(BudgetExhaustedError):
        await chain(link(books(log), Vendor(), 1), LocalLink(Home(error=TransientError("no")))).generate(ASKED)


async def test_a_wrong_key_is_no_reason_to_ask_elsewhere(log: Log) -> None:
    home = Home()
    with pytest.raises(AuthError):
        await chain(link(books(log), Failing([AuthError("no")])), LocalLink(home)).generate(ASKED)
    assert home.asked == []


async def test_a_model_that_keeps_failing_is_left_alone(log: Log) -> None:
    vendor, home = Failing([TransientError("500")] * 9), Home()
    gate = chain(link(books(log), vendor, breaker=2), LocalLink(home))
    for _ in range(4):
        await gate.generate(ASKED)
    assert len(vendor.asked) == 2 and len(home.asked) == 4
    assert [event.health for event in await called(log)] == ["", "failing"]


async def test_a_model_that_fails_raises_one_alarm_and_an_answer_ends_it(log: Log) -> None:
    """One failure raises none, others while it is left alone no second one."""
    failures = [TransientError("500"), NotSentError("It"), TransientError("500")]
    gate = chain(link(books(log), Failing([*failures, AuthError("no")]), breaker=2, breaker_s=0))
    for _ in range(6):
        with suppress(TransientError, AuthError, DependencyError):
            await gate.generate(ASKED)
    events = await called(log)
    assert [event.health for event in events] == ["", "failing", "", "", "well", ""]
    said = [one for event in events for one in model_alarms(event)]
    assert [(type(one).__name__, one.alarm) for one in said] == [
        ("AlarmRaised", "model-failing-openai-gpt-4o"),
        ("AlarmResolved", "model-failing-openai-gpt-4o"),
    ]


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(tmp_path / "cache" / "answers.sqlite", days=1, mib=1)


async def test_an_exact_request_is_paid_for_once(log: Log, cache: AnswerCache) -> None:
    vendor = Vendor()
    gate = chain(link(books(log), vendor, cache=cache))
    first, again = await gate.generate(ASKED), await gate.generate(replace(ASKED, task="t2", attempt="a2"))
    assert again == first and len(vendor.asked) == 1
    miss, hit = await called(log)
    assert (miss.cache, miss.cost) == ("miss", COST)
    assert (hit.cache, hit.cost, hit.saved, hit.task, hit.attempt) == ("hit", 0, COST, "t2", "a2")
    assert await spent(log) == COST
    assert [(row.answers, row.hits, row.saved) for row in cache.models()] == [(1, 1, COST)]


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": Sampling(max_tokens=500, seed=1)},
        {"sampling": Sampling(temperature=0.9, max_tokens=500)},
        {"adapter": Artifact(sha256="1" * 64, size=1)},
        {"turns": (Turn(role="user", content="2+2? "),)},
        {"schema": {"type": "object"}},
        {"prefill": "4"},
    ],
)
async def test_anything_that_an_answer_depends_on_is_in_the_key(
    log: Log, cache: AnswerCache, change: dict[str, Any]
) -> None:
    """The seed above all: a sampled turn is the same sample, or none of the cache's."""
    vendor = Vendor()
    gate = chain(link(books(log), vendor, cache=cache))
    await gate.generate(ASKED)
    await gate.generate(replace(ASKED, **change))
    assert len(vendor.asked) == 2


def test_models_do_not_answer_for_each_other(cache: AnswerCache) -> None:
    cache.put("openai", "gpt-4o", ASKED, Generation("4"), 1, 0)
    assert cache.get("openai", "gpt-4o", ASKED, 1) and not cache.get("openai", "gpt-4o-mini", ASKED, 1)
    assert not cache.get("azure", "gpt-4o", ASKED, 1)


def test_answers_grow_old_and_the_least_used_go_first(tmp_path: Path) -> None:
    cache, day = AnswerCache(tmp_path / "answers.sqlite", days=1, mib=0.01), 86_400
    asked = [replace(ASKED, prefill=str(n)) for n in range(6)]
    for n, one in enumerate(asked[:3]):
        cache.put("v", "m", one, Generation("x" * 3000), 1, n)
    assert cache.get("v", "m", asked[0], 3)
    cache.put("v", "m", asked[3], Generation("x" * 3000), 1, 4)
    assert [bool(cache.get("v", "m", one, 5)) for one in asked[:4]] == [True, False, True, True]
    assert not cache.get("v", "m", asked[3], 4 + day + 1)
    cache.put("v", "m", asked[4], Generation("new"), 1, 10 * day)
    assert [row.answers for row in cache.models()] == [1]
    assert cache.clear() == 1 and cache.models() == []
    cache.close()


def test_a_damaged_cache_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    cache = AnswerCache(path, days=1, mib=1)
    cache.put("v", "m", ASKED, Generation("4"), 1, 0)
    assert cache.get("v", "m", ASKED, 1)
    cache.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (1,)


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.sqlite"
    cache = AnswerCache(path, days=1, mib=1)
    cache.put("v", "m", ASKED, Generation("4"), 1, 0)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("UPDATE answers SET body = '{}'")
        assert cache.get("v", "m", ASKED, 1) is None
        monkeypatch.setattr("agent0.infra.gateway.cache.PATIENCE_S", 0.0)
        other.execute("BEGIN IMMEDIATE")
        hurried = AnswerCache(path, days=1, mib=1)
        hurried.put("v", "m", replace(ASKED, prefill="x"), Generation("4"), 1, 0)
        other.execute("ROLLBACK")
    assert hurried.get("v", "m", replace(ASKED, prefill="x"), 1) is None
    hurried.put("v", "m", ASKED, Generation("4"), 1, 0)
    assert hurried.get("v", "m", ASKED, 1)
    hurried.close()
    cache.close()


async def test_servers_do_not_answer_for_each_other(log: Log, cache: AnswerCache) -> None:
    vendor, kept = Vendor(), books(log)
    for location in ("http://10.0.0.1", "http://10.0.0.2"):
        one = link(kept, vendor, cache=cache)
        one._billed.remote = replace(one._billed.remote, location=location)
        await chain(one).generate(ASKED)
    assert len(vendor.asked) == 2


def test_an_answer_is_read_as_it_was_written() -> None:
    served = Served("gpt", "fp8", "host", "fp_1")
    whole = Generation("é", (1, 2), (-0.5, -0.1), (3,), "length", model="m", ends=(1, 1), capture="tokens")
    told = replace(whole, counted={"a": {"b": 1}}, served=served)
    assert read_answer(answer_json(replace(told, served=replace(served, limits={"x": "1"})))) == told


# --- what is kept of a call, and pinning ------------------------------------------------------------------------------


async def test_prompt_and_answer_are_kept_under_the_event(log: Log) -> None:
    kept: Books = books(log)
    await chain(link(kept, Vendor())).generate(replace(ASKED, task="t1", attempt="a1"))
    [event] = await called(log)
    assert (event.task, event.attempt) == ("t1", "a1") and event.prompt and event.output
    assert kept.artifacts.get(event.prompt).decode() == request_json(ASKED)
    assert json.loads(kept.artifacts.get(event.output))["text"] == "4"
    subjects = [r.subject async for r in log.read("r1", ("ModelCalled",))]
    assert subjects == ["a0.ev.r1.t1.a1.ModelCalled"]


OLD, NEW = Served("gpt-4o-1", "bf16", fingerprint="fp_1"), Served("gpt-4o-1", "fp8", fingerprint="fp_2")


async def test_a_change_of_what_is_served_begins_a_segment(log: Log) -> None:
    gate = chain(link(books(log), Failing(served=[OLD, replace(OLD, fingerprint="fp_3"), NEW, NEW, OLD])))
    for _ in range(4):
        await gate.generate(ASKED)
    await log.queue.join()
    later = chain(link(books(log), Failing(served=[OLD])))  # another process
    await later.generate(ASKED)
    found = await called(log)
    assert [event.segment for event in found] == [0, 0, 1, 1, 2]
    assert [event.former for event in found] == ["", "", "openai/gpt-4o-1 (bf16)", "", "openai/gpt-4o-1 (fp8)"]
    assert (found[2].quantization, found[2].fingerprint) == ("fp8", "fp_2")


async def test_a_change_is_refused_where_a_run_is_held_to_its_model(log: Log) -> None:
    vendor = Failing(served=[OLD, NEW])
    gate = chain(link(books(log, pin="refuse"), vendor))
    await gate.generate(ASKED)
    for _ in range(2):
        with pytest.raises(ModelChangedError, match=r"fp8.*router\.pin = segment"):
            await gate.generate(ASKED)
    assert len(vendor.asked) == 2  # nothing more is sent, and what was is charged
    assert await spent(log) == 2 * COST
    told = [(event.error, event.finish) for event in await called(log)]
    assert told == [("", "stop"), ("ModelChangedError", "error")]
    after = chain(link(books(log, pin="refuse"), Failing(served=[OLD])))
    await after.generate(ASKED)


async def test_other_runs_are_not_held_to_it(log: Log) -> None:
    gate = chain(link(books(log, pin="refuse"), Failing(served=[OLD, NEW, NEW])))
    for group in ("r1", "r2", ""):
        await gate.generate(replace(ASKED, group=group))


async def test_calls_at_once_agree_on_the_model(log: Log) -> None:
    gate = chain(link(books(log), Failing(served=[OLD] * 8)))
    await asyncio.gather(*(gate.generate(ASKED) for _ in range(8)))
    assert {event.segment for event in await called(log)} == {0}
    assert all(isinstance(event, ModelCalled) for event in await called(log))
