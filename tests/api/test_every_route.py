"""What holds of every route that the application declares, whoever adds one: who is let in, what browsers may do with
the answer, and that a page is one at any moment of a run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from agent0.api.admission.guard import COOKIE, OPEN, READS, scope_needed
from agent0.api.admission.keys import KeyFile
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.settings import NatsSettings, Settings, TelemetrySettings
from tests.api.conftest import seeing
from tests.api.served import ADDRESS, stored
from tests.api.test_pages import PAGES
from tests.story import whole_run

NAMES = {
    "run": "r1", "task": "t0-000", "attempt": "t0-000-a0", "number": "1", "checkpoint": "student-0", "event": "40",
    "call": "1", "model": "r1/base", "name": "pages.css", "action": "pause", "experiment": "exp-bold",
    "failure": "f", "evaluation": "base-test", "batch": "batch-1", "recording": "r", "family": "countdown",
}  # fmt: skip
Route = tuple[str, str]
CANARY = "sk-canary-0042"


def declared(routes: Any, prefix: str = "") -> Iterator[Route]:
    """(method, address) of every route, its parameters filled in."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from declared(route.original_router.routes, prefix + route.include_context.prefix)
            continue
        path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: NAMES[found[1]], prefix + route.path)
        yield from ((method, path) for method in sorted(route.methods - {"HEAD", "OPTIONS"}))


@pytest.fixture(scope="module")
def app(whole: TestClient) -> FastAPI:
    """Over the folder in which every page has something to show, with secrets."""
    secret = SecretStr(CANARY)
    telemetry = TelemetrySettings(webhook_secret=secret, slack_url=secret, discord_url=secret)
    home = Path(whole.get("/runs.json").json()["home"])
    settings = Settings(home=home, telemetry=telemetry, nats=NatsSettings(user="me", password=secret))
    return create_app(ApiContext(settings, KeyFile(settings.home), PastTables(settings)))


@pytest.fixture(scope="module")
def routes(app: FastAPI) -> list[Route]:
    found = [*declared(app.routes)]
    assert len(found) > 90 and ("POST", "/v1/runs/r1/cancel") in found and ("POST", "/admin/rebuild") in found
    assert {"/v1/chat/completions", "/runs/r1/trajectories/t0-000-a0.json", "/metrics"} <= {path for _, path in found}
    return found


@pytest.fixture(scope="module")
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False)


def test_no_route_answers_another_site(client: TestClient, routes: list[Route]) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
    ):
        found = {route: client.request(*route, headers=headers) for route in routes}
        assert {route for route, one in found.items() if one.status_code != 403} == set(), headers
        assert {one.headers["content-type"] for one in found.values()} == {"application/problem+json"}


def test_every_answer_is_dressed_and_none_is_a_defect(
    client: TestClient, routes: list[Route], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also those of requests that do not fit: each POST comes without a body. None holds a secret, nor does the log."""
    nonces = set()
    for method, path in routes:
        accept = "application/json" if path.startswith("/v1") or method == "POST" else "text/html"
        found = client.request(method, path, headers={"Accept": accept})
        policy = found.headers["content-security-policy"]
        assert found.status_code < 500, (method, path, found.text[:300])
        assert CANARY not in found.text and CANARY not in str(found.headers), (method, path)
        assert policy.startswith("default-src 'none'; script-src 'nonce-") and "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff" and found.headers["x-frame-options"] == "DENY"
        if found.status_code >= 400 and accept == "application/json":
            assert found.headers["content-type"] == "application/problem+json", (method, path)
        nonces.add(policy)
    assert len(nonces) == len(routes)
    assert CANARY not in caplog.text and CANARY not in "".join(capfd.readouterr())


def test_every_route_asks_for_a_key_and_its_scope(tmp_path: Path, routes: list[Route]) -> None:
    """Nothing but the open addresses is answered without; a cookie alone changes nothing (CSRF); a key does no more
    than its scope."""
    settings = Settings(home=stored(tmp_path, whole_run(iterations=1)[:30]))
    keys = KeyFile(tmp_path)
    read, submit = keys.add("reader", "read"), keys.add("writer", "submit")
    app = create_app(ApiContext(settings, keys, PastTables(settings)))
    client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False)
    for method, path in routes:
        if path.startswith(OPEN):
            continue
        assert client.request(method, path, headers={"Accept": "application/json"}).status_code == 401, path
        page = client.request(method, path, headers={"Accept": "text/html"})
        assert page.status_code in (303, 401) and len(page.content) < 600, path
        needed = scope_needed(method, path)
        assert needed != "read" or method in READS
        if needed != "read":
            assert client.request(method, path, headers={"Authorization": f"Bearer {read}"}).status_code == 403, path
        if needed == "admin":
            assert client.request(method, path, headers={"Authorization": f"Bearer {submit}"}).status_code == 403, path
        if method not in READS:
            forged = client.request(method, path, headers={"Cookie": f"{COOKIE}={submit}"})
            assert forged.status_code == 403 and "Which page asks" in forged.text, path


def test_every_page_stands_at_every_moment(tmp_path: Path) -> None:
    """From a run's first event to its last: a page, or one that says that there is nothing yet; never a defect."""
    story = whole_run(iterations=1)
    client = seeing(stored(tmp_path, story))
    paths = [page for page in PAGES if not re.search("r2|bench-1|exp-bold|submission|config|compact|raw", page)]
    statuses = set()
    for at in (1, 20, 40, 55, 70, len(story)):
        for path in paths:
            found = client.get(path, params={"at": at})
            statuses.add(found.status_code)
            assert found.status_code in (200, 404), (path, at, found.text[-600:])
            if found.status_code == 200 and not path.startswith(("/admin", "/models/calls")):  # of no moment
                assert f"event {at}" in found.text, path
    assert statuses == {200, 404}
