"""The pages: every link leads somewhere, each has its twin, no text becomes markup, nobody else is asked."""

import json
import re
from html import escape, unescape
from itertools import product
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from agent0.api.context import ApiContext
from agent0.api.pages.readings import students_of
from agent0.api.pages.rendering import FOLDER
from agent0.cli.system.docs_pages import cli_page
from agent0.events.checkpoints import TrainingRequested
from agent0.events.values import TrainingStep
from agent0.infra.training.progress import progress_file_name
from agent0.projections.checkpoints import list_checkpoints
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run
from tests.test_report import Reader

PAGES = (
    "/runs",
    "/runs/r1",
    "/runs/r1/iterations/0",
    "/runs/r1/tasks/t0-000",
    "/runs/r1/trajectories/t0-000-a0",
    "/runs/r1/trajectories/t0-000-a0?view=compact",
    "/runs/r1/trajectories/t0-000-a0?view=timeline",
    "/runs/r1/trajectories/t0-000-a0?view=raw",
    "/runs/r1/trajectories/t0-000-a0/files/0",
    "/runs/r1/evaluations/base-test",
    "/runs/r1/evaluations/validation?correct=true",
    "/runs/r1/trajectories/base-test-0",
    "/runs/r1/trajectories/base-test-0?view=timeline",
    "/runs/bench-1/evaluations/gsm8k",
    "/runs/bench-1/trajectories/gsm8k-tools-0-0",
    "/runs/r1/curriculum",
    "/runs/r1/rewards",
    "/runs/r1/rewards?of=t0-000-a0",
    "/search?q=print",
    "/search?q=wh*&run=r1&kind=task",
    "/models",
    "/models/calls",
    "/models/r1/student-1",
    "/runs?text=r&hidden=true&column=curve&column=seed",
    "/compare",
    "/compare?run=r1&run=r2&y=curve/validation&y=training/student/loss&y=iteration/solve_rate&x=time&smooth=0.9",
    "/compare?left=r1&right=r2",
    "/compare?left=r1/student-0&right=r1/student-1",
    "/compare?left=r1/t0-000-a0&right=r1/t0-000-a1",
    "/compare?left=r1/base-validation-0&right=r1/student-0-validation-0",
    "/compare?left=r1/student-0&right=r1/student-1&change=gained",
    "/compare?left=submission-00aa11&right=r1/t0-000-a1",
    "/calibration",
    "/benchmarks",
    "/benchmarks/bench-1",
    "/experiments",
    "/experiments/exp-bold",
    "/router",
    "/submit",
    "/tasks/submission-00aa11",
    "/tasks/submission-00aa22",
    "/events/40",
    "/config",
    "/admin",
)
MOST = 150
"""Pages that a walk along the links opens."""
HTML = {"Accept": "text/html"}


def links(text: str) -> set[str]:
    found = [value for name, value in Reader(text).attributes if name in ("href", "src")]
    return {one.partition("#")[0] for one in found if not one.startswith(("#", "data:"))}


def test_every_link_leads_somewhere(whole: TestClient) -> None:
    waiting, seen = ["/runs"], set[str]()
    while waiting and len(seen) < MOST:
        path = waiting.pop(0)
        seen.add(path)
        found = whole.get(path)
        assert found.status_code == 200, path
        if found.headers["content-type"].startswith("text/html"):
            ours = links(found.text)
            assert all(one.startswith("/") and not one.startswith("//") for one in ours), ours
            waiting += sorted(ours - seen - {*waiting})
    assert len(seen) > 60


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_a_twin(whole: TestClient, path: str) -> None:
    named = "?".join([f"{path.partition('?')[0]}.json", *path.split("?")[1:]])
    page, twin = whole.get(path), whole.get(named)
    assert page.status_code == twin.status_code == 200
    assert f'href="{escape(named)}"' in page.text and twin.headers["content-type"] == "application/json"
    assert isinstance(twin.json(), dict)


FIXED = ("/search", "/compare", "/events/", "/experiments/", "/config", "/models/calls", "/tasks/")
"""Pages of what does not change while they are read, or that say otherwise when it does."""


@pytest.mark.parametrize(
    "path", [path for path in PAGES if not path.startswith(FIXED) and "/trajectories/" not in path]
)
def test_a_page_of_what_goes_on_follows_it_and_one_of_the_past_does_not(whole: TestClient, path: str) -> None:
    def follows(of: str) -> bool:
        names = {name for name, _ in Reader(whole.get(of).text).attributes}
        return "data-live" in names and bool(names & {"data-poll", "data-follow", "data-stream"})

    assert follows(path) and not follows(f"{path}{'&' if '?' in path else '?'}at=700")


