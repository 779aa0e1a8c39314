"""Pages of runs and benchmarks: contents, links that lead somewhere, no empty table, narrow and dark screens."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from agent0.assembly.tracking.measured import measured
from agent0.events.base import Recorded
from agent0.projections.evaluations import curve_with_shared
from agent0.report.answers import FEW
from agent0.report.benchmark_findings import bench_findings
from agent0.report.findings import findings
from agent0.report.html import rendering
from agent0.report.html.benchmark_page import bench_page
from agent0.report.html.run_page import page
from agent0.report.overview import overview
from agent0.report.targets import RunMeasures, target_table
from agent0.settings import RunConfig
from tests import test_forking
from tests.story import whole_run
from tests.test_bench_report import recorded, scored, started
from tests.test_report import NOWHERE, Reader, told

CSS = rendering.render("style.css.jinja")


@pytest.fixture(scope="module")
def story() -> list[Recorded]:
    return whole_run(iterations=2, tasks=4, attempts=2)


@pytest.fixture(scope="module")
def pages(story: list[Recorded]) -> list[str]:
    """A run's page at moments from its first event on, and those of a benchmark run with and without items."""
    made = []
    for end in (1, 2, len(story) // 8, len(story) // 3, len(story)):
        with closing(told(story[:end])) as db:
            made.append(page(db, NOWHERE, "r1"))
    for items in ([], [scored("tools", n, n < 3) for n in range(5)]):
        with closing(told(recorded([started(files={}, versions={}), *items]))) as db:
            made.append(bench_page(bench_findings(db, NOWHERE, "b1", {})))
    return made


def test_every_heading_is_in_the_contents_and_every_link_leads_somewhere(pages: list[str]) -> None:
    for text in pages:
        seen = Reader(re.sub("<svg.*?</svg>", "", text, flags=re.DOTALL))
        ids = [value for name, value in seen.attributes if name == "id"]
        assert len(ids) == len({*ids})
        assert {value[1:] for name, value in seen.attributes if name == "href"} <= {*ids}
        contents = text.partition('<nav class="contents">')[2].partition("</nav>")[0]
        assert re.findall('href="#([^"]+)"', contents) == re.findall('<h2 id="([^"]+)"', text) != []


def test_task_attempt_receipt_and_event_lead_to_each_other(pages: list[str], story: list[Recorded]) -> None:
    text = pages[4]
    seqs = {e.seq: e for e in story}
    attempt = re.search(r'<div id="(t\d+-\d+-a\d+)">(.*?)</details>', text, re.DOTALL)
    assert attempt
    name, inside = attempt.groups()
    task = name.rpartition("-a")[0]
    assert f'<a href="#{task}">' in inside
    receipt = re.search(r'Receipt: student of .*?<a href="#event-(\d+)">', inside, re.DOTALL)
    assert receipt and (seqs[int(receipt[1])].type, seqs[int(receipt[1])].attempt) == ("RewardAssigned", name)
    said = r"Attempts without a link are not on this page: <code>agent0 trajectory show (\S+) r1</code>"
    left_out = re.search(said, text)
    assert left_out and f'id="{left_out[1]}"' not in text
    of_task = text.partition(f'<div id="{task}">')[2].partition("</details>")[0]
    assert f'<a href="#{name}">' in of_task and f'id="event-{receipt[1]}"' in of_task
    shown = {int(seq) for seq in re.findall(r'id="event-(\d+)"', of_task)}
    assert shown == {e.seq for e in story if e.task == task}
    alarm = [e.seq for e in story if e.type == "AlarmRaised"][-1]
    assert f'<a href="#event-{alarm}">event {alarm}</a>' in text and f'<tr id="event-{alarm}">' in text


def test_no_table_is_empty_and_each_scrolls_by_itself(pages: list[str]) -> None:
    for text in pages:
        bodies = re.findall(r"<tbody>(.*?)</tbody>", text, re.DOTALL)
        assert all("<tr" in body for body in bodies)
        assert len(bodies) == text.count("<table") == len(re.findall(r'<div class="wide"[^>]*>\s*<table', text))
        assert not re.search(r"<h[23][^>]*>[^<]*</h[23]>\s*(?=<h2|<footer|</body>)", text), "a heading of nothing"


def test_nothing_of_a_page_is_wider_than_a_phone() -> None:
    """380 px less the padding of the page; what is wider scrolls in a box of its own."""
    assert re.search(r"\.wide { overflow-x: auto", CSS) and re.search(r"figure {[^}]*overflow-x: auto", CSS)
    assert "overflow-wrap: break-word" in CSS.partition("body {")[2].partition("}")[0]
    columns = re.findall(r"grid-template-columns: ([^;]+);", CSS)
    widths = [float(rem) * 16 for column in columns for rem in re.findall(r"minmax\((?:min\()?([\d.]+)rem", column)]
    assert widths and all(width <= 350 or "100%" in CSS for width in widths)
    assert not re.search(r"(?<!max-)(?<!min-)width: (?:[4-9]\d\d|\d{4,})px", CSS)


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> Iterator[dict[str, str]]:
    light, dark = re.findall(r"--paper: .*?}", CSS, re.DOTALL)
    for text in (light, dark):
        yield dict(re.findall(r"--(\w+): ([^;]+);", f"--{text.lstrip('-')}"))


def mixed(share: str, one: str, other: str) -> str:
    full = [[int((c if len(c) == 7 else "#ffffff")[at : at + 2], 16) for at in (1, 3, 5)] for c in (one, other)]
    part = float(share.rstrip("%")) / 100
    return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in zip(*full, strict=True))


