"""A newcomer's path over a real server: start a run, watch it, read a group, fork it, look at what was exported."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from agent0.api import server
from agent0.config.loading import load
from agent0.settings import Settings
from tests.api.served import viewed
from tests.kept_open import one_sandbox
from tests.terminal import agent0 as call

SMALL = {
    "run.iterations": "1",
    "run.tasks": "3",
    "run.attempts": "2",
    "run.evaluation.validation": "3",
    "run.evaluation.test": "0",
}
STREAM = {"Accept": "text/event-stream"}


@asynccontextmanager
async def standing(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    """`agent0 up` of ``settings``, and a client of it."""
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with one_sandbox():
        serving = asyncio.ensure_future(server.up(settings, said.set_result))
        await asyncio.wait([said, serving], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        try:
            async with httpx2.AsyncClient(base_url=said.result(), timeout=600) as client:
                yield client
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


async def finished(client: httpx2.AsyncClient, run: str, after: int) -> list[int]:
    """Follow a run's stream to its end; the sequences that came."""
    seen = []
    async with client.stream("GET", f"/v1/events?run={run}&after={after}", headers=STREAM) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                body = json.loads(line[6:])
                seen.append(body["seq"])
                if body["type"] in ("RunFinished", "RunFailed"):
                    assert body["type"] == "RunFinished", body
                    return seen
    raise AssertionError("the stream ended")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up")


async def test_a_newcomers_path(home: Path) -> None:
    settings = load("scripted", {"home": str(home), "api.port": "0", "sandbox.workers": "1"})
    async with standing(settings) as client:
        assert "agent0 run start" in (await client.get("/runs", headers={"Accept": "text/html"})).text
        asked = {"name": "first", "settings": SMALL}
        begun = await client.post("/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert begun.status_code == 202, begun.text
        again = await client.post("/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert again.json() == begun.json() and again.headers["location"] == begun.headers["location"]
        other = await client.post("/v1/runs", json={**asked, "name": "x"}, headers={"Idempotency-Key": "one"})
        assert other.status_code == 409 and "another request" in other.json()["title"]
        run, seq = begun.json()["run"], begun.json()["seq"]
        seen = await finished(client, run, seq - 1)
        assert seen[0] == seq and seen == sorted({*seen})

        assert (await client.get(begun.headers["location"])).json()["status"] == "finished"
        [task, *_] = (await client.get(f"/v1/runs/{run}/tasks?status=accepted")).json()["data"]
        group = (await client.get(f"/runs/{run}/tasks/{task['task']}.json")).json()
        assert len(group["attempts"]) == 2 and group["turns"]
        page = (await client.get(f"/runs/{run}/iterations/1", headers={"Accept": "text/html"})).text
        at = int(page.partition('name="at" value="')[2].partition('"')[0])

        fork = {"at": at, "settings": {"run.seed": "7"}}
        forked = await client.post(f"/v1/runs/{run}/forks", json=fork, headers={"Idempotency-Key": "two"})
        assert forked.status_code == 202, forked.text
        await finished(client, forked.json()["run"], forked.json()["seq"])
        shown = (await client.get(forked.headers["location"])).json()
        assert (shown["parent"], shown["parent_seq"], shown["config"]["seed"]) == (run, at, 7)

        form = await client.post(
            "/runs", data={"name": "by form", "profile": "scripted", "set": "run.tasks=3 nats.url=x"}
        )
        assert form.status_code == 422 and "no setting of a run" in form.text
        lag = (await client.get("/v1/status")).json()
        assert lag["log"]["state"] == "answers" and len(lag["processes"]) == 1
        consumers = (await client.get("/v1/admin/consumers")).json()["data"]
        assert {"attempt_task", "verify_result"} <= {one["consumer"] for one in consumers}


WRONG = {
    "a file as a profile": ({"profile": "../x.toml"}, 422),
    "a setting of the process": ({"settings": {"home": "/tmp"}}, 422),
    "a plugin": ({"settings": {"plugins": "/tmp/x.py"}}, 422),
    "an unknown setting": ({"settings": {"run.nothing": "1"}}, 422),
    "a field that there is not": ({"command": "rm"}, 422),
}


async def test_what_cannot_be_started_is_told(home: Path) -> None:
    """Without handlers, as where other processes have them."""
    settings = load("scripted", {"home": str(home), "api.port": "0"})
    with one_sandbox():
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(server.up(settings, said.set_result, handlers=False))
        async with httpx2.AsyncClient(base_url=await said, timeout=600) as client:
            for why, (body, status) in WRONG.items():
                found = await client.post("/v1/runs", json=body)
                assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json"), why
            for headers in ({"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}):
                found = await client.post("/v1/runs", content=b"{}", headers=headers)
                assert found.status_code in (403, 422)
            assert (await client.post("/v1/runs/nobody/forks", json={})).status_code == 404
            assert (await client.post("/v1/runs/LAST/forks", json={"at": 10**9})).status_code == 404
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


def test_an_archive_is_viewed_as_the_folder_is(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "all.tar"
    assert {row["status"] for row in call("run", "list", "--json", home=home).json} == {"finished"}
    assert call("events", "export", str(archive), home=home).code == 0

    async def seen() -> dict[str, str]:
        async with server.archived(load("scripted", {"home": str(tmp_path)}), archive) as own:
            return await asyncio.to_thread(_pages, own.home)

    there, here = asyncio.run(seen()), _pages(home)
    assert there == here and len(here) == 4


def _pages(home: Path) -> dict[str, str]:
    with viewed(home) as address, httpx2.Client(base_url=address, timeout=600) as client:
        runs = client.get("/v1/runs").json()["data"]
        run = runs[-1]["run"]
        attempt = client.get(f"/v1/runs/{run}/trajectories").json()["data"][0]["attempt"]
        paths = (
            f"/v1/runs/{run}",
            f"/v1/runs/{run}/story",
            f"/v1/runs/{run}/trajectories/{attempt}",
            "/v1/events?limit=1000",
        )
        assert client.post("/v1/runs", json={}).status_code == 409  # it only reads
        return {path: client.get(path).text for path in paths}
