"""Pictures of every page, in four forms: desktop and 380 pixels, light and dark. `make browser` opens all of them over
what real commands wrote, and with AGENT0_SHOTS=docs/guide/dashboard writes those of docs/guide/pages.md."""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from PIL import Image

from agent0.api.pages.rendering import router
from tests.api.served import stored, viewed
from tests.api.test_browser import BETWEEN, NARROW, SHOTS, WIDE, axe, chromium, opened
from tests.solved import BROKEN, REPAIR, laid, played

__all__ = ["chromium"]
PICTURES = {
    "runs": "/runs",
    "runs-none": "EMPTY/runs",
    "run": "/runs/{run}",
    "run-badly": "/runs/{short}",
    "past": "/runs/{run}?at={moment}",
    "iteration": "/runs/{run}/iterations/1",
    "task": "/runs/{run}/tasks/{task}",
    "attempt": "/runs/{run}/trajectories/{attempt}",
    "attempt-compact": "/runs/{long}/trajectories/{steps}?view=compact#conversation",
    "attempt-timeline": "/runs/{run}/trajectories/{attempt}?view=timeline#conversation",
    "attempt-raw": "/runs/{run}/trajectories/{attempt}?view=raw#conversation",
    "tokens": "/runs/{run}/trajectories/{attempt}?shade=push#tokens",
    "attempt-saved": "/runs/{run}/trajectories/{attempt}.html",
    "files": "/runs/{long}/trajectories/{steps}/files/{call}",
    "evaluation": "/runs/{run}/evaluations/validation",
    "curriculum": "/runs/{run}/curriculum",
    "rewards": "/runs/{run}/rewards?of={attempt}",
    "report": "FILE",
    "search": "/search?q=print&kind=turn",
    "chart": "/compare?tag=sweep&y=curve/validation&y=training/student/loss&smooth=0.8",
    "compare-checkpoints": "/compare?left={run}/base&right={run}/student-1",
    "compare-attempts": "/compare?left={run}/{attempt}&right={run}/{other}",
    "models": "/models",
    "model": "/models/{run}/student-1",
    "model-calls": "/models/calls",
    "experiments": "/experiments",
    "experiment": "/experiments/{experiment}",
    "benchmarks": "/benchmarks",
    "benchmark": "/benchmarks/{benchmark}",
    "calibration": "/calibration",
    "router": "/router",
    "submit": "/submit",
    "submission": "/tasks/{submission}",
    "solution": "/tasks/{solution}",
    "chat": "/chat?model={run}/student-1",
    "event": "/events/{event}",
    "config": "/config",
    "admin": "/admin",
    "prune": "/admin/prune",
    "login": "/login",
    "nothing": "/nothing",
}
"""Pages by the names of their pictures. EMPTY: of a data folder without a run; FILE: what `agent0 report` writes."""
WITHOUT = {"/": "leads to the list of runs", "/static/{name}": "style and script"}
"""Routes of the pages that have no picture, and why."""
FOLDER = Path(__file__).parents[2] / "docs" / "guide" / "dashboard"
MOST_BYTES, MOST_OF_ALL = 120_000, 3_000_000
HIGH, LOW, GAP, SCALE = 1300, 420, 16, 0.62
"""Pixels of a page that a picture shows at most and at least, between two forms, and how large they are drawn."""
FROM = "name => scrollTo(0, document.getElementById(name).getBoundingClientRect().top + scrollY - 24)"
PATIENT_MS = 180_000
SMALL = ("run.iterations=3", "run.tasks=8", "run.evaluation.validation=30", "run.evaluation.test=0")
SHORT = ("run.iterations=3", "run.tasks=16", "run.evaluation.validation=60", "run.evaluation.test=60")
ONCE = ("run.iterations=1", "run.tasks=4", "run.evaluation.validation=6", "run.evaluation.test=0")
CHECK = "python -c 'from sums import total; assert total([1, 2]) == 3'"
QUESTIONS = """{"id": "a", "question": "What is 12 * 12?", "answer": "144"}
{"id": "b", "question": "What is 7 + 8?", "answer": "15"}
"""


