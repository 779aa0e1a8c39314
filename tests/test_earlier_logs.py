"""A log that was written before 0.1.0 is refused in one sentence at every door, and a rule that gets a second version
leaves recorded runs under the first."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.export import export
from agent0.config.loading import load
from agent0.errors import LogError
from agent0.events.base import EarlierVersionError, decode
from agent0.events.runs import RunStarted
from agent0.infra.log import decoder
from agent0.run.lifecycle import evolve
from agent0.settings import RunConfig, Settings
from agent0.state import rules
from agent0.state.rules import VERSIONS, chosen, recorded_versions
from tests.terminal import agent0
from tests.world import small, started

REFUSED = "written before 0.1.0. Its events have other fields, and its runs are under rules that are gone. Begin anew"
DOORS = (
    ("run", "list"), ("run", "show", "LAST"), ("run", "resume", "LAST"), ("run", "fork", "LAST"),
    ("projections", "rebuild"), ("events", "tail"), ("events", "export", "log.tar"), ("up",),
)  # fmt: skip


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home and an archive whose run began under version 1 of ``RunStarted``."""
    home = tmp_path_factory.mktemp("before")
    held = load("scripted", {"home": str(home)}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunStarted, "version", 1)
        asyncio.run(_fill(held))
        asyncio.run(export(held, home / "before.tar"))
    return home, home / "before.tar"


async def _fill(held: Settings) -> None:
    async with open_log(held, make=True) as log:
        await log.append([started(small())])


@pytest.mark.parametrize(
    ("recipe", "objective"),
    [
        ({"objective": "adpo", "advantage": "group"}, "adpo"),
        ({"objective": "grpo", "advantage": "centered"}, "dr_grpo"),
    ],
)
def test_a_recipe_with_an_advantage_of_its_own_is_an_objectives(recipe: dict[str, str], objective: str) -> None:
    assert RunConfig.recorded({"training": {"student": recipe}}).training.student.objective == objective


@pytest.mark.parametrize("words", DOORS, ids=" ".join)
def test_its_log_is_refused(before: tuple[Path, Path], words: tuple[str, ...]) -> None:
    answer = agent0(*words, home=before[0])
    assert answer.code != 0 and f"This log was {REFUSED}" in answer.err and answer.err.count("\n") == 1


@pytest.mark.parametrize("words", [("events", "import"), ("events", "verify"), ("view",)], ids=" ".join)
def test_its_archive_is_refused_and_nothing_is_made(before: tuple[Path, Path], tmp_path: Path, words: Any) -> None:
    path = shutil.copy(before[1], tmp_path / "given.tar")
    answer = agent0(*words, str(path), home=tmp_path / "home")
    assert answer.code != 0 and f"given.tar was {REFUSED}" in answer.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"RunStarted", b'{"type":"RunStarted"', b'{"type":"RunPaused","data":{}}']
)
def test_what_is_no_beginning_of_a_run_is_not_taken_for_one(body: bytes) -> None:
    assert not decoder.is_earlier(body)


def test_only_a_version_that_nothing_lifts_is_earlier() -> None:
    body = started(small()).to_json()
    assert not decoder.is_earlier(body)
    older = body.replace(b'"version":2', b'"version":1')
    assert older != body and decoder.is_earlier(older)
    with pytest.raises(EarlierVersionError, match=r"RunStarted version 1 was written before 0\.1\.0"):
        decode(older)


# --- versions of rules


def test_a_rule_with_a_second_version_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """How one is added: the first function stays, the second stands beside it, and the number rises."""
    versions = (round, abs)
    first = evolve(None, _begun({**VERSIONS}))
    monkeypatch.setattr(rules, "VERSIONS", {**VERSIONS, "promotion": 2})
    second = evolve(None, _begun({**rules.VERSIONS}))
    unnamed = evolve(None, _begun({}))
    assert first and second and unnamed
    called = [chosen("promotion", versions, state.rules)(-1.4) for state in (first, second, unnamed)]
    assert called == [-1, 1.4, -1] and first.digest == second.digest == unnamed.digest


def _begun(numbers: dict[str, int]) -> Any:
    begin = started(small())
    return begin.model_copy(update={"event": begin.event.model_copy(update={"rules": numbers}), "seq": 1})


@pytest.mark.parametrize("numbers", [{"promotion": 2}, {"promotion": 0}, {"unheard": 1}])
def test_a_version_that_is_not_known_here_is_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(LogError, match="begun by a newer Agent0"):
        recorded_versions(numbers)
