"""A newcomer's path over a real server: start a run, watch it, read a group, fork it, look at what was exported."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, chdir, suppress
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import pytest

from agent0.api import server
from agent0.config.loading import load
from agent0.settings import Settings
from tests.api.flows import asks_both, rebuilds, settles, trains_elsewhere, until
from tests.api.served import viewed
from tests.kept_open import one_sandbox
from tests.terminal import agent0 as call

SMALL = {
    "run.iterations": "1",
    "run.tasks": "6",
    "run.attempts": "4",
    "run.evaluation.validation": "3",
    "run.evaluation.test": "0",
}


@asynccontextmanager
async def standing(settings: Settings, *, handlers: bool = True) -> AsyncIterator[httpx2.AsyncClient]:
    """`agent0 up` of ``settings``, and a client of it; without ``handlers`` nothing that is started is executed."""
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with one_sandbox():
        serving = asyncio.ensure_future(server.up(settings, said.set_result, handlers=handlers))
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
    return await until(client, run, after, "RunFinished")


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
        assert len(group["attempts"]) == 4 and group["turns"]
        page = (await client.get(f"/runs/{run}/iterations/0", headers={"Accept": "text/html"})).text
        at = int(page.partition('name="at" value="')[2].partition('"')[0])

        fork = {"at": at, "settings": {"run.seed": "7"}}
        forked = await client.post(f"/v1/runs/{run}/forks", json=fork, headers={"Idempotency-Key": "two"})
        assert forked.status_code == 202, forked.text
        await finished(client, forked.json()["run"], forked.json()["seq"])
        shown = (await client.get(forked.headers["location"])).json()
        assert (shown["parent"], shown["parent_seq"], shown["config"]["seed"]) == (run, at, 7)

        await trains_elsewhere(client, run)
        await submits(client, run)
        await asks_both(client, run)
        await talks(client, run)
        await goes_back(client, run)
        await decides(client)
        await experiments(client, run)
        await rebuilds(client, run)

        form = await client.post(
            "/runs", data={"name": "by form", "profile": "scripted", "set": "run.tasks=3 nats.url=x"}
        )
        assert form.status_code == 422 and "no setting of a run" in form.text
        lag = (await client.get("/v1/status")).json()
        assert lag["log"]["state"] == "answers" and len(lag["processes"]) == 1
        consumers = (await client.get("/v1/admin/consumers")).json()["data"]
        assert {"attempt_task", "verify_result"} <= {consumer["consumer"] for consumer in consumers}
        await deletes(client, run, forked.json()["run"])


async def deletes(client: httpx2.AsyncClient, run: str, fork: str) -> None:
    """A run is hidden and shown again; one that a fork needs is refused by its name; the fork itself is deleted."""
    for hidden in (True, False):
        labelled = await client.post(f"/v1/runs/{run}/label", json={"hidden": hidden, "tags": ["kept"]})
        assert labelled.status_code == 202, labelled.text
        listed = (await client.get("/v1/runs?limit=100")).json()["data"]
        assert (run in {row["run"] for row in listed}) is not hidden
    page = (await client.get(f"/runs/{run}", headers={"Accept": "text/html"})).text
    assert f'action="/runs/{run}/hide"' in page and f'action="/runs/{run}/delete"' in page
    form = await client.post(f"/runs/{run}/delete")
    assert form.status_code == 409 and fork in form.text
    assert fork in (await client.get(f"/v1/runs/{run}/deletion")).json()["users"]
    refused = await client.post(f"/v1/runs/{run}/delete")
    assert refused.status_code == 409 and fork in refused.text
    planned = (await client.get(f"/v1/runs/{fork}/deletion")).json()
    assert planned["users"] == [], planned
    deleted = await client.post(f"/v1/runs/{fork}/delete?reason=done")
    assert deleted.status_code == 200 and deleted.json() == planned


async def submits(client: httpx2.AsyncClient, run: str) -> None:
    """A task is solved by the student of a run that is over, and judged; the same key submits it once."""
    asked = {"question": "What is 6 * 7?", "model": run, "expected": "42"}
    begun = await client.post("/v1/tasks", json=asked, headers={"Idempotency-Key": "task"})
    assert begun.status_code == 202, begun.text
    assert (await client.post("/v1/tasks", json=asked, headers={"Idempotency-Key": "task"})).json() == begun.json()
    other = await client.post("/v1/tasks", json={**asked, "expected": "7"}, headers={"Idempotency-Key": "task"})
    assert other.status_code == 409
    await until(client, begun.json()["run"], begun.json()["seq"], "ResultVerified")
    found = (await client.get(begun.headers["location"])).json()
    assert (found["status"], found["verifier"], found["source"]) == ("verified", "expected", run)
    assert found["correct"] == (found["answer"] == "42") and found["solution"]["transcript"]
    assert [one["submission"] for one in (await client.get("/v1/tasks")).json()["data"]] == [begun.json()["run"]]
    form = await client.post("/submit", data={"question": "What is 8 * 9?", "model": run})
    assert form.status_code == 303
    shown = (await client.get(form.headers["location"], headers={"Accept": "text/html"})).text
    assert "What is 8 * 9?" in shown
    rows = (await client.get("/v1/runs?limit=100")).json()["data"]
    assert not [row for row in rows if row["run"].startswith("submission-")]  # it is no run, and trains nobody
    assert (await client.post("/v1/tasks", json={**asked, "question": " "})).status_code == 422
    assert (await client.post("/v1/tasks", json={**asked, "model": f"{run}/teacher-0"})).status_code in (404, 409)
    await solves(client, run)


async def solves(client: httpx2.AsyncClient, run: str) -> None:
    """Work on a repository is submitted with its files; what became of it has a difference and votes, and a page."""
    work = {"verb": "fix", "files": {"a.py": "assert 1 == 2\n"}, "check": "python a.py", "model": run}
    begun = await client.post("/v1/tasks/repository", json=work)
    assert begun.status_code == 202, begun.text
    await until(client, begun.json()["run"], begun.json()["seq"], "ResultVerified")
    row = (await client.get(begun.headers["location"])).json()
    assert row["verifier"] == "solution" and row["diff"] == "" and row["correct"] == 0
    assert [(vote["check"], vote["correct"]) for vote in row["votes"]] == [("changes", False)]
    shown = (await client.get(begun.headers["location"], headers={"Accept": "text/html"})).text
    assert "nothing that counts was changed" in shown
    with TemporaryDirectory() as folder, chdir(folder):
        (Path(folder) / "a.py").write_text("assert 1 == 2\n")
        data = {"folder": ".", "verb": "fix", "check": "python a.py", "model": run}
        form = await client.post("/solve", data=data)
        assert form.status_code == 303, form.text
        await until(client, form.headers["location"].rpartition("/")[2], begun.json()["seq"], "ResultVerified")
        shown = (await client.get(form.headers["location"], headers={"Accept": "text/html"})).text
        assert "nothing that counts was changed" in shown and "Accept: write it" not in shown
        refused = await client.post(f"{form.headers['location']}/accept")
        assert refused.status_code == 409 and "nothing is written" in refused.text, refused.text
    for wrong in (
        {"files": {}},
        {"files": {"../a.py": ""}},
        {"files": {"a": "", "a/b.py": ""}},
        {"verb": "break"},
        {"seconds": 3600},
    ):
        assert (await client.post("/v1/tasks/repository", json={**work, **wrong})).status_code == 422


async def talks(client: httpx2.AsyncClient, run: str) -> None:
    """A chat by form keeps the conversation in the page."""
    first = await client.post("/chat", data={"model": f"{run}/base", "message": "What is 1 + 1?", "said": ""})
    assert first.status_code == 200, first.text
    kept = unescape(first.text.partition('name="said" value="')[2].partition('"')[0])
    assert [one["role"] for one in json.loads(kept)] == ["user", "assistant"]
    more = await client.post("/chat", data={"model": f"{run}/base", "message": "And then?", "said": kept})
    assert more.text.count('<div class="turn') == 4
    assert (await client.post("/chat", data={"model": f"{run}/base", "message": "x", "said": "{"})).status_code == 422
    known = [one["id"] for one in (await client.get("/v1/models")).json()["data"]]
    assert known == (await client.get("/chat.json")).json()["models"] and known[-1] == "router/student"
    asked = {"messages": [{"role": "user", "content": "What is 1 + 1?"}], "seed": 1}
    routed = await client.post("/v1/chat/completions", json={**asked, "model": "router/student"})
    assert routed.status_code == 200 and routed.json()["choices"][0]["message"]["content"], routed.text
    assert (await client.post("/v1/chat/completions", json={**asked, "model": "router/cook"})).status_code == 422


async def goes_back(client: httpx2.AsyncClient, run: str) -> None:
    """The student is rolled back, and promoted again by what was seen of it; what was seen before is stale."""
    seen = (await client.get(f"/v1/runs/{run}")).headers["etag"]
    assert (await client.get(f"/v1/runs/{run}")).json()["student"] == "student-0"
    path, back = f"/v1/runs/{run}/rollback", {"to": "base", "reason": "worse"}
    first = await client.post(path, json=back, headers={"If-Match": seen, "Idempotency-Key": "back"})
    assert first.status_code == 202, first.text
    assert (await client.post(path, json=back, headers={"Idempotency-Key": "back"})).json() == first.json()
    assert (await client.get(f"/v1/runs/{run}")).json()["student"] == "base"
    promote = f"/v1/checkpoints/{run}/student-0/promote"
    stale = await client.post(promote, json={}, headers={"If-Match": seen})
    assert (stale.status_code, stale.json()["type"]) == (412, "urn:agent0:problem:changed_since")
    assert (await client.post(promote, json={}, headers={"If-Match": '"x"'})).status_code == 422
    again = (await client.get(f"/v1/runs/{run}")).headers["etag"]
    at_once = [client.post(promote, json={"reason": str(n)}, headers={"If-Match": again}) for n in range(8)]
    won, *lost = sorted(one.status_code for one in await asyncio.gather(*at_once))
    assert won == 202 and set(lost) <= {409, 412}  # 409: it found it promoted
    assert (await client.get(f"/v1/runs/{run}")).json()["student"] == "student-0"
    assert (await client.post(promote, json={})).status_code == 409  # it is the student already
    by_form = await client.post(f"/runs/{run}/rollback", data={"to": "base"})
    assert by_form.status_code == 303 and (await client.get(f"/v1/runs/{run}")).json()["student"] == "base"


async def decides(client: httpx2.AsyncClient) -> None:
    """A run is paused, goes on, and is cancelled for good."""
    long = {"name": "long", "settings": {**SMALL, "run.iterations": "500"}}
    run = (await client.post("/v1/runs", json=long)).json()["run"]
    for word, status in (("pause", "paused"), ("resume", "running")):
        done = await client.post(f"/v1/runs/{run}/{word}", json={"reason": "a look"} if word == "pause" else None)
        assert done.status_code == 202, done.text
        assert (await client.get(f"/v1/runs/{run}")).json()["status"] == status
    assert (await client.post(f"/v1/runs/{run}/resume")).status_code == 409
    form = await client.post(f"/runs/{run}/cancel")
    assert form.status_code == 303 and (await client.get(f"/v1/runs/{run}")).json()["status"] == "cancelled"
    assert (await client.post(f"/v1/runs/{run}/pause", json={})).status_code == 409
    assert (await client.post(f"/runs/{run}/burn")).status_code == 404


async def experiments(client: httpx2.AsyncClient, run: str) -> None:
    """A rescore by form is written down; an ablation is refused as a whole where it is too large."""
    form = await client.post("/experiments/rescore", data={"run": run, "name": "look"})
    assert form.status_code == 303, form.text
    found = (await client.get(f"{form.headers['location']}.json")).json()["found"]
    assert (found["kind"], found["run"], found["status"]) == ("rescore", run, "finished")
    ended = (await client.get(f"/v1/events?run={run}&type=RunFinished")).json()["data"][0]["seq"]
    forked = await client.post("/experiments/fork", data={"run": run, "at": str(ended), "name": "from a form"})
    assert forked.status_code == 303, forked.text
    assert (await client.get(f"/v1{forked.headers['location']}")).json()["parent_seq"] == ended
    many = {"setting": "run.attempts", "values": ["1", "2", "3", "4"], "seeds": [1, 2, 3, 4, 5, 6, 7]}
    assert (await client.post("/v1/experiments/ablation", json=many)).status_code == 422


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
    async with standing(settings, handlers=False) as client:
        for why, (body, status) in WRONG.items():
            found = await client.post("/v1/runs", json=body)
            assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json"), why
        for headers in ({"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}):
            found = await client.post("/v1/runs", content=b"{}", headers=headers)
            assert found.status_code in (403, 422)
        assert (await client.post("/v1/runs/nobody/forks", json={})).status_code == 404
        assert (await client.post("/v1/runs/LAST/forks", json={"at": 10**9})).status_code == 404
        await settles(client, settings)


def test_an_archive_is_viewed_as_the_folder_is(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "all.tar"
    assert {row["status"] for row in call("run", "list", "--json", home=home).json} == {"finished", "cancelled"}
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
