"""A page that is only watched, in Chromium over a real `agent0 up`: it follows a run from its start to its end, and a
form that is refused keeps what was typed. `make browser` runs it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.test_browser import SHOTS, WIDE, chromium, opened

pytestmark = pytest.mark.slow
__all__ = ["chromium"]
PATIENT_MS = 60_000
SMALL = "run.iterations=3 run.tasks=6 run.attempts=4 run.evaluation.validation=6 run.evaluation.test=6"
POINTS = "[data-live=curve] figure:first-of-type :is(circle.point, circle.refused)"
RUNS = "[data-live=runs] tbody tr:has(a:text('watched')) td"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("live")
    command = [sys.executable, "-m", "agent0", "up", "--port", "0", "--profile", "scripted"]
    own = {**os.environ, "AGENT0_HOME": str(home), "AGENT0_SANDBOX__WORKERS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def started(page: Any, address: str, name: str, settings: str) -> str:
    """The id of a run that the form of page Runs starts."""
    page.goto(f"{address}/runs")
    page.fill("form.start input[name=name]", name)
    page.fill("form.start input[name=set]", settings)
    page.click("form.start button")
    page.wait_for_url(re.compile(rf"/runs/{name}-[a-z0-9-]+$"))
    return str(page.url.rpartition("/")[2])


def pictured(page: Any, name: str) -> None:
    if SHOTS.name:
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / f"{name}.jpg").write_bytes(page.screenshot(type="jpeg", quality=60, full_page=True))


def test_pages_follow_a_run_from_its_start_to_its_end(chromium: Any, address: str) -> None:
    """Neither page is loaded again: head, tiles, curve, buttons, checkpoints and the list of runs follow."""
    page, _, wrong = opened(chromium, viewport=WIDE)
    runs, _, _ = opened(chromium, viewport=WIDE)
    for one in (page, runs):
        one.set_default_timeout(PATIENT_MS)
    runs.goto(f"{address}/runs?column=status&column=events")
    assert runs.locator(RUNS).count() == 0
    for one in (page, runs):  # a mark that a page which was loaded again would not have
        one.evaluate("window.watched = true")
    run = started(page, address, "watched", SMALL)
    page.evaluate("window.watched = true")
    head, words = page.locator("[data-live=head]"), page.locator("[data-live=words] > form button")
    runs.locator(f"{RUNS} >> text=/^running$/").wait_for()
    pictured(page, "live-start")
    assert "running" in head.inner_text() and words.all_inner_texts() == ["Pause", "Cancel"]
    page.locator(POINTS).nth(1).wait_for()
    pictured(page, "live-middle")
    pictured(runs, "live-runs")
    page.locator("[data-live=head] >> text=/ finished /").wait_for()
    runs.locator(f"{RUNS} >> text=/^finished$/").wait_for()
    pictured(page, "live-end")
    page.wait_for_function("() => !document.querySelector('[data-live=words] > form button')")
    record = page.context.request.get(f"{address}/v1/runs/{run}").json()
    page.locator(f"[data-live=tiles] >> text='{record['events']}'").wait_for()
    shown = page.locator("[data-live=tiles]").inner_text()
    assert str(record["tasks"]) in shown and record["tasks"] > 0 and str(record["attempts"]) in shown
    assert page.locator(POINTS).count() == 4
    assert page.locator("[data-live=checkpoints] tbody tr").count() >= 2
    assert page.locator("[data-live=scores] tbody tr").count() >= 2
    assert str(record["events"]) in runs.locator(RUNS).last.inner_text().replace(",", "")
    assert all(one.evaluate("window.watched") for one in (page, runs)) and wrong == []
    assert page.input_value("form.moment input[type=number]") == page.get_attribute("form.moment [max]", "max")


AS_FRESH = """async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const texts = (page) => [...page.querySelectorAll("main [data-live]")].map((part) => part.textContent);
    return JSON.stringify(texts(document)) === JSON.stringify(texts(fresh));
}"""
"""Whether every part that is to follow says what the page would say that was loaded now."""


def test_pages_beside_that_of_a_run_follow_it_too(chromium: Any, address: str) -> None:
    """Models, router, calibration and the state of the log, opened before the run; an iteration, a task, an evaluation
    and a checkpoint, opened while it goes on."""
    pages = {path: opened(chromium, viewport=WIDE) for path in ("/models", "/router", "/calibration", "/admin")}
    for path, (page, _, _) in pages.items():
        page.goto(address + path)
        page.evaluate("window.watched = true")
    main, _, _ = opened(chromium, viewport=WIDE)
    main.set_default_timeout(PATIENT_MS)
    run = started(main, address, "beside", f"{SMALL} run.iterations=6")
    main.locator("ol.feed >> text=/TaskProposed/ >> nth=0").wait_for()
    of_run = ("iterations/0", "tasks/t0-000", "curriculum", "rewards", "evaluations/validation")
    for path in (*(f"/runs/{run}/{name}" for name in of_run), f"/models/{run}/student-0"):
        if path.endswith("student-0"):
            main.locator("ol.feed >> text=/CheckpointTrained/ >> nth=0").wait_for()
        pages[path] = opened(chromium, viewport=WIDE)
        pages[path][0].goto(address + path)
        pages[path][0].evaluate("window.watched = true")
    main.locator("[data-live=head] >> text=/ finished /").wait_for()
    for path, (page, _, wrong) in pages.items():
        page.set_default_timeout(PATIENT_MS)
        page.wait_for_function(AS_FRESH, polling=500)
        pictured(page, f"live-{path.rpartition('/')[2]}")
        assert page.evaluate("window.watched") and wrong == [], path
    assert f"{run}/student-1" in pages["/models"][0].inner_text("main")
    assert "student-5-validation" in pages[f"/runs/{run}/evaluations/validation"][0].inner_text("main")


def test_buttons_follow_what_others_decide(chromium: Any, address: str) -> None:
    page, _, wrong = opened(chromium, viewport=WIDE)
    page.set_default_timeout(PATIENT_MS)
    run = started(page, address, "decided", "run.iterations=500")
    page.evaluate("window.watched = true")
    decide = page.context.request.post
    for word, shown in (("pause", ["Resume", "Cancel"]), ("resume", ["Pause", "Cancel"]), ("cancel", [])):
        assert decide(f"{address}/v1/runs/{run}/{word}", data=None if word == "resume" else {}).status == 202
        page.wait_for_function(
            "shown => JSON.stringify([...document.querySelectorAll('[data-live=words] > form button')]"
            ".map((one) => one.textContent)) === JSON.stringify(shown)",
            arg=shown,
        )
    assert "cancelled" in page.locator("[data-live=head]").inner_text()
    assert page.evaluate("window.watched") and wrong == []


UNFOLDED = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
TYPED = {
    "/runs": ("form.start", {"name": "kept", "set": "run.nothing=1 run.tasks=4"}),
    "/experiments": ("form[action$=ablation]", {"name": "kept", "setting": "run.nothing", "values": "1 2"}),
    "/submit": ("form.ask", {"question": " ", "expected": "kept"}),
    "/config": ("form[method=post]", {"run.student.tools": "nothing", "name": "kept"}),
}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("path", TYPED)
def test_a_form_that_is_refused_keeps_what_was_typed(chromium: Any, address: str, path: str, scripts: bool) -> None:
    page, _, _ = opened(chromium, viewport=WIDE, java_script_enabled=scripts)
    page.set_default_timeout(PATIENT_MS)
    if path in ("/experiments", "/submit"):
        started(page, address, "there", "run.iterations=1 run.tasks=2")
    page.goto(address + path)
    place, typed = TYPED[path]
    page.evaluate(UNFOLDED)
    for name, text in typed.items():
        page.fill(f"{place} [name='{name}']", text)
    page.click(f"{place} button")
    if scripts:
        page.locator(f"{place} [role=alert]").wait_for()
    else:
        page.locator("text=Send again").wait_for()
        page.evaluate(UNFOLDED)
        place = "form.ask"
    assert {name: page.input_value(f"{place} [name='{name}']") for name in typed} == typed
    assert page.locator("text=/nothing|question|unfit|does not fit/i").count() >= 1
