"""Who is let in: by host, by the page that asks, by key; and what is never told."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from agent0.api import server
from agent0.api.admission.guard import COOKIE, scope_needed
from agent0.api.admission.keys import SCOPES, KeyFile
from agent0.api.admission.rates import Rates
from agent0.api.app import create_app
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.api.problems import RateError
from agent0.errors import AuthError, ConfigError, LogError, NotFoundError, OperationError
from agent0.settings import ApiSettings, NatsSettings, Settings
from tests.api.served import ADDRESS, stored
from tests.story import whole_run
from tests.terminal import agent0 as call

PATHS = ("/v1/runs", "/runs", "/healthz", "/nothing", "/static/pages.css", "/login", "/runs.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path, whole_run(iterations=1)[:30])


def client_of(folder: Path, loopback: bool = True, address: str = "testclient", **api: object) -> TestClient:
    settings = Settings(home=folder, api=ApiSettings(**api), nats=NatsSettings(password=SecretStr("sk-canary")))
    context = ApiContext(settings, KeyFile(folder), PastTables(settings), loopback=loopback)
    return from_address(create_app(context), address)


def from_address(app: Any, address: str) -> TestClient:
    """A client at ``address``."""
    settings = {"raise_server_exceptions": False, "follow_redirects": False, "client": (address, 50_000)}
    return TestClient(app, base_url=ADDRESS, **settings)


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with client_of(folder) as held:
        yield held


@pytest.mark.parametrize("path", PATHS)
def test_another_name_or_page_is_refused(client: TestClient, path: str) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8650"},
        {"Host": "192.168.0.7"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ):
        found = client.get(path, headers=headers)
        assert found.status_code == 403, headers
        assert found.json()["type"] == "urn:agent0:problem:auth_denied"


def test_its_own_names_and_pages_are_answered(client: TestClient, folder: Path) -> None:
    for headers in (
        {"Host": "localhost:8650"},
        {"Host": "[::1]:8650"},
        {"Origin": ADDRESS},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ):
        assert client.get("/v1/runs", headers=headers).status_code == 200, headers
    named = client_of(folder, hosts=("lab.example",))
    assert named.get("/v1/runs", headers={"Host": "lab.example"}).status_code == 200


BY_LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_of_another_site_is_refused(client: TestClient, site: str) -> None:
    """Whether or not the browser names the page that sends it, as one that is reached by a link alone may."""
    for headers in ({}, {"Origin": ADDRESS}):
        foreign = {**BY_LINK, **headers, "Sec-Fetch-Site": site}
        for path in ("/v1/runs", "/runs", "/login", "/runs/r1/cancel", "/nothing"):
            refused = client.post(path, data={"name": "x"}, headers=foreign)
            assert refused.status_code == 403 and refused.json()["title"] == "A page of another site asks.", path
        assert client.get("/runs", headers=foreign).status_code == 200
    for own in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
        assert client.post("/v1/runs", json={}, headers={**BY_LINK, **own, "Origin": ADDRESS}).status_code == 409


def test_every_response_forbids_what_pages_do_not_need(client: TestClient) -> None:
    nonces = set()
    for path in PATHS:
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'nonce-") and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        nonces.add(policy)
    assert len(nonces) == len(PATHS)


def test_keys_open_what_their_scope_says(folder: Path) -> None:
    keys, client = KeyFile(folder), client_of(folder)
    held = {scope: keys.add(scope, scope) for scope in SCOPES}
    allowed = {"/v1/runs": set(SCOPES), "/runs": set(SCOPES), "/v1/config": {"admin"}, "/admin": {"admin"}}
    for path, scopes in allowed.items():
        for scope, key in held.items():
            found = client.get(path, headers={"Authorization": f"Bearer {key}"})
            assert found.status_code == (200 if scope in scopes else 403), (path, scope)
        for wrong in ({}, {"Authorization": "Bearer a0_x"}, {"Authorization": "Basic eA=="}):
            found = client.get(path, headers={**wrong, "Accept": "application/json"})
            assert found.status_code == 401 and found.headers["www-authenticate"] == "Bearer"
    assert client.post("/v1/runs", json={}, headers={"Authorization": f"Bearer {held['read']}"}).status_code == 403
    assert client.get("/healthz").status_code == 200
    keys.remove("read")
    assert client.get("/v1/runs", headers={"Authorization": f"Bearer {held['read']}"}).status_code == 401


def test_a_browser_brings_its_key_by_a_form(folder: Path) -> None:
    key, client = KeyFile(folder).add("me", "submit"), client_of(folder)
    page = client.get("/runs", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert client.post("/login", data={"key": "a0_no"}).status_code == 401
    done = client.post("/login", data={"key": key}, headers={"Origin": ADDRESS})
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in done.headers["set-cookie"].split(";")}
    assert client.get("/runs").status_code == 200 and client.cookies[COOKIE] == key
    assert client.post("/v1/runs", json={}).json()["title"] == "Which page asks is unknown."


def test_the_folder_holds_digests_only(folder: Path) -> None:
    key = call("api", "key", "add", "me", "--json", home=folder).json["key"]
    path = folder / "api-keys.json"
    assert key not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [row["name"] for row in call("api", "key", "list", "--json", home=folder).json] == ["me"]
    for name, scope in (("me", "read"), ("a/b", "read"), ("you", "all")):
        with pytest.raises(ConfigError):
            KeyFile(folder).add(name, scope)
    assert call("api", "key", "remove", "me", home=folder).code == 0
    with pytest.raises(NotFoundError):
        KeyFile(folder).remove("me")


def test_a_damaged_file_of_keys_lets_nobody_in(folder: Path) -> None:
    (folder / "api-keys.json").write_text("[{}]")
    assert client_of(folder).get("/v1/runs").status_code == 500
    with pytest.raises(LogError):
        KeyFile(folder).read()


def test_a_body_has_a_limit(folder: Path) -> None:
    client = client_of(folder, max_body=1024)
    for body in (b"x" * 2000, (b"x" * 100 for _ in range(20))):
        found = client.post("/login", content=body, headers={"Origin": ADDRESS})
        assert found.status_code == 413 and found.headers["content-type"] == "application/problem+json"


def test_no_secret_is_shown(client: TestClient) -> None:
    for path in ("/v1/config", "/config", "/config.json", "/v1/status", "/admin"):
        text = client.get(path).text
        assert "sk-canary" not in text and len(text) > 100


def test_it_listens_elsewhere_with_a_key_only(folder: Path) -> None:
    settings = Settings(home=folder, api=ApiSettings(host="0.0.0.0", port=0))
    with pytest.raises(AuthError, match="without a key"), server.listening(settings):
        pass
    KeyFile(folder).add("me", "read")
    with server.listening(settings) as sock:
        assert sock.getsockname()[1]
    bare = client_of(folder, loopback=False)
    KeyFile(folder).remove("me")  # while it runs: nobody is let in then
    assert bare.get("/v1/runs", headers={"Host": "10.0.0.1"}).status_code == 401


def test_a_port_that_is_taken_is_told(folder: Path) -> None:
    with server.listening(Settings(home=folder, api=ApiSettings(port=0))) as sock:
        port = sock.getsockname()[1]
        taken = Settings(home=folder, api=ApiSettings(port=port))
        with pytest.raises(OperationError, match=f"Port {port} of 127.0.0.1 is taken"), server.listening(taken):
            pass


def test_one_key_does_not_take_all_the_time(folder: Path) -> None:
    """Changes have a limit for each key, and fill up again; looking has none."""
    clock = [0.0]
    rates = Rates(2, lambda: clock[0])
    for name in ("ada", "ada", "bob"):
        rates.take(name)
    with pytest.raises(RateError) as refused:
        rates.take("ada")
    assert refused.value.after_s == pytest.approx(30)
    rates.take("bob")
    clock[0] = 30.0
    rates.take("ada")
    Rates(0).take("ada")

    client = client_of(folder, changes_per_minute=2)
    found = [client.post("/v1/runs", json={}) for _ in range(3)]
    assert [one.status_code for one in found] == [409, 409, 429]  # it only reads
    assert found[-1].json()["type"] == "urn:agent0:problem:rate_limited"
    assert 1 <= int(found[-1].headers["retry-after"]) <= 30
    assert client.get("/v1/runs").status_code == 200


def test_wrong_keys_count_against_who_tries_them_alone(folder: Path) -> None:
    key = KeyFile(folder).add("me", "admin")
    here = client_of(folder, changes_per_minute=2)
    there, elsewhere = from_address(here.app, "there"), from_address(here.app, "elsewhere")

    def tries(client: TestClient, text: str) -> list[int]:
        by_header = client.get("/v1/runs", headers={"Authorization": f"Bearer {text}"}).status_code
        return [by_header, client.post("/login", data={"key": text}).status_code]

    assert tries(here, "a0_one") == [401, 401]
    assert tries(here, "a0_two") == [429, 429]  # the address
    assert tries(there, "a0_one") == [429, 429]  # the key
    assert tries(elsewhere, "a0_three") == [401, 401]
    for client in (here, there, elsewhere):
        assert tries(client, key) == [200, 303]
    refused = here.post("/login", data={"key": "a0_four"})
    assert refused.json()["title"] == "Too many keys that are not known." and int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "path", ["/v1/runs/r1/cancel", "/runs/r1/cancel", "/v1/checkpoints/r1/student-0/promote", "/tasks/t/accept"]
)
def test_decisions_are_for_administrators(path: str) -> None:
    assert scope_needed("POST", path) == "admin" and scope_needed("POST", "/v1/tasks") == "submit"
