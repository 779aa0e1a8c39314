"""The client of a trainer that is no part of Agent0 captures from the endpoint what the log holds. `make trainer`
installs the client, the package `verifiers`, in an environment of its own; without it the test is skipped."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent0.config.loading import load
from tests.api.flows import recorded_turns, until
from tests.api.test_up import SMALL, standing

pytestmark = pytest.mark.slow
PYTHON = Path(os.environ.pop("AGENT0_TRAINER", Path(__file__).parents[2] / "build" / "trainer" / "bin" / "python"))
CAPTURE = Path(__file__).with_name("trainer_capture.py")


@pytest.mark.parametrize("profile", ["scripted", "tiny"])
async def test_a_trainers_client_captures_what_the_log_holds(tmp_path: Path, profile: str) -> None:
    if not PYTHON.is_file():
        pytest.skip("verifiers is not installed: make trainer")
    settings = load(profile, {"home": str(tmp_path), "api.port": "0", "sandbox.workers": "1"})
    async with standing(settings) as client:
        begun = (await client.post("/v1/runs", json={"settings": SMALL})).json()
        await until(client, begun["run"], 0, "RunFinished")
        compared = 0
        async for asked, held in recorded_turns(client, begun["run"]):
            found = await asyncio.to_thread(captured, client, asked)
            assert [*found["prompt_ids"], *found["completion_ids"]] == [*held.token_ids]
            drawn = [logprob for logprob, own in zip(held.logprobs, held.mask, strict=True) if own]
            assert found["completion_logprobs"] == pytest.approx(drawn, abs=1e-4)
            assert sum(found["completion_mask"]) == len(drawn) == sum(held.mask)
            compared += 1
            if compared == 3:
                break
        assert compared


def captured(client: httpx2.AsyncClient, asked: dict[str, Any]) -> dict[str, Any]:
    """What the trainer's own client makes of the answer."""
    extra = asked.pop("extra_body")
    names = ("model", "messages")
    sampling = {**{key: value for key, value in asked.items() if key not in names}, "extra_body": extra}
    body = {name: asked[name] for name in names}
    given = {**body, "base_url": f"{client.base_url}".rstrip("/") + "/v1", "sampling": sampling}
    done = subprocess.run([PYTHON, CAPTURE], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found