def test_every_page_has_a_picture() -> None:
    """Or is named as one without; and what the guide shows is there, small, and nothing else."""
    get = [route for route in router.routes if isinstance(route, APIRoute) and "GET" in route.methods]
    pages = [route for route in get if not route.path.endswith(".json")]
    paths = [re.sub(r"\?.*|#.*|EMPTY|[{}]", "", path) for path in PICTURES.values()]
    pictured = {next((route.path for route in pages if route.path_regex.match(path)), "") for path in paths}
    assert {route.path for route in pages} - pictured == WITHOUT.keys()
    guide = (FOLDER.parent / "pages.md").read_text()
    assert re.findall(r"\(dashboard/([a-z-]+)\.webp\)", guide) == [*PICTURES]
    sizes = {file.stem: file.stat().st_size for file in FOLDER.iterdir() if file.suffix == ".webp"}
    assert sizes.keys() == PICTURES.keys() and {file.suffix for file in FOLDER.iterdir()} == {".webp"}
    assert max(sizes.values()) <= MOST_BYTES and sum(sizes.values()) <= MOST_OF_ALL


def command(home: Path, *words: str) -> None:
    """What `agent0` with ``words`` does in the data folder ``home``."""
    program = str(Path(sys.executable).with_name("agent0"))
    told = subprocess.run(
        [program, *words], env={**os.environ, "AGENT0_HOME": str(home)}, cwd=home, capture_output=True, text=True
    )
    assert told.returncode == 0, (words, told.stdout, told.stderr)


