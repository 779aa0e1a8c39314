"""Work on a repository from the pages: its turns, votes and changes are shown, and it is written once accepted."""

import asyncio
from pathlib import Path

import pytest

from agent0.config.loading import load
from tests.api.test_up import standing
from tests.solved import BROKEN, REPAIR, SOUND, content, laid, played
from tests.terminal import agent0

CHECK = ("--check", "python -c 'from sums import total; assert total([1, 2]) == 3'")
HTML = {"Accept": "text/html"}


def test_work_is_shown_and_written_once_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, repository = tmp_path / "home", laid(tmp_path / "start" / "repo", BROKEN)
    work = agent0("solve", "fix", str(repository), *CHECK, *played(tmp_path, *REPAIR), "--json", home=home).json
    (tmp_path / "start" / "link").symlink_to("/etc")

    async def visit() -> None:
        settings = load("scripted", {"home": str(home), "api.port": "0"})
        place = f"/tasks/{work['id']}"
        async with standing(settings, handlers=False) as client:
            shown = (await client.get(place, headers=HTML)).text
            for text in ("Turn 1: The bound is off by one.", "edit_file sums.py: ok", "only what is needed"):
                assert text in shown
            assert f'action="{place}/accept"' in shown and work["diff"].splitlines()[0] in shown
            assert (await client.get(f"/v1{place}")).json()["plan"][0] == "Turn 1: The bound is off by one."
            monkeypatch.chdir(home)
            assert (await client.post(f"{place}/accept")).status_code == 422
            monkeypatch.chdir(tmp_path / "start")
            for wrong in ("", "..", "/etc", "link", "repo/../..", str(home), "repo\0"):
                refused = await client.post("/solve", data={"folder": wrong, "verb": "fix", "check": "pytest"})
                assert refused.status_code == 422 and "does not read" in refused.text, wrong
            for wrong in ({"folder": "nowhere"}, {"verb": "break"}):
                form = {"folder": "repo", "verb": "fix", "check": "pytest", **wrong}
                assert (await client.post("/solve", data=form)).status_code in (404, 422)
            assert content(repository) == BROKEN
            for _ in range(2):
                done = await client.post(f"{place}/accept")
                assert (done.status_code, done.headers["location"]) == (303, place), done.text
                assert content(repository) == SOUND
            assert "Written into" in (await client.get(place, headers=HTML)).text
            laid(repository, {"sums.py": b"mine"})
            refused = await client.post(f"{place}/accept")
            assert refused.status_code == 409 and "Changed since" in refused.text
            assert (await client.post("/tasks/submission-0/accept")).status_code in (404, 409)

    asyncio.run(visit())
