"""Tables that stay behind the log are told on every page; a moment's delay is not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from agent0.api.context import LOOK_S, ApiContext
from agent0.api.server import look
from agent0.errors import DependencyError
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run

STORY = whole_run(iterations=1)


class Ends:
    """A log of which only the end is asked."""

    def __init__(self, ends: Iterator[int | DependencyError]) -> None:
        self.ends = ends

    async def last_seq(self) -> int:
        found = next(self.ends)
        if isinstance(found, DependencyError):
            raise found
        return found


async def test_pages_say_how_far_they_are_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("agent0.api.context.monotonic", lambda: clock[0])
    client = seeing(stored(tmp_path, STORY[:40]))
    context: ApiContext = cast(Any, client.app).state.context
    log: Any = Ends(iter([100, 100, 120, DependencyError("log"), 120, 120]))
    told, before = [], 0
    for _ in range(6):
        clock[0] += 2 * LOOK_S
        before = await look(context, log, before)
        told.append((context.behind, _says(client)))
        if before == 120 and context.behind == 60:
            stored(tmp_path, STORY[:110])
    assert [behind for behind, _ in told] == [0, 60, 60, 60, 0, 10]
    assert all((f"{behind} events behind" in text) == bool(behind) for behind, text in told)
    assert "events behind" not in client.get("/runs/r1?at=30").text


def _says(client: TestClient) -> str:
    return client.get("/runs/r1").text
