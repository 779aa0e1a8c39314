"""``agent0 solve``: killed and gone on with, accepted and not, refused in a line; the same in Python and over HTTP."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import agent0 as library
from tests.solved import BROKEN, REPAIR, SOUND, content, laid, played
from tests.terminal import agent0

ROOT = Path(__file__).parents[1]
CHECK = ("--check", "python -c 'from sums import total; assert total([1, 2]) == 3'")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return laid(tmp_path / "repo", BROKEN)


def killed(arguments: Sequence[str], home: Path) -> None:
    """Run a command in a process of its own, which is killed by its model."""
    environment = {**os.environ, "AGENT0_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "agent0", *arguments], env=environment, cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == -9, done


def test_killed_work_goes_on_and_is_written_once_accepted(repository: Path, tmp_path: Path) -> None:
    home, model = tmp_path / "home", played(tmp_path, *REPAIR)
    command = ["solve", "fix", str(repository), *CHECK, *model, "--set", "handlers.ack_wait_s=1"]
    (tmp_path / "turns.kill").touch()
    killed(command, home)
    assert content(repository) == BROKEN
    done = agent0(*command, "--json", home=home)
    assert done.code == 0, done.err
    assert (tmp_path / "turns.asked").read_text().split() == ["0", "1", "1"], "the first turn was not asked again"
    work = done.json
    assert work["solved"] and work["written"] == [] and content(repository) == BROKEN
    assert [vote["check"] for vote in work["votes"]] == ["check before", "check after", "only what is needed"]
    again = agent0(*command, home=home)
    assert again.code == 0 and work["diff"] in again.out and "The bound is off by one." not in again.err
    assert f"agent0 solve apply {work['id']}" in again.err
    listed = agent0("solve", "list", "--json", home=home).json
    assert [(row["id"], row["holds"]) for row in listed] == [(work["id"], "yes")]
    folder = library.open(home, profile="scripted", read_only=True)
    with folder.tables() as db:
        kinds = [kind for (kind,) in db.execute("SELECT type FROM events WHERE run = ? ORDER BY seq", [work["id"]])]
    assert kinds.count("TaskSubmitted") == 2 and kinds.count("TaskAttempted") == kinds.count("ResultVerified") == 1
    laid(repository, {"sums.py": b"mine"})
    refused = agent0("solve", "apply", work["id"], home=home)
    assert refused.code == 1 and "Changed since: sums.py." in refused.err
    laid(repository, BROKEN)
    for _ in range(2):
        assert agent0("solve", "apply", work["id"], home=home).code == 0
        assert content(repository) == SOUND


def test_work_that_does_not_hold_is_not_written_and_is_seen_by_its_exit_code(repository: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    wrong = agent0("solve", "fix", str(repository), *CHECK, *played(tmp_path, "\\boxed{done}"), "--accept", home=home)
    assert wrong.code == 3 and "changes: nothing that counts was changed" in wrong.err
    assert content(repository) == BROKEN
    settings = {"run.student.provider": "played", "run.student.model": str(tmp_path / "turns.json")}
    folder = library.open(home, profile="scripted", settings=settings, plugins=[tmp_path / "played.py"])
    played(tmp_path, *REPAIR)
    said: list[str] = []
    work = library.solve(folder, "fix", repository, CHECK[1], seed=1, say=said.append)
    assert work.solved and "Turn 1: The bound is off by one." in said and content(repository) == BROKEN
    assert work.apply() == ["sums.py"] and content(repository) == SOUND
    with pytest.raises(library.Agent0Error, match="there is nothing to fix"):
        library.solve(folder, "fix", repository, CHECK[1])


@pytest.mark.parametrize(
    "files, arguments, code, words",
    [
        (None, (), 2, "There is no folder"),
        ({"notes.txt": b""}, (), 2, "holds no Python files"),
        (BROKEN, ("--check", " "), 2, "There is no check."),
        (BROKEN, ("--check", "pytest\nrm"), 2, "There is no check."),
        (BROKEN, ("--diff", "a..b"), 2, "has no versions"),
        (BROKEN, ("--model", "no-such-model"), 1, "There is no model or checkpoint"),
        (BROKEN, ("--needs", "no-such name", "--profile", "scripted"), 1, "no-such name"),
    ],
)
def test_bad_input_is_refused_in_a_line(
    files: Mapping[str, bytes] | None, arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    if files is not None:
        laid(tmp_path / "repo", files)
    told = agent0("solve", "fix", str(tmp_path / "repo"), *arguments, home=tmp_path / "home")
    assert told.code == code and words in told.err and "Traceback" not in told.err, told
    assert (content(tmp_path / "repo") if files is not None else {}) == (files or {})


def test_what_is_not_committed_needs_consent(tmp_path: Path) -> None:
    folder = laid(tmp_path / "repo", BROKEN)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    told = agent0("solve", "fix", str(folder), home=tmp_path / "home")
    assert told.code == 2 and "has what is not committed. 2 files: sums.py, tests/test_sums.py." in told.err
    assert "--dirty" in told.err


@pytest.mark.parametrize("id_", ["submission-0", "LAST", "../x", ""])
@pytest.mark.parametrize("command", ["apply", "resume"])
def test_work_that_is_not_there_is_told(command: str, id_: str, tmp_path: Path) -> None:
    told = agent0("solve", command, id_, home=tmp_path)
    assert told.code == 1 and "Traceback" not in told.err and told.err.count("error:") == 1
