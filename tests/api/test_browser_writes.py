"""What is started by clicks, in Chromium over `agent0 up`. `make browser` runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_browser import NARROW, WIDE, axe, chromium, opened
from tests.wheels import wheel_of

pytestmark = pytest.mark.slow
__all__ = ["chromium"]
SMALL = "run.iterations=1 run.tasks=6 run.attempts=4 run.evaluation.validation=3 run.evaluation.test=0"
PATIENT_MS = 120_000
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an installation from the wheel, in an environment of its own that finds what it needs here."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    own = place / "venv" / "bin" / "python"
    wheel = wheel_of(place)
    subprocess.run(
        [own, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    [site] = (place / "venv" / "lib").glob("python3*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    said = subprocess.run(
        [own, "-c", "import agent0; print(agent0.__file__)"], cwd=place, capture_output=True, text=True
    )
    assert said.stdout.startswith(str(site)), said
    return place / "venv" / "bin" / "agent0"


@pytest.fixture
def address(installed: Path, tmp_path: Path) -> Iterator[str]:
    command = [str(installed), "up", "--port", "0", "--profile", "scripted"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where the log's server lies
    own = {**os.environ, "PATH": path, "AGENT0_HOME": str(tmp_path), "AGENT0_SANDBOX__WORKERS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own, cwd=tmp_path) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def test_a_newcomers_path_by_clicks(chromium: Any, address: str) -> None:
    """Installed from the wheel, `up`; a run is started, a point of its curve opened, a group read, the run forked
    there, a task submitted, a checkpoint talked to and rolled back."""
    page, asked, wrong = opened(chromium, viewport=WIDE)
    page.set_default_timeout(PATIENT_MS)
    page.goto(f"{address}/runs")
    page.fill("input[name=set]", SMALL)
    page.click("form.start button")
    run = finished(page)

    page.reload()
    page.click("figure a[href*='iterations/0'] circle.point, figure a[href*='iterations/0'] circle.refused")
    page.wait_for_url("**/iterations/0")
    page.click("main td a[href*='trajectories/t0-'] >> nth=0")
    page.click("nav.crumbs a[href*='tasks/t0-']")
    assert page.locator("table.group thead a").count() == 4
    page.goto(f"{address}/runs/{run}/iterations/0")
    page.fill("form.start input[name=set]", "run.seed=7")
    page.click("form.start button")
    forked = finished(page)
    assert forked != run and page.locator(f"main a[href='/runs/{run}']").count() == 1

    submits(page, address)
    talks(page, f"{address}/chat")
    asks_both(page, address, run)
    rebuilds(page, address)
    page.goto(f"{address}/models/{run}/student-0")
    page.select_option("select[name=to]", "base")
    page.click("text=Roll back")
    page.wait_for_url(f"**/runs/{run}")
    page.locator("ol.feed li >> text=CheckpointRolledBack").wait_for()
    assert wrong == [] and [one for one in asked if not one.startswith((address, "data:"))] == []


def finished(page: Any) -> str:
    """The run whose page comes next, once it is over."""
    page.wait_for_url(re.compile(r"/runs/[a-z0-9-]+$"))
    page.locator("ol.feed li >> text=RunFinished").wait_for()
    return str(page.url.rpartition("/")[2])


def submits(page: Any, address: str) -> None:
    page.goto(f"{address}/submit")
    page.fill("textarea[name=question]", "What is 6 * 7?")
    page.fill("input[name=expected]", "42")
    page.click("form.ask button")
    page.wait_for_url("**/tasks/submission-*")
    page.locator("main >> text=/expected 42/").wait_for()  # by itself, when it is judged
    assert page.locator("h2 >> text=Verdicts").count() == 1


def asks_both(page: Any, address: str, run: str) -> None:
    """From the models' page: two students are chosen, asked one task, and read side by side."""
    page.goto(f"{address}/compare?left={run}/base&right={run}/student-0")
    page.fill("textarea[name=question]", "What is 8 * 8?")
    page.click("text=Ask both >> nth=-1")
    page.wait_for_url("**/compare?left=submission-*")
    page.locator("table.group thead >> text=/answer/ >> nth=0").wait_for()  # by itself, when both are judged
    page.wait_for_function("() => document.querySelectorAll('[data-wait]').length === 0")
    assert page.locator("table.group thead a").count() == 2 and page.locator("table.group tbody tr").count() >= 1


def rebuilds(page: Any, address: str) -> None:
    page.goto(f"{address}/admin")
    with page.expect_navigation():
        page.click("text=Rebuild the tables")
    while page.locator("main >> text=the old ones serve").count():
        page.click("text=Look again")
    assert page.locator("main >> text=/They were rebuilt up to event/").count() == 1


def talks(page: Any, place: str) -> None:
    page.goto(place)
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


@pytest.mark.parametrize("scripts", [True, False])
def test_a_run_is_started_from_the_settings(chromium: Any, address: str, scripts: bool) -> None:
    """Narrow and in the dark, with scripts and without; every field has its label."""
    page, _, wrong = opened(chromium, viewport=NARROW, color_scheme="dark", java_script_enabled=scripts)
    page.set_default_timeout(PATIENT_MS)
    page.goto(f"{address}/config?profile=scripted")
    for part in page.locator("details").all():
        if part.get_attribute("open") is None:
            part.locator("summary").click()
    if scripts:
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert axe(page) == []
    for pair in SMALL.split():
        key, _, value = pair.partition("=")
        page.fill(f"[name='{key}']", value)
    page.select_option("[name='run.evaluation.gate']", "open")
    page.fill("input[name=name]", "by hand")
    page.click("text=Start a run with these")
    page.wait_for_url(re.compile(r"/runs/by-hand-[a-z0-9]+$"))
    assert wrong == []
    page.goto(page.url + ".json")
    config = json.loads(page.inner_text("body"))["run"]["config"]
    assert (config["iterations"], config["evaluation"]["gate"]) == (1, "open")