@pytest.mark.parametrize("path", PAGES)
def test_no_text_becomes_markup(whole: TestClient, hostile: TestClient, path: str) -> None:
    plain, seen = Reader(whole.get(path).text), Reader(hostile.get(path).text)
    assert (
        set(seen.tags) <= set(plain.tags) | {"pre", "table", "ul", "li", "details", "summary"}
        and seen.tags.count("script") == 1
    )
    assert not any(name.startswith("on") or name == "style" for name, _ in seen.attributes)
    assert not set("\x00\x1b\u202e") & set("".join(seen.words))
    targets = [
        value for name, value in seen.attributes if name in ("href", "src", "action", "data-stream", "data-wait")
    ]
    assert all(target.startswith(("/", "#", "data:,")) and not target.startswith("//") for target in targets)
    if ("trajectories" in path and "files" not in path) or path.endswith("00aa11"):
        assert '<script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}' in "".join(seen.words)
    json.loads(hostile.get(path.replace("?", ".json?") if "?" in path else f"{path}.json").text)


def test_a_saved_attempt_is_one_file(whole: TestClient, hostile: TestClient) -> None:
    """It loads nothing, runs nothing, and says what the page says."""
    for one, path in product(
        (whole, hostile), ("/runs/r1/trajectories/t0-000-a0", "/runs/r1/trajectories/base-test-0")
    ):
        saved, page = one.get(f"{path}.html"), Reader(one.get(path).text)
        seen = Reader(saved.text)
        assert "attachment" in saved.headers["content-disposition"] and "default-src 'none'" in saved.text
        assert not {"script", "link", "img", "iframe", "form", "a"} & set(seen.tags)
        assert not any(name in ("src", "href", "style") or name.startswith("on") for name, _ in seen.attributes)
        said = "".join("".join(page.words).partition("Raw")[2].split())  # behind the names of the views
        assert said.partition("Verdicts")[0] in "".join("".join(seen.words).split())


def test_scripts_and_styles_carry_the_nonce(client: TestClient) -> None:
    found = client.get("/runs/r1", headers=HTML)
    nonce = re.search(r"script-src 'nonce-([^']+)'", found.headers["content-security-policy"])
    assert nonce and found.text.count(f'nonce="{nonce[1]}"') == 2
    assert "<style" not in found.text and not re.search(r"<script(?![^>]*src=)", found.text)
    for place in re.findall(r'(?:src|href)="(/static/[^"]+)"', found.text):
        assert "immutable" in client.get(place).headers["cache-control"]
    assert client.get("/static/nothing.js", headers=HTML).status_code == 404


def test_points_and_bars_lead_to_what_they_are_of(client: TestClient) -> None:
    run = client.get("/runs/r1", headers=HTML).text
    points = re.findall(r'<a href="/runs/r1/iterations/\d" aria-label="([^"]*)', run)
    assert [point.partition(":")[0].split(",")[0] for point in points] == [
        *(f"iteration {n}" for n in (0, 1, 2)),
        *(name for name in ("solve rate", "tool use", "reward") for _ in range(3)),
    ]
    text = client.get("/runs/r1/iterations/0", headers=HTML).text
    bars = [unescape(one) for one in re.findall(r'<a href="([^"]+)#attempts" aria-label=', text)]
    counts = [int(one) for one in re.findall(r"(\d+) attempts with a reward from [^<]*</title>", text)]
    held = [client.get(bar.replace("?", ".json?")).json()["chosen"] for bar in bars]
    assert [len(one) for one in held] == counts and sum(counts) == 15


def test_the_past_is_said_and_kept(client: TestClient) -> None:
    then = client.get("/runs/r1?at=150", headers=HTML).text
    assert "As it was behind" in then and "data-stream" not in then
    within = {link for link in links(then) if link.startswith(("/runs/r1/", "/models/"))}
    assert within and all(one.endswith("at=150") and client.get(one, headers=HTML).status_code == 200 for one in within)
    assert "data-stream" in client.get("/runs/r1", headers=HTML).text
    assert client.get("/runs/r1?at=99999", headers=HTML).status_code == 404


MOMENT = re.compile(r'<input id="moment" type="range" min="(\d+)" max="(\d+)"')


@pytest.mark.parametrize("path", PAGES)
def test_every_moment_that_a_page_offers_has_it(whole: TestClient, path: str) -> None:
    """Its first, its last, and those before iterations; of a task or an attempt none is left out."""
    text, join = whole.get(path).text, "&" if "?" in path else "?"
    offered = MOMENT.search(text)
    assert offered or not path.startswith("/runs/r1")
    if offered:
        first, last = map(int, offered.groups())
        at = [first, last, *map(int, re.findall(r'at=(\d+)" aria-label="before iteration', text))]
        assert first <= min(at) and max(at) <= last
        assert {moment: whole.get(f"{path}{join}at={moment}").status_code for moment in at} == dict.fromkeys(at, 200)
        if re.search("/(tasks|trajectories|iterations)/", path):
            assert whole.get(f"{path}{join}at={first - 1}").status_code == 404


