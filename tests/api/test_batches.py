"""Rows that come with a request are answered in the server, each once; what cannot be asked or answered is told."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2

from agent0.config.loading import load
from tests.api.test_up import standing
from tests.patience import PATIENCE_S

ROWS = [*({"id": f"q{n}", "question": f"What is {n} + {n}?"} for n in range(30)), {"id": "bad", "question": 7}]


async def done(client: httpx2.AsyncClient, batch: str, state: str = "done") -> Any:
    """Wait until the batch has ended in ``state``, and the tables have all of it."""
    async with asyncio.timeout(PATIENCE_S / 5):
        while True:
            shown = (await client.get(f"/v1/batches/{batch}")).json()
            if shown["here"]["state"] == state and (state == "failed" or shown.get("status") == "finished"):
                return shown
            await asyncio.sleep(0.05)


async def test_rows_of_a_request_are_answered_once_and_fetched(tmp_path: Path) -> None:
    settings = load("scripted", {"home": str(tmp_path), "api.port": "0", "run.student.max_calls": "0"})
    async with standing(settings, handlers=False) as client:
        body = {"rows": ROWS, "tools": False}
        begun = await client.post("/v1/batches", json=body)
        assert begun.status_code == 202 and begun.json()["rows"] == 31, begun.text
        batch = begun.json()["batch"]
        assert begun.headers["location"] == f"/v1/batches/{batch}"
        again = await client.post("/v1/batches", json=body)
        assert again.json() == begun.json()
        shown = await done(client, batch)
        assert (shown["rows"], shown["failed"], shown["provider"]) == (31, 1, "scripted")
        rows = (await client.get(f"/v1/batches/{batch}/rows?limit=1000")).json()["data"]
        assert [row["row"] for row in rows] == [*range(1, 32)]
        assert rows[-1]["error"] == "row 31, column question: a number, and text is needed"
        assert (await client.post("/v1/batches", json=body)).json()["batch"] == batch
        assert (await done(client, batch))["rows"] == 31
        answered = (await client.get("/v1/events?type=RowAnswered&limit=1000")).json()["data"]
        assert len(answered) == 31

        other = (await client.post("/v1/batches", json={**body, "rows": ROWS[:2]})).json()["batch"]
        assert other != batch and (await done(client, other))["rows"] == 2
        for wrong, code in (
            ({"rows": []}, 422),
            ({"rows": [{"q": "a"}]}, 422),
            ({"rows": [*ROWS, ROWS[3]]}, 422),
            ({"rows": ROWS, "model": "nobody/base"}, 404),
        ):
            assert (await client.post("/v1/batches", json=wrong)).status_code == code


async def test_a_batch_that_cannot_be_answered_says_why(tmp_path: Path) -> None:
    model = {"run.student.provider": "transformers", "run.student.model": str(tmp_path / "none")}
    settings = load("scripted", {"home": str(tmp_path), "api.port": "0", "run.student.max_calls": "0", **model})
    async with standing(settings, handlers=False) as client:
        batch = (await client.post("/v1/batches", json={"rows": ROWS})).json()["batch"]
        shown = await done(client, batch, "failed")
        assert str(tmp_path / "none") in shown["here"]["problem"] and "status" not in shown
