"""A person's repository is copied whole, told what is left out of it, and never written over."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent0.assembly.solving.repository_copy import read_repository
from agent0.assembly.solving.written_back import write_back
from agent0.errors import Agent0Error, ConfigError, DependencyError, OperationError
from agent0.tools.snapshots import MOST_FILES
from tests.solved import BROKEN, RIGHT, SOUND, WRONG, content, laid


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two versions, the later one with the bug."""
    folder = laid(tmp_path / "repo", {**SOUND, ".gitignore": b"*.log\n"})
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "right")
    laid(folder, BROKEN)
    git(folder, "commit", "-qam", "wrong")
    return folder


def test_what_git_follows_is_copied_and_nothing_is_touched(repository: Path) -> None:
    laid(repository, {"noise.log": b"ignored"})
    before = content(repository)
    copy = read_repository(repository)
    assert copy.files == {**BROKEN, ".gitignore": b"*.log\n"} and copy.dirty == () and not copy.left_out
    assert content(repository) == before, "git's own files stay, too"


def test_what_is_not_committed_is_named(repository: Path) -> None:
    laid(repository, {"new.py": b"x = 1\n", "staged.py": b"y = 1\n", "sums.py": RIGHT})
    git(repository, "add", "staged.py")
    (repository / "tests" / "test_sums.py").unlink()
    copy = read_repository(repository)
    assert copy.dirty == ("new.py", "staged.py", "sums.py", "tests/test_sums.py")
    assert copy.files["sums.py"] == RIGHT and "tests/test_sums.py" not in copy.files


def test_links_submodules_and_hostile_names_are_left_out_and_named(repository: Path, tmp_path: Path) -> None:
    secret = laid(tmp_path / "secret", {"key": b"key"})
    (repository / "link.py").symlink_to(secret / "key")
    (repository / "folder").symlink_to(secret)
    laid(repository, {"\x1b[2Jx.py": b"", "large.bin": bytes((1 << 20) + 1), "data.bin": b"\0\xff"})
    inner = laid(tmp_path / "inner", {"a.py": b""})
    git(inner, "init", "-q")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(repository, "submodule", "add", "-q", str(inner), "inner")
    os.mkfifo(repository / "pipe")
    copy = read_repository(repository)
    assert copy.left_out == {
        "\\x1b[2Jx.py": "its name is no path of printable text",
        "folder": "it is a link",
        "inner": "it is a submodule",
        "large.bin": "it has more than 1 MiB",
        "link.py": "it is a link",
    }
    assert copy.files["data.bin"] == b"\0\xff" and b"key" not in copy.files.values()


def test_programs_that_a_repository_names_are_not_called(repository: Path, tmp_path: Path) -> None:
    called = tmp_path / "called"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {called}\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.x.textconv", "core.pager"):
        git(repository, "config", key, str(program))
    (repository / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    called.unlink(missing_ok=True)
    laid(repository, {"sums.py": RIGHT})
    assert read_repository(repository).dirty == ("sums.py",)
    assert read_repository(repository, "HEAD~1..HEAD").files["sums.py"] == WRONG
    assert not called.exists()


def test_two_versions_are_those_of_git_whatever_lies_there(repository: Path) -> None:
    laid(repository, {"sums.py": b"other"})
    copy = read_repository(repository, "HEAD~1..HEAD")
    assert copy.base is not None and copy.base["sums.py"] == RIGHT and copy.files["sums.py"] == WRONG
    assert read_repository(repository, "HEAD~1..").files == copy.files


def test_without_git_all_but_the_folders_of_tools_is_copied(tmp_path: Path) -> None:
    folder = laid(tmp_path / "plain", {**BROKEN, ".venv/a.py": b"", "env/pyvenv.cfg": b"", "env/b.py": b""})
    (folder / "up").symlink_to("..")
    copy = read_repository(folder)
    assert copy.files == BROKEN and copy.left_out == {"up": "it is a link"} and copy.dirty == ()


def huge(folder: Path) -> None:
    laid(folder, {f"{number}.py": b"" for number in range(MOST_FILES + 1)})


@pytest.mark.parametrize(
    "change, versions, kind, words",
    [
        (shutil.rmtree, "", ConfigError, "There is no folder"),
        (huge, "", ConfigError, "is too large"),
        (lambda folder: shutil.rmtree(folder / ".git"), "a..b", ConfigError, "is in no git repository"),
        (lambda folder: (folder / ".git" / "HEAD").write_text("?"), "", DependencyError, "git"),
        (lambda _: None, "HEAD", ConfigError, "names no two versions"),
        (lambda _: None, "--output=x..HEAD", ConfigError, "names no two versions"),
        (lambda _: None, "nowhere..HEAD", ConfigError, "has no version 'nowhere'"),
        (lambda _: None, "HEAD..HEAD", ConfigError, "changes nothing"),
    ],
)
def test_what_cannot_be_copied_is_refused_in_a_line(
    repository: Path, change: Callable[[Path], object], versions: str, kind: type[Agent0Error], words: str
) -> None:
    change(repository)
    with pytest.raises(kind) as told:
        read_repository(repository, versions)
    assert words in str(told.value) and "\n" not in str(told.value)


def test_changes_are_written_once_with_the_mode_that_was_there(tmp_path: Path) -> None:
    folder = laid(tmp_path, {**BROKEN, "old.py": b"old"})
    (folder / "sums.py").chmod(0o755)
    before = {**BROKEN, "old.py": b"old"}
    after = {**SOUND, "new/deep.py": b"new"}
    assert write_back(folder, before, after) == ["new/deep.py", "old.py", "sums.py"]
    assert content(folder) == after and (folder / "sums.py").stat().st_mode & 0o777 == 0o755
    assert write_back(folder, before, after) == []


@pytest.mark.parametrize("spoil", ["changed", "link", "linked folder", "gone"])
def test_nothing_is_written_where_anything_is_not_as_it_was(tmp_path: Path, spoil: str) -> None:
    folder, outside = laid(tmp_path / "repo", {**BROKEN, "b/z.py": b"z"}), laid(tmp_path / "out", {"z.py": b"z"})
    if spoil == "changed":
        laid(folder, {"b/z.py": b"mine"})
    elif spoil == "link":
        (folder / "b/z.py").unlink()
        (folder / "b/z.py").symlink_to(outside / "z.py")
    elif spoil == "linked folder":
        shutil.rmtree(folder / "b")
        (folder / "b").symlink_to(outside)
    else:
        (folder / "b/z.py").unlink()
    before = content(folder)
    with pytest.raises(OperationError):
        write_back(folder, {**BROKEN, "b/z.py": b"z"}, {**SOUND, "b/z.py": b"changed"})
    assert content(folder) == before and content(outside) == {"z.py": b"z"}
