"""The form of a run's settings: what it shows is what a run gets, and what is changed in it is all that changes."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

from agent0.api.pages.settings_form import NOT_HERE, changes, fields_of_runs, sections, shown, text_of
from agent0.config.loading import PROFILES, load, profiles
from agent0.errors import ConfigError
from agent0.settings import Settings
from tests.api.test_up import SMALL, standing
from tests.test_report import Reader


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize("profile", profiles())
def test_every_field_shows_what_a_run_gets_and_sending_all_changes_nothing(profile: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, profile="tiny")
    held = load(profile, {"home": str(tmp_path)})
    every = {row["key"]: row["text"] for part in sections(shown(settings, profile)["settings"]) for row in part["rows"]}
    assert {*every} == {key for key in fields_of_runs() if key not in NOT_HERE}
    assert changes(settings, profile, urlencode(every).encode()) == {}
    assert load(profile, {**every, "home": str(tmp_path)}).run == held.run


def test_what_is_changed_is_all_that_is_sent(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, profile="scripted")
    sent = {"run.tasks": "7", "run.student.tools": "", "run.seed": str(load("scripted").run.seed), "home": "/x"}
    found = changes(settings, "", urlencode({**sent, "run.plugins": '{"a": "b"}'}).encode())
    assert found == {"run.tasks": "7", "run.student.tools": ""}


def test_origins_and_what_the_profile_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT0_RUN__TASKS", "9")
    (tmp_path / "agent0.toml").write_text("[run]\nattempts = 3\n")
    found = shown(Settings(home=tmp_path, profile="scripted"), "scripted")
    rows = {row["key"]: row for row in found["settings"]}
    assert rows["run.tasks"]["value"] == 9 and "AGENT0_RUN__TASKS" in rows["run.tasks"]["origin"]
    assert "agent0.toml" in rows["run.attempts"]["origin"]
    said = {key: row["profile_says"] for key, row in rows.items() if "profile_says" in row}
    assert {*said} == {"run.tasks", "run.attempts"} and said["run.tasks"] != 9 and rows["run.attempts"]["value"] == 3
    assert rows["nats.password"]["value"] in ("", None, "**********")
    assert all(row["meaning"] for row in found["settings"] if row["key"].startswith("run."))


def test_a_file_is_no_profile(whole: TestClient, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("")
    assert whole.get("/config", params={"profile": f"{tmp_path}/own.toml"}).status_code == 422
    assert whole.get("/config", params={"profile": "nothing"}).status_code == 422
    with pytest.raises(ConfigError):
        shown(Settings(home=tmp_path), "nothing")


@pytest.mark.parametrize("name", ["mine", "my.own profile"])
async def test_a_server_of_a_file_starts_runs_of_it(tmp_path: Path, name: str) -> None:
    """By each form, and where a program names none; a packaged profile is chosen as ever."""
    path = tmp_path / f"{name}.toml"
    path.write_text((PROFILES / "scripted.toml").read_text().replace("tasks = 12", "tasks = 5"))
    settings = load(path, {"home": str(tmp_path / "home"), "api.port": "0", "sandbox.workers": "1"})
    assert settings.profile == name and settings.run.tasks == 5
    async with standing(settings, handlers=False) as client:
        page = await client.get("/config", headers={"Accept": "text/html"})
        assert page.status_code == 200 and fields_in(page.text)["run.tasks"] == "5"
        for place, form in (("/runs", {"profile": name}), ("/runs", {**fields_in(page.text), "name": "all"})):
            begun = await client.post(place, data=form)
            assert begun.status_code == 303, begun.text
            assert (await client.get(f"/v1{begun.headers['location']}")).json()["config"]["tasks"] == 5
        begun = await client.post("/v1/runs", json={})
        shown = (await client.get(begun.headers["location"])).json()
        assert (shown["profile"], shown["config"]["tasks"]) == (name, 5)
        assert f"<option selected>{name}</option>" in (await client.get("/runs", headers={"Accept": "text/html"})).text
        begun = await client.post("/v1/runs", json={"profile": "scripted"})
        assert (await client.get(begun.headers["location"])).json()["profile"] == "scripted"


def test_a_server_that_only_reads_shows_no_fields(whole: TestClient) -> None:
    page = Reader(whole.get("/config?profile=tiny").text)
    assert not [value for name, value in page.attributes if name == "name" and value.startswith("run.")]


def test_a_list_is_typed_as_after_set() -> None:
    assert [text_of(one) for one in (["a", "b"], ["a,b"], [], [1], None, True, "x", {})] == [
        *("a,b", '["a,b"]', "", "[1]", "", "true", "x", "{}"),
    ]


async def test_a_run_is_started_from_the_form_without_scripts(tmp_path: Path) -> None:
    settings = load("scripted", {"home": str(tmp_path), "api.port": "0", "sandbox.workers": "1"})
    async with standing(settings, handlers=False) as client:
        text = (await client.get("/config", headers={"Accept": "text/html"})).text
        form = dict.fromkeys(["again", "profile"]) | fields_in(text)
        begun = await client.post("/runs", data={**form, **SMALL, "run.iterations": "500", "name": "by hand"})
        assert begun.status_code == 303, begun.text
        run = begun.headers["location"].rpartition("/")[2]
        config = (await client.get(f"/v1/runs/{run}")).json()["config"]
        wanted = load("scripted", {**SMALL, "run.iterations": "500"}).run.model_dump(mode="json")
        assert config == wanted
        refused = await client.post("/runs", data={**form, "run.tasks": "none"})
        assert refused.status_code == 422 and "run.tasks" in refused.text


def fields_in(text: str) -> dict[str, str]:
    """What a browser without scripts would send of the form that starts a run."""
    from html.parser import HTMLParser

    found: dict[str, str] = {}

    class Form(HTMLParser):
        inside, name = False, ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            held = {key: value or "" for key, value in attrs}
            if tag == "form":
                self.inside = held.get("method") == "post"
            elif self.inside and tag == "input":
                found[held["name"]] = held.get("value", "")
            elif self.inside and tag == "select":
                self.name = held["name"]
            elif self.inside and tag == "option" and ("selected" in dict(attrs) or self.name not in found):
                found[self.name] = held.get("value", "")

    Form().feed(text)
    return found
