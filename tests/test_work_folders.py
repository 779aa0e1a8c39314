"""Work folders written to a disk and read back: no name leads out of its folder, and nothing odd is read."""

import os
from pathlib import Path

import pytest

from agent0.assembly.tooling.workspaces import read, write
from agent0.errors import ConfigError, OperationError


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a//b", "", ".", "a/.", "a\0b", "x" * 300, "\ud800"])
def test_names_that_lead_out_or_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperationError, match="cannot be written"):
        write({name: b"x"}, tmp_path / "out")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_name_that_is_a_file_and_a_folder_is_refused(tmp_path: Path) -> None:
    for names in (("a", "a/b"), ("a/b", "a")):
        with pytest.raises(OperationError, match="cannot be written"):
            write(dict.fromkeys(names, b"x"), tmp_path / f"out-{names[0][-1]}")


def test_odd_names_come_back_and_those_that_are_no_text_are_refused(tmp_path: Path) -> None:
    files = {"söng": b"1", "-rf": b"2", "$(id)": b"3", "a\nb/\x1b[2J": b"4"}
    write(files, tmp_path / "out")
    assert read(tmp_path / "out") == files
    (tmp_path / "out" / os.fsdecode(b"\xff\xfe")).touch()
    with pytest.raises(ConfigError, match="no text"):
        read(tmp_path / "out")


def test_a_folder_that_does_not_fit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    with (tmp_path / "big" / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match="does not fit"):
        read(tmp_path / "big")
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd" / "pipe")
    with pytest.raises(ConfigError, match="no plain file"):
        read(tmp_path / "odd")
