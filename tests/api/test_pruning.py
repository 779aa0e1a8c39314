"""Runs are hidden, tagged, archived and pruned over HTTP and by the forms of pages, as by commands."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from agent0.config.loading import load
from agent0.settings import Settings
from tests.api.flows import HTML
from tests.api.test_up import SMALL, finished, standing

FEW = {"run.tasks": "2", "run.attempts": "2", "run.evaluation.validation": "2"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load("scripted", {"home": str(tmp_path), "api.port": "0", "sandbox.workers": "1"})


async def begun(client: httpx2.AsyncClient, name: str) -> str:
    """A run that is over."""
    started = (await client.post("/v1/runs", json={"name": name, "settings": SMALL | FEW})).json()
    await finished(client, started["run"], started["seq"] - 1)
    return str(started["run"])


async def listed(client: httpx2.AsyncClient, path: str = "/v1/runs") -> list[str]:
    await client.get("/v1/status")
    answer = await client.get(path)
    return sorted(row["name"] for row in answer.json()["data"])


async def sent(client: httpx2.AsyncClient, path: str, **form: str) -> httpx2.Response:
    """What a browser sends for a form."""
    own = {"Origin": str(client.base_url).rstrip("/"), "Content-Type": "application/x-www-form-urlencoded"}
    answer = await client.post(path, content=urlencode(form), headers=HTML | own)
    assert answer.status_code == 303, answer.text[:300]
    return answer


async def ticked(client: httpx2.AsyncClient, form: str, query: str = "") -> httpx2.Response:
    """What a browser sends for runs that were ticked in the list."""
    own = {"Origin": str(client.base_url).rstrip("/"), "Content-Type": "application/x-www-form-urlencoded"}
    return await client.post(f"/runs/label{query}", content=form, headers=HTML | own)


async def row_of(client: httpx2.AsyncClient, run: str, name: str, value: Any) -> None:
    """Wait until the tables have a field of a run."""
    for _ in range(600):
        rows = (await client.get("/v1/runs?hidden=true")).json()["data"]
        if next(row for row in rows if row["run"] == run)[name] == value:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{run} never had {name} {value}")


async def test_runs_are_hidden_tagged_archived_and_pruned_without_commands(settings: Settings) -> None:
    async with standing(settings) as client:
        old, kept, archived = [await begun(client, name) for name in ("old", "kept", "archived")]
        await sent(client, f"/runs/{old}/hide")
        await row_of(client, old, "hidden", 1)
        assert await listed(client) == ["archived", "kept"]
        assert await listed(client, "/v1/runs?hidden=true") == ["archived", "kept", "old"]
        pages = [(await client.get(path, headers=HTML)).text for path in ("/runs", "/runs?hidden=true")]
        assert [old in page for page in pages] == [False, True] and 'name="hidden" value="true"' in pages[0]

        await sent(client, f"/runs/{old}/label", tags="done with", note="no <b> use")
        await row_of(client, old, "tags", '["done","with"]')
        back = await ticked(client, f"action=tag&tags=both&run={old}&run={kept}", "?text=o&hidden=true")
        assert back.headers["location"] == "/runs?text=o&hidden=true"
        await row_of(client, kept, "tags", '["both"]')
        [row] = (await client.get("/v1/runs?hidden=true&tag=done&text=NO+%3Cb")).json()["data"]
        assert (row["run"], row["tags"], row["note"]) == (old, '["done","with","both"]', "no <b> use")
        for nothing in ("action=tag&tags=x", f"action=tag&run={kept}", f"run={kept}"):
            assert (await ticked(client, nothing)).status_code == 422
        planned = (await client.get("/v1/admin/prune?tag=done")).json()["data"]
        assert [(row["run"], row["deleted"]) for row in planned] == [(old, False)] and planned[0]["bytes"] > 0
        page = (await client.get("/admin/prune?tag=done", headers=HTML)).text
        assert old in page and kept not in page
        assert (await client.post("/v1/admin/prune")).status_code == 422, "how old is never left out"
        assert (await client.post("/v1/admin/prune?older_than=soon")).status_code == 422
        assert (await client.post("/v1/admin/prune?older_than=1w")).json()["data"] == []
        await sent(client, "/admin/prune", older_than="0h", larger_than="0", tag="done", reason="done with it")
        await row_of(client, old, "status", "deleted")

        moved = (await client.post(f"/v1/runs/{archived}/archive")).json()
        assert Path(moved["archive"]).stat().st_size > moved["bytes"] > 0
        await row_of(client, archived, "status", "deleted")
        pruned = (await client.post("/v1/admin/prune?older_than=0h&larger_than=1GB")).json()["data"]
        assert pruned == [] and await listed(client) == ["kept"]
