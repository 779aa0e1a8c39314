"""What people see: commands on terminals of 80 and 120 columns, as files in tests/data/screens.

``python -m tests.test_screens`` writes them again.
"""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.cli import console, layout, lookup
from agent0.cli.layout import Screen, record_lines, table_lines
from agent0.cli.log import events
from agent0.events.base import Recorded, record
from agent0.events.checkpoints import EvaluationItemScored
from tests.play import Played
from tests.story import benchmark_run, experiment, renumbered, whole_run
from tests.story_ends import failed_run
from tests.terminal import Said
from tests.terminal import agent0 as call
from tests.test_report import told

SCREENS = Path(__file__).parent / "data" / "screens"
COMMANDS = (
    "run list",
    "run show r1",
    "run show r1 --full",
    "run show r8",
    "run story r1",
    "task list r1 --limit 8",
    "task show t0-000 r1",
    "trajectory list r1 --limit 8",
    "trajectory show t0-000-a0 r1",
    "reward explain t0-000 r1",
    "curriculum show r1",
    "events grep t0-000 --limit 8",
    "experiment list",
    "model list",
    "model show r1/student-0",
    "failures list --status all",
    "run diff r1 r8",
    "events show 1",
)
WIDTHS = (80, 120)
ID = re.compile(r"\b(?:t\d+-\d{3}(?:-a\d+)?|r\d(?:/\w+-\d+)?|(?:student|teacher)-\d+)\b")
NOW = datetime(2026, 1, 2, 3, 40, 10, tzinfo=UTC)


@cache
def told_events() -> list[Recorded]:
    events = [*whole_run(iterations=3)]
    for more in (failed_run(), experiment(), benchmark_run()):
        events += renumbered(more, len(events))
    return events


class Stored(Played):
    """The events as a log that is read."""

    async def last_seq(self, run: str = "") -> int:
        return max(one.seq for one in self.recorded if run in ("", one.run))


@asynccontextmanager
async def stored_log(_: object) -> AsyncIterator[Stored]:
    yield Stored(told_events())


def said(home: Path, command: str) -> Said:
    """What a command says, which reads the log from memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent0.cli.runs.states.sound_log", stored_log)
        return call(*command.split(), home=home)


def make(home: Path) -> None:
    """Tables of two runs in ``home``, without a log."""
    (home / "tables").mkdir()
    told(told_events(), home / "tables" / "view.db").close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screens")
    make(folder)
    return folder


def shown(home: Path, command: str, width: int) -> str:
    """The command and what stands on the screen below it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setattr("agent0.cli.console.present", lambda: NOW)
        found = said(home, command)
    assert found.code == 0, found.err
    return f"$ agent0 {command}\n{found.out}"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_shows_on_a_terminal_what_its_file_has(home: Path, command: str, width: int) -> None:
    assert shown(home, command, width) == _file(command, width).read_text()


@pytest.mark.parametrize("width", (80, 100, 200))
@pytest.mark.parametrize("command", COMMANDS)
def test_no_id_is_split_and_no_line_is_wider_than_the_screen(home: Path, command: str, width: int) -> None:
    piped = set(ID.findall(said(home, command).out))
    lines = shown(home, command, width).splitlines()
    assert [line for line in lines if layout.columns_of(line) > width and " " in line.strip()] == []
    for word in ID.findall("\n".join(lines)):
        assert word in piped or word in command, f"{word} is part of an id"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_gets_whole_values_without_padding(home: Path, command: str) -> None:
    piped = said(home, command).out
    assert not re.search(r" {2,}\t| +$", piped, re.MULTILINE) and "Left out at" not in piped


def test_a_digest_is_short_on_a_terminal_and_whole_elsewhere() -> None:
    digest = "0123456789ab" + "c" * 52
    shown = table_lines([{"name": "a", "sha": digest}], ("name", "sha"), Screen(40, NOW))
    assert shown[-1].split() == ["a", "0123456789ab…"]
    assert record_lines({"sha": digest}, Screen(40, NOW)) == ["sha  0123456789ab…"]
    assert record_lines({"sha": digest}, Screen(80, NOW))[0].endswith(digest)
    assert table_lines([{"sha": digest}], ("sha",), None)[-1] == digest


def test_times_are_short_on_a_terminal_and_whole_elsewhere() -> None:
    rows = [{"seq": 1, "time": "2026-01-02T01:15:31.250Z", "started": "2026-01-02T03:04:00Z"}]
    last = table_lines(rows, list(rows[0]), Screen(80, NOW))[-1]
    assert "01:15:31" in last and "36 min ago" in last and "2026" not in last
    assert layout.record_lines(rows[0], Screen(80, NOW))[1:] == [
        "time     01:15:31, 2 h ago",
        "started  03:04:00, 36 min ago",
    ]
    assert layout.record_lines(rows[0], None)[1] == "time\t2026-01-02T01:15:31.250Z"
    assert table_lines(rows, list(rows[0]), None)[-1] == "1\t2026-01-02T01:15:31.250Z\t2026-01-02T03:04:00Z"
    yesterday = (NOW - timedelta(days=1, minutes=1)).isoformat()
    assert layout.clock(yesterday, NOW) == "01-01 03:39:10" and layout.ago(yesterday, NOW) == "1 d ago"


