"""Three servers that hold the log together: the one that leads is killed, and nothing that was acknowledged is lost."""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent0.infra.bus.group_commit import Committer
from agent0.infra.bus.log_wait import LogWait, read
from agent0.infra.log.event_log import Log
from tests.clusters import NODES, Cluster, publish
from tests.crashing import SIZES, past_of, watching
from tests.patience import PATIENCE_S
from tests.processes import KINDS, Crew
from tests.test_server import an_event


@pytest.mark.slow  # part of make crash
@pytest.mark.timeout(1000)
async def test_a_killed_leader_takes_no_event_with_it(tmp_path: Path) -> None:
    seed = time.time_ns() % 10**6
    print("seed", seed)  # noqa: T201 - to be seen where this fails
    with Cluster(tmp_path) as cluster:
        await cluster.provision(tmp_path)
        found = await publish(cluster, tmp_path, 1, random.Random(seed))
    assert len(found.acknowledged) >= 400
    assert (found.lost, found.twice) == (0, 0)
    assert Counter(r.id for r in found.stored) == Counter(found.acknowledged.keys())


@pytest.mark.slow
@pytest.mark.timeout(1000)
async def test_without_a_majority_what_is_done_waits_by_name_and_is_stored_once(tmp_path: Path) -> None:
    """Two of three servers are gone: nobody leads. They come back, and it goes on by itself."""
    with Cluster(tmp_path) as cluster:
        await cluster.provision(tmp_path)
        log, wait = await cluster.connect(tmp_path), LogWait(tmp_path)
        log.patience_s = 1.0
        committer = Committer(log, 0.001, wait=wait)
        committer.start()
        assert await committer.commit([an_event(1), an_event(2)]) == [1, 2]
        for node in NODES[:2]:
            cluster.kill(node)
        storing = asyncio.ensure_future(committer.commit([an_event(3), an_event(4)]))
        async with asyncio.timeout(PATIENCE_S):
            while not wait.text:
                await asyncio.sleep(0.05)
        assert "log is not available" in wait.text and read(tmp_path) == wait.text and not storing.done()
        for node in NODES[:2]:
            cluster.start(node)
        async with asyncio.timeout(PATIENCE_S):
            assert await storing == [3, 4]
        assert not wait.text and not read(tmp_path)
        await cluster.whole(log)
        assert [stored.seq async for stored in log.read()] == [1, 2, 3, 4]
        await committer.stop()
        await log.close()


async def test_a_batch_that_was_torn_in_two_is_sent_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the leader, or the connection, changes between two messages of one batch."""
    publish, torn = log.client.publish, list[str]()

    async def tearing(subject: str, *arguments: Any, headers: dict[str, str] | None = None, **more: Any) -> None:
        if headers and "Nats-Batch-Id" in headers and len(torn) < 2:
            torn.append(subject)
        else:
            await publish(subject, *arguments, headers=headers, **more)

    monkeypatch.setattr(log.client, "publish", tearing)
    events = [an_event(n) for n in range(5)]
    assert await log.append(events) == [1, 2, 3, 4, 5]
    assert len(torn) == 2
    assert [r.id async for r in log.read()] == [r.id for r in events]


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_a_run_goes_on_without_the_leader(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        await cluster.provision(tmp_path / "home", **SIZES)
        with Crew(tmp_path / "home", **{**SIZES, **cluster.env()}, RUN__ITERATIONS="1", RUN__TASKS="6") as crew:
            run = crew.tell("run", "start", "--detach", "--json")["run"]
            for kind in KINDS:
                crew.start(kind)
            async with watching(crew, run) as watch, await cluster.connect(tmp_path / "home") as log:
                await watch.until(lambda: watch.answers["student"] > 4, "attempts")
                assert not watch.over
                cluster.kill(await cluster.leader(log))
                await watch.until(lambda: False, "the run to be finished")
            past = await past_of(crew, run, watch)
            rebuilt = crew.tell("projections", "rebuild", "--verify", "--json")
    assert (past.finished, past.lost, past.lost_attempts, past.duplicates) == (True, [], 0, [])
    assert past.same
    assert rebuilt["verified"] is True
