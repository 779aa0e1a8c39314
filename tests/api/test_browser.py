"""The pages in Chromium, headless: every page loads and asks nobody else, no page scrolls sideways at 380 pixels, text
has contrast in the dark, what is live is live. `make browser` runs them; they are skipped where there is no browser."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import everything
from tests.api.served import stored, viewed
from tests.api.test_pages import PAGES
from tests.story import whole_run
from tests.test_report import poisoned

pytestmark = pytest.mark.slow
SEEN = (*PAGES, "/runs/r1?at=150", "/compare", "/chat", "/login", "/nothing")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(os.environ.pop("AGENT0_AXE", Path(__file__).parents[2] / "build" / "axe.min.js"))
"""axe-core, which `make browser` fetches; without it contrast and labels are not looked at."""
SHOTS = Path(os.environ.pop("AGENT0_SHOTS", ""))  # taken out: what begins so is a setting to a server
WIDE, BETWEEN, NARROW = {"width": 1100, "height": 900}, {"width": 500, "height": 800}, {"width": 380, "height": 800}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make browser")
    if BROWSER is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["plain", "hostile"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    told = everything()
    story = [poisoned(one) for one in told] if request.param == "hostile" else told
    with viewed(stored(tmp_path_factory.mktemp(request.param), story)) as held:
        yield held


def opened(chromium: Any, **options: Any) -> tuple[Any, list[str], list[str]]:
    """A page, the addresses that it asks, and what goes wrong on it."""
    context = chromium.new_context(**options)
    page, asked, wrong = context.new_page(), list[str](), list[str]()
    page.on("request", lambda one: asked.append(one.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    return page, asked, wrong


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("light", BETWEEN), ("dark", NARROW)])
def test_every_page_stands(chromium: Any, address: str, scheme: str, size: dict[str, int]) -> None:
    page, asked, wrong = opened(chromium, color_scheme=scheme, viewport=size)
    found: dict[str, Any] = {}
    for path in SEEN:
        page.goto(address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
        found[path] = axe(page)
    assert {path: broken for path, broken in found.items() if broken} == {}
    assert [one for one in asked if not one.startswith((address, "data:"))] == []
    assert [one for one in wrong if "status of 404" not in one] == []  # of /nothing


def axe(page: Any) -> list[Any]:
    """What axe-core finds, of WCAG A and AA; nothing where it is not there."""
    if not AXE.is_file():
        return []
    session = page.context.new_cdp_session(page)
    run = "axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])))"
    given = {"expression": f"{AXE.read_text()};{run}", "awaitPromise": True}
    found: list[Any] = json.loads(session.send("Runtime.evaluate", given)["result"]["value"])
    return found


def test_a_point_of_the_curve_opens_its_rollouts(chromium: Any, address: str) -> None:
    """Curve, iteration, histogram, trajectory, group: by clicks alone."""
    page, _, wrong = opened(chromium, viewport=WIDE)
    page.goto(f"{address}/runs/r1")
    page.click("figure a[href*='iterations/1'] circle.point, figure a[href*='iterations/1'] circle.refused")
    page.wait_for_url("**/iterations/1")
    page.click("figure a rect >> nth=0")
    page.wait_for_url("**low=*")
    page.click("main td a[href*='trajectories/t1-'] >> nth=0")
    page.click("nav.crumbs a[href*='tasks/t1-']")
    assert page.locator("table.group thead a").count() == 3 and wrong == []


def test_without_scripts_everything_is_there(chromium: Any, address: str) -> None:
    page, _, _ = opened(chromium, viewport=WIDE, java_script_enabled=False)
    page.goto(f"{address}/runs/r1")
    assert page.locator("ol.feed li").count() > 5 and page.locator("figure a").count() == 12
    page.fill("input[name=at]", "150")
    page.click("form.moment button")
    assert "at=150" in page.url and "As it was behind" in page.inner_text("main")


def test_a_chart_tells_its_values_where_one_points_and_by_keys(chromium: Any, address: str) -> None:
    page, asked, wrong = opened(chromium, viewport=WIDE)
    page.goto(f"{address}/compare?run=r1&run=r2")
    twin = page.request.get(f"{address}/compare.json?run=r1&run=r2").json()["drawn"][0]["lines"][0]
    box = page.locator("figure.runs .plot > svg").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    page.locator(".tip >> text=0 iterations done").wait_for()
    page.mouse.move(0, 0)
    assert page.locator(".tip").count() == 0
    page.focus("figure.runs")
    for n, value in enumerate(twin["y"]):
        page.keyboard.press("ArrowRight")
        page.locator(f".tip >> text={n} iterations done").wait_for()
        assert f"{100 * value:.1f}%" in page.inner_text(".tip .near")
    assert wrong == [] and len([one for one in asked if ".json" in one]) == 1, "the values are asked for once"


def test_ticked_runs_are_charted_without_scripts(chromium: Any, address: str) -> None:
    page, _, _ = opened(chromium, viewport=WIDE, java_script_enabled=False)
    page.goto(f"{address}/runs")
    page.check("input[name=run][value=r1]")
    page.click("text=Chart the ticked")
    assert page.locator("figure.runs g[data-line]").count() == 1
    page.select_option("select[name=x]", "time")
    page.locator("summary >> text=More runs").click()
    page.check("input[name=run][value=r2]")
    page.click("text=Draw")
    assert page.locator("figure.runs g[data-line]").count() == 2 and "x=time" in page.url


def test_ticks_stay_while_the_list_follows(chromium: Any, tmp_path: Path) -> None:
    story = whole_run(iterations=1)
    stored(tmp_path, story[:40])
    with viewed(tmp_path) as address:
        page, _, wrong = opened(chromium, viewport=WIDE)
        page.goto(f"{address}/runs")
        page.check("input[name=run]")
        stored(tmp_path, story)
        page.locator("main td >> text=finished").wait_for()
        assert page.is_checked("input[name=run]") and wrong == []


def test_keys_move_through_time(chromium: Any, address: str) -> None:
    page, _, _ = opened(chromium, viewport=WIDE)
    page.goto(f"{address}/runs/r1?at=150")
    page.keyboard.press(".")
    page.wait_for_url("**at=151")
    page.keyboard.press(",")
    page.wait_for_url("**at=150")


def test_what_happens_shows_at_once(chromium: Any, tmp_path: Path) -> None:
    story = [poisoned(one) for one in whole_run(iterations=1)]
    stored(tmp_path, story[:40])
    with viewed(tmp_path) as address:
        page, _, wrong = opened(chromium, viewport=WIDE)
        page.goto(f"{address}/runs/r1")
        stored(tmp_path, story)
        page.locator(f"ol.feed li:first-child >> text=/^{len(story)} /").wait_for()
        page.locator("[data-live=head] >> text=/ finished /").wait_for()
        assert wrong == []
        newest = page.locator("ol.feed li:first-child a")
        assert newest.get_attribute("href") == f"/events/{len(story)}"
        assert page.locator("ol.feed script, ol.feed img").count() == 0


SEEN_AGAIN = """hidden => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_tab_in_the_background_holds_no_stream(chromium: Any, tmp_path: Path) -> None:
    """Six tabs would take all connections that a browser allows a server. Seen again, it goes on where it was."""
    story = whole_run(iterations=1)
    stored(tmp_path, story[:40])
    with viewed(tmp_path) as address:
        page, asked, wrong = opened(chromium, viewport=WIDE)
        page.goto(f"{address}/runs/r1")
        page.evaluate(SEEN_AGAIN, True)
        stored(tmp_path, story[:60])
        page.wait_for_timeout(1_000)
        assert page.locator("ol.feed li:first-child >> text=/^40 /").count() == 1
        page.evaluate(SEEN_AGAIN, False)
        page.locator("ol.feed li:first-child >> text=/^60 /").wait_for()
        page.evaluate(SEEN_AGAIN, True)
        stored(tmp_path, story[:70])
        page.evaluate(SEEN_AGAIN, False)
        page.locator("ol.feed li:first-child >> text=/^70 /").wait_for()
        shown = [int(line.split()[0]) for line in page.locator("ol.feed li").all_inner_texts()]
        assert shown == [*range(70, 70 - len(shown), -1)] and wrong == []
        assert [one.rpartition("after=")[2] for one in asked if "/v1/events" in one] == ["40", "40", "60"]