def test_every_training_step_is_drawn_as_of_the_moment(client: TestClient) -> None:
    title = "Training, step by step"
    text = client.get("/runs/r1", headers=HTML).text
    assert title in text and "gradient norm, before clipping over 18 steps" in text
    trainings = client.get("/runs/r1.json").json()["run"]["trainings"]
    assert [row["steps"] for row in trainings] == [6] * 6
    seq = next(row["seq"] for row in client.get("/v1/events?run=r1&type=TrainingMeasured").json()["data"])
    before, behind = (client.get(f"/runs/r1?at={seq + n}", headers=HTML).text for n in (-1, 0))
    assert title not in before and "over 6 steps" in behind


def test_a_training_under_way_is_drawn_from_what_its_process_writes(tmp_path: Path) -> None:
    told = whole_run(iterations=1)
    requested = next(n for n, recorded in enumerate(told) if recorded.type == "TrainingRequested")
    event = told[requested].event
    assert isinstance(event, TrainingRequested)
    client, title = seeing(stored(tmp_path, told[: requested + 1])), "Training, step by step"
    assert title not in client.get(f"/runs/{told[0].run}", headers=HTML).text
    file = tmp_path / "training" / progress_file_name(event.checkpoint, event.seed)
    file.parent.mkdir()
    steps = [
        TrainingStep(kind="policy", loss=0.5 - n / 10, gradient_norm=1, learning_rate=1, tokens=9).model_dump()
        for n in range(3)
    ]
    file.write_text(json.dumps({"done": 3, "total": 9, "left_s": 2.0, "room": "", "steps": steps}))
    text = client.get(f"/runs/{told[0].run}", headers=HTML).text
    assert title in text and "over 3 steps" in text and "data-under-way" in text
    assert title not in client.get(f"/runs/{told[0].run}?at={requested + 1}", headers=HTML).text
    file.write_text("[")
    assert title not in client.get(f"/runs/{told[0].run}", headers=HTML).text


def test_what_is_empty_names_the_next_command(tmp_path: Path) -> None:
    client = seeing(tmp_path)
    assert "agent0 run start" in client.get("/runs").text
    assert "agent0 up" in client.get("/admin").text
    for path, status in (("/runs/r1", 404), ("/models", 404), ("/nothing", 404)):
        found = client.get(path)
        assert found.status_code == status and found.headers["content-type"].startswith("text/html")
        assert "<h1>" in found.text
    began = seeing(stored(tmp_path / "began", whole_run(iterations=1)[:1]))
    assert "agent0 run watch r1" in began.get("/runs/r1").text and "agent0 run start" in began.get("/models").text


def test_commands_that_pages_name_are_there() -> None:
    """With their options, as the reference has them."""
    sections = {
        part.partition("\n")[0].strip("` "): part for part in re.split(r"^#{2,4} ", cli_page(), flags=re.MULTILINE)
    }
    named = set()
    for template in FOLDER.glob("templates/*.jinja"):
        for line in re.findall(r"<code>(agent0 [^<]*)</code>", template.read_text()):
            words = re.sub(r"\{\{.*?\}\}", "X", line).split()
            found = next((" ".join(words[:n]) for n in (4, 3, 2) if " ".join(words[:n]) in sections), "")
            assert found, line
            assert all(word in sections[found] for word in words if word.startswith("--")), line
            named.add(found)
    assert len(named) > 15


def test_a_run_goes_back_to_students_alone(context: ApiContext) -> None:
    """Its teachers are promoted, too."""
    with context.tables() as db:
        rows = {row["checkpoint"]: row for row in list_checkpoints(db, "r1")}
        student, earlier = students_of(db, "r1")
    assert {"teacher-0", "teacher-1"} <= {name for name, row in rows.items() if row["status"] == "promoted"}
    assert student == "student-2" and earlier == ["base"]


def test_a_moment_keeps_what_else_was_asked(whole: TestClient) -> None:
    """The slider, the links to iterations and the way back to now keep view and filter."""
    path = "/runs/r1/trajectories/t0-000-a0?view=timeline"
    then = whole.get(f"{path}&at=150").text
    assert '<input type="hidden" name="view" value="timeline">' in then
    found = {unescape(link) for link in links(then)}
    assert path in found and len([one for one in found if re.fullmatch(re.escape(path) + r"&at=\d+", one)]) == 2
    assert [*re.findall(r'aria-current="page">(\w+)', then)] == ["Runs"]


def test_a_form_that_is_refused_comes_back_as_it_was_typed(whole: TestClient) -> None:
    """Its text as text, hidden fields hidden; and a key that was refused is not shown."""
    typed = {"name": "kept <b>", "set": "run.tasks=1", "again": "once"}
    text = whole.post("/runs", data=typed).text
    assert 'name="name" value="kept &lt;b&gt;"' in text and 'type="hidden" name="again" value="once"' in text
    many = {f"run.field-{n}": str(n) for n in range(40)} | {"name": "kept"}
    assert "<summary>41 other fields</summary>" in whole.post("/runs", data=many).text
    assert "a0_secret" not in whole.post("/login", data={"key": "a0_secret"}).text
