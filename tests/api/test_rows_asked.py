"""The page of a curriculum says how often each row of a file of questions was asked."""

import re
from collections import Counter
from pathlib import Path

from fastapi.testclient import TestClient

from agent0.events.base import Recorded
from agent0.events.tasks import TaskAccepted
from agent0.events.values import SourceRow
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run


def _with_row(recorded: Recorded, rows: dict[str, SourceRow]) -> Recorded:
    """``recorded``, its task a row of a file where it is an accepted one."""
    event = recorded.event
    if not isinstance(event, TaskAccepted):
        return recorded
    row = rows.setdefault(event.task, SourceRow(id=f"{len(rows) // 2}-a1b2", epoch=len(rows) % 2, answer="42"))
    task = event.proposal.model_copy(update={"row": row})
    return recorded.model_copy(update={"event": event.model_copy(update={"proposal": task})})


def test_each_row_stands_there_with_its_counts(tmp_path: Path, whole: TestClient) -> None:
    rows: dict[str, SourceRow] = {}
    page = seeing(stored(tmp_path, [_with_row(one, rows) for one in whole_run(iterations=3)])).get(
        "/runs/r1/curriculum"
    )
    asked = [row.id for row in rows.values()]
    lines = re.findall(r"<td[^>]*>(\d+-a1b2)</td>\s*<td.*?</td>\s*<td[^>]*>(\d+)</td>", page.text, re.S)
    assert lines == [(row, str(count)) for row, count in Counter(asked).items()] and {"2"} <= {n for _, n in lines}
    assert "Rows of the file" in page.text and "Rows of the file" not in whole.get("/runs/r1/curriculum").text