def started(home: Path, profile: str, name: str, *settings: str) -> None:
    command(home, "run", "start", "--profile", profile, "--name", name, *(p for s in settings for p in ("--set", s)))


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data folder in which real commands wrote something for every page."""
    with tempfile.TemporaryDirectory(prefix="agent0-") as folder:
        made = Path(folder)
        (made / "mine.jsonl").write_text(QUESTIONS)
        started(made, "scripted", "too-short", "run.student.max_tokens=8")
        started(made, "long", "long", *ONCE)
        for seed in (1, 2):
            started(made, "tiny", f"rate-{seed}", *SMALL, f"run.seed={seed}", f"run.training.student.lr={seed}e-3")
            command(made, "run", "tag", "LAST", "sweep")
        started(made, "tiny", "tiny", *SHORT)
        command(made, "run", "tag", "LAST", "sweep", "keep")
        command(made, "run", "note", "LAST", "The one to go on with.")
        command(made, "experiment", "rescore", "LAST", "--rewards", "paper", "--name", "paper", "--commit")
        command(made, "bench", "run", "mine.jsonl", "--provider", "tiny")
        command(made, "calibrate", "--provider", "tiny", "--items", "40", "--samples", "1")
        command(made, "router", "budget", "set", "day", "--cap", "5")
        laid(made / "repo", BROKEN)
        command(made, "solve", "fix", "repo", "--check", CHECK, *played(made, *REPAIR))
        command(made, "report", "LAST", "--out", "report.html")
        yield made


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    """`agent0 up` of it, so that pages have their forms."""
    program = [str(Path(sys.executable).with_name("agent0")), "up", "--port", "0", "--profile", "tiny"]
    own = {**os.environ, "AGENT0_HOME": str(home), "AGENT0_SANDBOX__WORKERS": "1"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=own, cwd=home) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with viewed(stored(tmp_path_factory.mktemp("none"), [])) as held:
        yield held


@pytest.fixture(scope="module")
def names(chromium: Any, address: str) -> Mapping[str, str]:
    """What stands in the braces of ``PICTURES``."""
    page, _, _ = opened(chromium)

    def rows(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = page.request.get(address + path).json()["data"]
        return found

    page.set_default_timeout(PATIENT_MS)
    page.goto(f"{address}/submit")
    page.fill("textarea[name=question]", "What is 6 * 7?")
    page.fill("input[name=expected]", "42")
    page.click("form.ask button")
    page.wait_for_url("**/tasks/submission-*")
    page.locator("main >> text=/expected 42/").wait_for()
    runs = {row["name"]: row["run"] for row in rows("/v1/runs")}
    run, long = runs["tiny"], runs["long"]
    attempts = rows(f"/v1/runs/{run}/trajectories?limit=1000")
    details = (
        page.request.get(f"{address}/runs/{run}/trajectories/{row['attempt']}.json").json()
        for row in attempts
        if row["tool_calls"] and row["correct"] == 0
    )
    found = next(one for one in details if one["tokens"]["trained"])
    attempt, siblings = found["attempt"], found["siblings"]
    steps = max(rows(f"/v1/runs/{long}/trajectories?limit=1000"), key=lambda row: row["tool_calls"] or 0)
    events = rows(f"/v1/events?run={run}&type=ResultVerified&limit=1000")
    trained = rows(f"/v1/events?run={run}&type=CheckpointTrained")
    scored = page.request.get(f"{address}/benchmarks.json").json()["runs"]
    return {
        **{"run": run, "short": runs["too-short"], "long": long, "task": attempt["task"]},
        **{"attempt": attempt["attempt"], "other": next(one for one in siblings if one != attempt["attempt"])},
        **{"steps": steps["attempt"], "call": str(min(3, steps["tool_calls"]))},
        **{"event": str(events[0]["seq"]), "moment": str(trained[0]["seq"])},
        "submission": page.url.rpartition("/")[2],
        "solution": next(row["submission"] for row in rows("/v1/tasks") if row["domain"] == "solving"),
        "experiment": page.request.get(f"{address}/experiments.json").json()["experiments"][0]["experiment"],
        "benchmark": next(row["run"] for row in scored if row["run"].startswith("bench-")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_page_in_four_forms(
    chromium: Any, home: Path, address: str, empty: str, names: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    """None scrolls sideways, at 500 pixels neither; nothing is asked of others; contrast in the dark."""
    page, asked, wrong = opened(chromium, viewport=WIDE)
    place = PICTURES[name].format(**names)
    where = f"{empty}{place.removeprefix('EMPTY')}" if place.startswith("EMPTY") else address + place
    if place.endswith(".html"):  # a browser would save it
        (tmp_path / "saved.html").write_bytes(page.request.get(where).body())
        where = (tmp_path / "saved.html").as_uri()
    page.goto((home / "report.html").as_uri() if place == "FILE" else where)
    forms = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for size in (WIDE, NARROW):
            forms.append(shot(page, size["width"], place.partition("#")[2]))
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], size
    assert axe(page) == []
    page.set_viewport_size(BETWEEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= BETWEEN["width"]
    assert [one for one in asked if not one.startswith((address, empty, "data:", "file:"))] == []
    assert [one for one in wrong if "status of 404" not in one] == []
    taken = together(forms)
    assert len(taken) <= MOST_BYTES
    if SHOTS.name:
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / f"{name}.webp").write_bytes(taken)


def shot(page: Any, width: int, anchor: str) -> Image.Image:
    """The page from its beginning, or from the element ``anchor`` on."""
    page.set_viewport_size({"width": width, "height": HIGH})
    if anchor:
        page.evaluate(FROM, anchor)
    height = min(HIGH, max(LOW, round(page.evaluate("document.body.getBoundingClientRect().bottom"))))
    taken = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height})
    return Image.open(io.BytesIO(taken)).convert("RGB")


def together(forms: list[Image.Image]) -> bytes:
    """Four forms in one picture, light above dark, as WebP that is as good as its size allows."""
    heights = [max(form.height for form in forms[n : n + 2]) for n in (0, 2)]
    whole = Image.new("RGB", (sum(form.width for form in forms[:2]) + GAP, sum(heights) + GAP), (128, 134, 142))
    for n, form in enumerate(forms):
        whole.paste(form, (n % 2 * (forms[0].width + GAP), n // 2 * (heights[0] + GAP)))
    drawn = whole.resize((round(whole.width * SCALE), round(whole.height * SCALE)), Image.Resampling.LANCZOS)
    for quality in range(70, 0, -10):
        held = io.BytesIO()
        drawn.save(held, "WEBP", quality=quality, method=6)
        if held.tell() < MOST_BYTES * 0.8:
            break
    return held.getvalue()


@pytest.mark.slow
def test_a_report_does_all_of_it_without_a_network(chromium: Any, home: Path) -> None:
    """Its search opens what it leads to; attempts open, charts are there, headings are led to."""
    page, asked, wrong = opened(chromium, viewport=NARROW, offline=True)
    page.goto((home / "report.html").as_uri())
    page.fill("[data-search] input", "print")
    page.locator("[data-search] li button >> nth=0").click()
    assert page.locator(".seen").is_visible() and page.locator("[data-search] mark").count() > 0
    page.fill("[data-search] input", "nowhere in this file")
    page.locator("[data-count] >> text=0 places").wait_for()
    page.locator("details.lean > summary >> nth=0").click()
    assert page.locator("details.lean[open] .attempt >> nth=0").is_visible()
    assert page.locator("figure svg").count() > 5
    page.locator("nav.contents a >> text=Training, step by step").click()
    assert page.url.endswith("#training-step-by-step")
    assert wrong == [] and [one for one in asked if not one.startswith(("file:", "data:"))] == []