words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12)
cell = st.one_of(st.none(), st.integers(-(10**9), 10**9), st.floats(-(10**9), 10**9), words,
                 st.lists(words, min_size=2, max_size=30).map(" ".join))  # fmt: skip


@pytest.mark.parametrize("value", [1e-4, 2.5e-3, -3e-6, 0.5])
def test_no_number_but_nought_reads_as_nought(value: float) -> None:
    assert float(layout.format_value(value)) == pytest.approx(value) and layout.format_value(0.0) == "0.000"


@given(st.lists(st.tuples(*[cell] * 6), min_size=1, max_size=5), st.sampled_from([40, 80, 100, 200]))
def test_a_table_fits_splits_no_word_and_names_what_it_leaves_out(rows: list[tuple[object, ...]], width: int) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    held = [dict(zip(names, row, strict=True)) for row in rows]
    lines = table_lines(held, names, Screen(width, NOW), keep=("f",))
    assert all(len(line) <= width for line in lines)
    table, _, note = "\n".join(lines).partition("Left out at")
    left_out = {
        name for name in names if re.search(rf"\b{name}[,.]", note.partition("columns:")[2].partition("A wider")[0])
    }
    assert "a" not in left_out
    assert set(table.splitlines()[0].split()) | left_out == set(names)
    known = {word for row in held for value in row.values() for word in layout.format_value(value).split()}
    assert {word.rstrip("…") for line in table.splitlines()[2:] for word in line.split()} - {""} <= known


@pytest.mark.parametrize("width", (80, 100))
def test_long_ids_of_runs_that_differ_stay_whole(monkeypatch: pytest.MonkeyPatch, home: Path, width: int) -> None:
    names = ["countdown-by-reward-alone-third-seed-tasks-a1b2", "countdown-by-reward-alone-fourth-seed-task-c3d4"]
    state = {"iteration": [-1, 1], "student": ["base", "student-1"]}
    found = {"settings": {"seed": [1, 2]}, "state": state, "common_until": 0}

    async def compare(log: object, *runs: str) -> dict[str, Any]:
        return found

    monkeypatch.setattr("agent0.cli.runs.states.compare_states", compare)
    monkeypatch.setattr(lookup, "run_id", lambda run: names[int(run)])
    lines = shown(home, "run diff 0 1", width).splitlines()[1:]
    assert lines[:2] == [f"A  {names[0]}", f"B  {names[1]}"] and not any("Left out" in line for line in lines)
    assert ["iteration", "untrained", "1"] in [line.split() for line in lines]


@pytest.mark.parametrize("width", (80, 100))
def test_a_line_about_an_item_has_its_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    scored = next(one.event for one in told_events() if isinstance(one.event, EvaluationItemScored))
    scored = scored.model_copy(update={"evaluation": "student-0-test-final", "number": 7, "correct": False})
    monkeypatch.setenv("COLUMNS", str(width))
    events._print(record(scored, run="r1", time=NOW), as_json=False)
    line = capsys.readouterr().out.rstrip()
    assert len(line) <= width and line.partition("student-0-test-final-7 ")[2].startswith("wrong")


def test_a_head_is_not_cut_at_its_hyphens() -> None:
    heads = ["what", "the-long-name-of-a-run-0a1b2c", "the-long-name-of-another-run-3d4e5f"]
    rows = [dict.fromkeys(heads, "many words " * 9)]
    lines = table_lines(rows, heads, Screen(100, NOW), heads=dict(zip(heads, heads, strict=True)))
    assert lines[0].split() == heads and max(map(len, lines)) <= 100


def test_prose_of_a_card_is_cut_between_words_on_a_terminal_only(home: Path) -> None:
    piped = call("tiny", "card", home=home).out
    lines = shown(home, "tiny card", 80).splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("|")] == []
    assert "\n".join(lines[1:]).split() == piped.split() and max(map(len, piped.splitlines())) > 80


def test_people_are_told_of_how_many_a_limit_shows(home: Path) -> None:
    few = call("task", "list", "r1", "--limit", "4", home=home)
    assert "4 of 18; --limit shows more." in few.err
    assert "--limit" not in call("task", "list", "r1", "--limit", "18", home=home).err
    many = console.limited(lambda n: [{"x": 1}] * min(n, 20_000), 10)
    assert many.more == "10 of more than 10,000; --limit shows more." and len(many) == 10


def _file(command: str, width: int) -> Path:
    name = command.replace(" --", "-").replace(" ", "-").replace("/", "-")
    return SCREENS / f"{name}.{width}.txt"


def _written() -> Iterator[Path]:
    import tempfile

    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for command in COMMANDS:
            for width in WIDTHS:
                path = _file(command, width)
                path.write_text(shown(Path(folder), command, width))
                yield path


if __name__ == "__main__":
    sys.stdout.writelines(f"{written}\n" for written in _written())
