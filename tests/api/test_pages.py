"""The pages: every link leads somewhere, each has its twin, no text becomes markup, nobody else is asked."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.keys import KeyFile
from agent0.api.past import PastTables
from agent0.settings import Settings
from tests.api.served import ADDRESS, stored
from tests.story import whole_run
from tests.test_report import Reader, poisoned

PAGES = (
    "/runs",
    "/runs/r1",
    "/runs/r1/iterations/1",
    "/runs/r1/tasks/t0-000",
    "/runs/r1/trajectories/t0-000-a0",
    "/models",
    "/models/r1/student-1",
    "/events/40",
    "/config",
    "/admin",
)
MOST = 150
"""Pages that a walk along the links opens."""
HTML = {"Accept": "text/html"}


def served(home: Path) -> TestClient:
    held = Settings(home=home)
    context = ApiContext(held, KeyFile(home), PastTables(held))
    return TestClient(create_app(context), base_url=ADDRESS, headers=HTML)


def links(text: str) -> set[str]:
    found = [value for name, value in Reader(text).attributes if name in ("href", "src")]
    return {one.partition("#")[0] for one in found if not one.startswith(("#", "data:"))}


def test_every_link_leads_somewhere(client: TestClient) -> None:
    waiting, seen = ["/runs"], set[str]()
    while waiting and len(seen) < MOST:
        path = waiting.pop(0)
        seen.add(path)
        found = client.get(path, headers=HTML)
        assert found.status_code == 200, path
        if found.headers["content-type"].startswith("text/html"):
            ours = links(found.text)
            assert all(one.startswith("/") and not one.startswith("//") for one in ours), ours
            waiting += sorted(ours - seen - {*waiting})
    assert len(seen) > 60


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_a_twin(client: TestClient, path: str) -> None:
    page, twin = client.get(path, headers=HTML), client.get(f"{path}.json")
    assert page.status_code == twin.status_code == 200
    assert f'href="{path}.json"' in page.text and twin.headers["content-type"] == "application/json"
    assert isinstance(twin.json(), dict)


@pytest.mark.parametrize("path", PAGES)
def test_no_text_becomes_markup(client: TestClient, tmp_path: Path, path: str) -> None:
    hostile = served(stored(tmp_path, [poisoned(one) for one in whole_run(iterations=3)])).get(path)
    plain, seen = Reader(client.get(path, headers=HTML).text), Reader(hostile.text)
    assert set(seen.tags) <= set(plain.tags) | {"pre", "table"} and seen.tags.count("script") == 1
    assert not any(name.startswith("on") or name == "style" for name, _ in seen.attributes)
    assert not set("\x00\x1b\u202e") & set("".join(seen.words))
    targets = [value for name, value in seen.attributes if name in ("href", "src", "action", "data-stream")]
    assert all(one.startswith(("/", "#", "data:,")) and not one.startswith("//") for one in targets)
    if "trajectories" in path:
        assert '<script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}' in "".join(seen.words)
    json.loads(served(tmp_path).get(f"{path}.json").text)


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
    assert len(re.findall(r'<a href="/runs/r1/iterations/\d" aria-label=', run)) == 3
    text = client.get("/runs/r1/iterations/1", headers=HTML).text
    bars = [unescape(one) for one in re.findall(r'<a href="([^"]+)#attempts" aria-label=', text)]
    counts = [int(one) for one in re.findall(r"(\d+) attempts with a reward from [^<]*</title>", text)]
    held = [client.get(bar.replace("?", ".json?")).json()["chosen"] for bar in bars]
    assert [len(one) for one in held] == counts and sum(counts) == 15


def test_the_past_is_said_and_kept(client: TestClient) -> None:
    then = client.get("/runs/r1?at=150", headers=HTML).text
    assert "As it was behind" in then and "data-stream" not in then
    within = {one for one in links(then) if one.startswith(("/runs/r1/", "/models/"))}
    assert within and all(one.endswith("at=150") and client.get(one, headers=HTML).status_code == 200 for one in within)
    assert "data-stream" in client.get("/runs/r1", headers=HTML).text
    assert client.get("/runs/r1?at=99999", headers=HTML).status_code == 404


def test_what_is_empty_names_the_next_command(tmp_path: Path) -> None:
    client = served(tmp_path)
    assert "agent0 run start" in client.get("/runs").text
    assert "agent0 up" in client.get("/admin").text
    for path, status in (("/runs/r1", 404), ("/models", 404), ("/nothing", 404)):
        found = client.get(path)
        assert found.status_code == status and found.headers["content-type"].startswith("text/html")
        assert "<h1>" in found.text
    began = served(stored(tmp_path / "began", whole_run(iterations=1)[:1]))
    assert "agent0 run watch r1" in began.get("/runs/r1").text and "agent0 run start" in began.get("/models").text
