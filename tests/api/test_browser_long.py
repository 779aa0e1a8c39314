"""A long attempt in Chromium: the parts of its views come as they are scrolled to, what is far leaves the document,
and all of it is there by keyboard alone. `make browser` runs it."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent0.infra.storage.artifacts import FileArtifacts
from benchmarks.server import LONG, TURNS, long_attempt
from tests.api.served import stored, viewed
from tests.api.test_browser import NARROW, WIDE, axe, chromium, opened

pytestmark = pytest.mark.slow
__all__ = ["chromium"]
END = "window.scrollTo(0, document.querySelector('[data-virtual]').getBoundingClientRect().bottom + scrollY - 300)"
MOST = 1600
"""Turns that may be in the document at once: some parts of 200."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("long")
    with viewed(stored(home, long_attempt(FileArtifacts(home)))) as held:
        yield held


@pytest.mark.parametrize("view", ["conversation", "compact", "raw", "timeline"])
def test_all_of_it_is_scrolled_to(chromium: Any, address: str, view: str) -> None:
    page, asked, wrong = opened(chromium, viewport=WIDE)
    page.goto(f"{address}{LONG}?view={view}")
    rows = "[data-part] tr:has(a)" if view == "timeline" else "[data-part] > [id^=turn-]"
    most = parts = 0
    while page.locator("[data-more] a").count():
        parts = page.locator("[data-part]").count()
        page.evaluate(END)
        page.wait_for_function("n => document.querySelectorAll('[data-part]').length > n", arg=parts)
        most = max(most, page.locator(rows).count())
    held = TURNS if view != "timeline" else TURNS // 2 + 4
    assert page.locator("[data-part]").count() == -(-held // 200) and most <= MOST
    page.evaluate("window.scrollTo(0, 0)")
    page.locator("#turn-1" if view != "timeline" else "[data-part] >> text=AttemptRequested").first.wait_for()
    page.wait_for_function(f"() => document.querySelectorAll('{rows}').length <= {MOST}")
    assert wrong == [] and len({one for one in asked if "turn=" in one}) == -(-held // 200) - 1


def test_a_part_is_a_page_without_scripts(chromium: Any, address: str) -> None:
    page, _, _ = opened(chromium, viewport=NARROW, java_script_enabled=False)
    page.goto(f"{address}{LONG}")
    page.click("text=Compact")
    page.click("[data-more] a")
    assert "view=compact" in page.url and page.locator("#turn-201").count() == 1
    page.click("#turn-202 summary")
    assert page.locator("#turn-202 pre").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_stand_narrow_and_in_the_dark(chromium: Any, address: str, scheme: str) -> None:
    page, _, wrong = opened(chromium, viewport=NARROW, color_scheme=scheme)
    for view in ("compact", "timeline", "raw"):
        page.goto(f"{address}{LONG}?view={view}&turn=2201")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], view
        assert axe(page) == [] and wrong == []


def test_by_keyboard_alone(chromium: Any, address: str) -> None:
    """The link to content, the views, a turn of the compact view."""
    page, _, wrong = opened(chromium, viewport=WIDE)
    page.goto(f"{address}{LONG}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    reach(page, "Compact")
    page.keyboard.press("Enter")
    page.wait_for_url("**view=compact*")
    reach(page, "assistant")
    page.keyboard.press("Enter")
    assert page.locator("details.turn[open]").count() == 1 and wrong == []


def reach(page: Any, words: str) -> None:
    """Press Tab until what has the focus says ``words``."""
    for _ in range(120):
        if words in page.evaluate(
            "document.activeElement.matches('a, summary') && document.activeElement.textContent || ''"
        ):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{words} is not reached")
