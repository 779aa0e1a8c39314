"""What a person or a program does with a server that stands: parts of the newcomer's path."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from openai import AsyncOpenAI

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.events.alarms import ReactionFailed
from agent0.events.values import Trajectory
from agent0.settings import Settings
from agent0.tasks.seeds import derive_seed

STREAM = {"Accept": "text/event-stream"}
HTML = {"Accept": "text/html"}
SOON_S = 120


async def until(client: httpx2.AsyncClient, run: str, after: int, last: str) -> list[int]:
    """Follow the stream of ``run`` to the first event ``last``; the sequences that came."""
    seen = []
    async with client.stream("GET", f"/v1/events?run={run}&after={after}", headers=STREAM) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                body = json.loads(line[6:])
                seen.append(body["seq"])
                assert body["type"] not in ("RunFailed", "ReactionFailed"), body
                if body["type"] == last:
                    return seen
    raise AssertionError("the stream ended")


async def trains_elsewhere(client: httpx2.AsyncClient, run: str) -> None:
    """A trainer that asks the endpoint what the run asked gets what the log holds: the ids that were seen and drawn,
    and the log-probabilities that training reads."""
    compared = 0
    async with AsyncOpenAI(base_url=f"{client.base_url}".rstrip("/") + "/v1", api_key="none", max_retries=0) as openai:
        async for asked, held in recorded_turns(client, run):
            said: Any = await openai.chat.completions.create(**asked)
            compared += _equal(said.model_dump(), held)
    assert compared


async def recorded_turns(client: httpx2.AsyncClient, run: str) -> AsyncIterator[tuple[dict[str, Any], Trajectory]]:
    """Of each attempt of ``run`` in one turn: what to ask the endpoint to get it again, and what the log holds."""
    config = (await client.get(f"/v1/runs/{run}")).json()["config"]["student"]
    sampling = {name: config[name] for name in ("temperature", "top_p", "max_tokens")}
    for row in (await client.get(f"/v1/runs/{run}/trajectories")).json()["data"]:
        body = (await _events(client, run, row["task"], "TaskAttempted", row["attempt"]))["data"]
        asked = (await _events(client, run, row["task"], "AttemptRequested", row["attempt"]))["data"]
        roles = [turn["role"] for turn in body["transcript"]]
        if not body["trajectory"] or roles.count("assistant") != 1:
            continue
        said = body["transcript"][: roles.index("assistant")]
        yield (
            {
                "model": f"{run}/{row['student']}",
                "messages": [{"role": turn["role"], "content": turn["content"]} for turn in said],
                "seed": derive_seed(asked["seed"], "turn", 0),
                **sampling,
                "logprobs": True,
                "extra_body": {"return_token_ids": True},
            },
            Trajectory.model_validate(body["trajectory"]),
        )


async def _events(client: httpx2.AsyncClient, run: str, task: str, kind: str, attempt: str) -> dict[str, Any]:
    rows = (await client.get("/v1/events", params={"run": run, "task": task, "type": kind})).json()["data"]
    found: dict[str, Any] = next(row for row in rows if row["attempt"] == attempt)
    return found


def _equal(said: dict[str, Any], held: Trajectory) -> bool:
    choice = said["choices"][0]
    assert [*said["prompt_token_ids"], *choice["token_ids"]] == [*held.token_ids]
    assert [0] * len(said["prompt_token_ids"]) + [1] * len(choice["token_ids"]) == [*held.mask]
    drawn = [logprob for logprob, own in zip(held.logprobs, held.mask, strict=True) if own]
    assert [one["logprob"] for one in choice["logprobs"]["content"]] == drawn
    return True


async def asks_both(client: httpx2.AsyncClient, run: str) -> None:
    """Two checkpoints are asked the same by a form; the page shows their attempts side by side, turn by turn."""
    names = {"left": f"{run}/base", "right": f"{run}/student-0"}
    page = (await client.get("/compare", params=names, headers=HTML)).text
    again = page.partition('name="again" value="')[2].partition('"')[0]
    form = {**names, "question": "What is 6 * 9?", "expected": "54", "again": again}
    begun = await client.post("/compare", data=form)
    assert begun.status_code == 303, begun.text
    assert (await client.post("/compare", data=form)).headers["location"] == begun.headers["location"]  # sent twice
    for sides in parse_qs(urlsplit(begun.headers["location"]).query).values():
        await until(client, sides[0], 0, "ResultVerified")
    found = (await client.get(begun.headers["location"].replace("?", ".json?"))).json()
    assert [side["model"] for side in found["sides"]] == [*names.values()] and found["turns"]
    assert all(
        side["attempt"]["correct"] is not None and side["question"] == "What is 6 * 9?" for side in found["sides"]
    )
    assert (await client.post("/compare", data={**form, "question": ""})).status_code == 422


async def settles(client: httpx2.AsyncClient, settings: Settings) -> None:
    """Reactions that were given up are tried again or dropped, once each, over HTTP and by the form of page Admin."""
    run = (await client.get("/v1/runs")).json()["data"][0]["run"]
    facts = {"cause_id": "c", "cause_seq": 1, "cause_type": "RunStarted", "failed_handler": "advance_run"}
    names = ("f-one", "f-two", "f-three")
    failed = [
        ReactionFailed(failure=name, **facts, error="ValueError", message="<b>", traceback="", deliveries=3)
        for name in names
    ]
    async with open_log(settings) as log:
        seq = (await log.append([recorded(run, one) for one in failed]))[-1]
    async with asyncio.timeout(SOON_S):
        while (await client.get("/v1/status")).json()["tables"] < seq:
            await asyncio.sleep(0.05)
    key = {"Idempotency-Key": "again"}
    first = await client.post("/v1/admin/failures/f-one/retry", headers=key)
    assert first.status_code == 202, first.text
    assert (await client.get(first.headers["location"])).json()["type"] == "ReactionRetried"
    assert (await client.post("/v1/admin/failures/f-one/retry", headers=key)).json() == first.json()
    assert (await client.post("/v1/admin/failures/f-one/retry")).status_code == 409  # it is settled
    assert (await client.post("/v1/admin/failures/f-t/drop", json={})).status_code == 404  # two begin so
    page = (await client.get("/admin", headers=HTML)).text
    again = page.partition('action="/admin/failures/f-two/drop"><input type="hidden" name="again" value="')[2]
    for _ in range(2):  # the button is pressed twice
        form = await client.post("/admin/failures/f-two/drop", data={"again": again.partition('"')[0]})
        assert form.status_code == 303, form.text
    dropped = await client.post("/v1/admin/failures/f-three/drop", json={"reason": "no use"})
    assert dropped.status_code == 202
    rows = (await client.get(f"/v1/admin/failures?run={run}")).json()["data"]
    assert {row["failure"]: row["reason"] for row in rows} == {"f-two": "dropped by hand", "f-three": "no use"}
    assert "None waits." in (await client.get("/admin", headers=HTML)).text
    assert (await client.post("/admin/failures/f-two/burn")).status_code == 422


async def rebuilds(client: httpx2.AsyncClient, run: str) -> None:
    """Tables are made anew while pages are read and a stream is followed: each answer is that of the old ones or of
    the new ones, which are the same."""
    paths = (f"/v1/runs/{run}", f"/v1/runs/{run}/trajectories", f"/runs/{run}.json", f"/runs/{run}/iterations/0.json")
    before = [(await client.get(path)).json() for path in paths]
    begun = await client.post("/v1/admin/rebuild")
    assert begun.status_code == 202 and begun.json()["state"] == "under way", begun.text
    assert (await client.post("/v1/admin/rebuild")).status_code == 409
    assert "the old ones serve" in (await client.get("/admin", headers=HTML)).text
    asked = 0
    async with asyncio.timeout(SOON_S), client.stream("GET", f"/v1/events?run={run}&after=0", headers=STREAM) as stream:
        while (held := (await client.get("/v1/status")).json()["rebuild"])["state"] == "under way":
            answers = await asyncio.gather(*map(client.get, paths))
            assert [answer.status_code for answer in answers] == [200] * len(paths)
            assert [answer.json() for answer in answers] == before
            asked += 1
        ids = [int(line[4:]) async for line in _lines(stream, before[0]["events"]) if line.startswith("id: ")]
    assert held["state"] == "done" and held["seq"] and asked, held
    assert len(ids) == before[0]["events"] and ids == sorted({*ids})
    assert [(await client.get(path)).json() for path in paths] == before
    page = (await client.get("/admin", headers=HTML)).text
    assert f"rebuilt up to event {held['seq']}" in page and "A0_EV" in page


async def _lines(stream: httpx2.Response, events: int) -> Any:
    """Lines of a stream up to the last of so many events."""
    async for line in stream.aiter_lines():
        yield line
        events -= line.startswith("id: ")
        if not events:
            return
