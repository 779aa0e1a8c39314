"""What is started by clicks, in Chromium over `agent0 up`: a run, a task, a chat. `make browser` runs it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_browser import WIDE, chromium, opened

pytestmark = pytest.mark.slow
__all__ = ["chromium"]
SMALL = "run.iterations=1 run.tasks=6 run.attempts=4 run.evaluation.validation=3 run.evaluation.test=0"
PATIENT_MS = 120_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "agent0", "up", "--port", "0", "--profile", "scripted"]
    own = {**os.environ, "AGENT0_HOME": str(tmp_path), "AGENT0_SANDBOX__WORKERS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def test_a_run_a_task_and_a_chat_by_clicks(chromium: Any, address: str) -> None:
    page, asked, wrong = opened(chromium, viewport=WIDE)
    page.set_default_timeout(PATIENT_MS)
    page.goto(f"{address}/runs")
    page.fill("input[name=set]", SMALL)
    page.click("form.start button")
    page.wait_for_url("**/runs/*")
    page.locator("ol.feed li >> text=RunFinished").wait_for()

    page.goto(f"{address}/submit")
    page.fill("textarea[name=question]", "What is 6 * 7?")
    page.fill("input[name=expected]", "42")
    page.click("form.ask button")
    page.wait_for_url("**/tasks/submission-*")
    page.locator("main >> text=/expected 42/").wait_for()  # by itself, when it is judged
    assert page.locator("h2 >> text=Verdicts").count() == 1

    page.goto(f"{address}/chat")
    for number, said in enumerate(("What is 1 + 1?", "And then?"), 1):
        page.fill("textarea[name=message]", said)
        page.click("form.ask button")
        page.wait_for_function(
            "n => document.querySelectorAll('#said .assistant pre').length === n"
            " && JSON.parse(document.querySelector('[name=said]').value || '[]').length === 2 * n",
            arg=number,
        )
    turns = page.locator("#said .turn pre").all_inner_texts()
    assert [turns[0], turns[2]] == ["What is 1 + 1?", "And then?"] and all(turns[1::2])
    assert wrong == [] and [one for one in asked if not one.startswith((address, "data:"))] == []