def test_text_can_be_read_in_light_and_dark() -> None:
    for held in schemes():
        for name in ("ink", "quiet", "good", "bad", "validation"):
            assert contrast(held[name], held["paper"]) >= 4.5, name
            assert contrast(held[name], held["card"]) >= 4.4, name
        assert contrast(held["ink"], mixed(held["heat"], held["validation"], held["paper"])) >= 4.5
    assert "color: inherit" in CSS.partition(".heat small {")[2].partition("}")[0]


def test_a_target_that_rests_on_few_tasks_says_so(pages: list[str]) -> None:
    found = RunMeasures(tool_use=0.9, simple_s=1.0, counts={"tool_use": FEW - 1, "simple_s": FEW})
    rows = {row["target"]: row for row in target_table(found, RunConfig())}
    assert rows["tasks solved with a tool"]["rests_on"] == f"{FEW - 1} tasks (few)"
    assert rows["latency of simple tasks, p95 (s)"]["rests_on"] == f"{FEW} attempts"
    assert rows["humaneval, gain over the base"]["rests_on"] == rows["cost of an iteration ($)"]["rests_on"] == ""
    assert re.search(r"tasks solved with a tool</td>.*?<td>\d+ tasks \(few\)</td>", pages[4], re.DOTALL)


def test_a_page_of_a_fork_compares_with_what_its_parent_scored() -> None:
    for number in (2, test_forking.PLACES - 1):
        with closing(told([*test_forking.forked(test_forking.place(number))])) as db:
            curve = [point["iteration"] for point in curve_with_shared(db, "f1")]
            measures = [row["step"] - 1 for row in measured(db, "f1").rows() if row["curve/validation"] is not None]
            assert curve == measures == [-1, 0, 1, 2] and "run" not in curve_with_shared(db, "f1")[0]
            found, held = findings(db, NOWHERE, "f1"), overview(db, "f1")
            assert number > 2 or "Held-out test" in page(db, NOWHERE, "f1")
        assert [one["evaluation"] for one in found["test"]] == [one["evaluation"] for one in held["test"]]
        assert [iteration["iteration"] for iteration in found["iterations"]] == [-1, 0, 1, 2], (
            "validation, from the untrained on"
        )
        assert len(found["test"]) == 3 and sum(one["last_against_this"] is not None for one in found["test"]) == 2
