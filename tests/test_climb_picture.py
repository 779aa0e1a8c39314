"""What a run and a study on a ladder show in a terminal of 80 columns: accuracy by level moving right, one line an
iteration elsewhere, and three lines at the end. Drawn from what two runs recorded (``data/climb.jsonl``)."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent0.assembly.ablations.ablation_run import decode_progress, decode_standing, encode_progress, encode_standing
from agent0.assembly.runtime.progress import Milestone, Pace, Progress
from agent0.cli import console
from agent0.cli.experiments.study_pages import Standings, end_lines, shown
from agent0.cli.runs.live import Bar, Lines
from agent0.experiments.ablation_runs import AblationRun
from agent0.report.charts.ladder_picture import BLOCKS, DIGITS, WIDE, Row, latest, picture
from agent0.report.climb_summary import run_lines, study_lines
from agent0.settings import RunConfig
from agent0.tasks.curriculum.ladder_height import Standing, on_ladder
from tests.play import play
from tests.test_climb import CLIMB, ByRole, little
from tests.world import ports, started

TEN = CLIMB.model_copy(update={"iterations": 10})
DATA = Path(__file__).parent / "data"


def recorded(arm: str) -> list[tuple[int, Standing]]:
    """What a run's validation came to: (iteration, -1 for its base; by level)."""
    lines = [json.loads(line) for line in (DATA / "climb.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["iteration"], Standing(line["by_level"])) for line in lines if line["arm"] == arm]


def milestones(arm: str = "ours") -> list[Milestone]:
    made = Milestone(0, 0.2, 0.0, 1.0, 0.5, "promoted", 4391, 38.0, 339.0)
    return [replace(made, iteration=n, standing=replace(at, frontier=9)) for n, at in recorded(arm)]


def expected(name: str) -> str:
    return (DATA / "pictures" / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal of 80 columns."""
    out = io.StringIO()
    drawn_on = Console(file=out, force_terminal=True, width=80, height=40, color_system=None, highlight=False)
    monkeypatch.setattr(console, "console", lambda stderr=False: drawn_on)
    return out


def last_frame(out: io.StringIO) -> str:
    """What stands on the screen after the last drawing, without what was wiped."""
    return out.getvalue().rpartition("\x1b[2K")[2].replace("\r", "")


def test_a_picture_has_a_row_for_each_student_that_reaches_further_right() -> None:
    rows = [Row("base" if n < 0 else f"iteration {n}", at) for n, at in recorded("ours")]
    lines = picture(latest(rows), "validation", 6)
    assert "\n".join(lines) == expected("run")
    assert max(map(len, lines)) <= WIDE
    ascii_only = picture(rows, "validation", 6, DIGITS)
    assert all(line.isascii() for line in ascii_only) and [len(line) for line in ascii_only[1:]] == [
        len(line) for line in lines[1:]
    ]


def test_many_iterations_leave_the_base_and_the_newest_and_many_levels_fit() -> None:
    rows = [Row(f"{n}", Standing({str(level): n / 100 for level in range(1, 55)})) for n in range(90)]
    lines = picture(latest(rows), "validation")
    assert [line.split()[0] for line in lines[2:]] == ["0", *map(str, range(78, 90))]
    assert max(map(len, lines)) <= WIDE and picture([Row("base", Standing({}))], "validation") == []


def test_a_terminal_shows_the_picture_above_the_bar_and_takes_it_away_at_the_end(screen: io.StringIO) -> None:
    with Bar() as bar:
        for made in milestones():
            bar.passed(made, CLIMB)
        bar.show(Pace("tasks", 9, 120, 512, 8.1, 40.0))
        frame = last_frame(screen)
    assert frame.splitlines()[:-1] == expected("run").splitlines()
    assert "iteration 9: tasks and attempts 120/512" in frame
    assert max(map(len, frame.splitlines())) <= WIDE
    assert "base" not in last_frame(screen)


def test_a_run_on_no_ladder_has_its_lines_as_before(screen: io.StringIO) -> None:
    with Bar() as bar:
        bar.passed(replace(milestones()[1], standing=None), TEN)
    assert "iteration 0 of 0-9  validation 0.200  tool use 0.000  frontier 1.000" in screen.getvalue()


def test_a_pipe_gets_one_line_an_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    for made in milestones():
        Lines().passed(made, TEN)
    said = capsys.readouterr().err
    assert said.rstrip("\n") == expected("lines")
    assert max(map(len, said.splitlines())) <= WIDE


async def test_milestones_of_a_ladder_say_where_the_newest_student_stands() -> None:
    held = ports()
    held["models"] = ByRole(held["models"].open(CLIMB.teacher), held["models"].open(CLIMB.teacher))
    progress = Progress()
    told = [made for one in await play(started(little()), held) if (made := progress.feed(one))]
    assert [one.iteration for one in told][:1] == [-1] and len(told) >= 2
    stands = [one.standing for one in told]
    assert all(one and set(one.by_level) == {"4", "5", "6"} for one in stands), "of the newest that was scored"
    assert not on_ladder(RunConfig()) and on_ladder(CLIMB)


def runs(arm: str) -> AblationRun:
    return AblationRun(arm, 0, f"s-{arm}-0", CLIMB)


def test_a_study_shows_its_variants_one_below_the_other(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent0.cli.experiments.study_pages.is_terminal", lambda: True)
    standings = Standings(["ours", "uniform", "frozen"])
    with shown(standings, quiet=False) as (say, add):
        for arm in ("frozen", "ours"):
            for iteration, at in recorded(arm):
                add(runs(arm), iteration, at)
        say("ours-0 is done. 1 of 2 runs done.")
        frame = last_frame(screen)
    assert "\n".join(standings.lines(BLOCKS)) == expected("study")
    assert frame.splitlines() == [*expected("study").splitlines(), "ours-0 is done. 1 of 2 runs done."]


def test_a_study_on_a_pipe_says_its_lines_and_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(Standings(), quiet=False) as (say, add):
        add(runs("ours"), 0, recorded("ours")[1][1])
        say("ours-0 is done.")
    assert capsys.readouterr().err == "ours-0 is done.\n"


def test_where_a_student_stands_crosses_the_pipe_to_the_study() -> None:
    iteration, at = recorded("ours")[3]
    line = encode_standing(iteration, at).encode()
    assert decode_standing(line) == (iteration, at) and decode_progress(line) == ("", None)
    assert decode_standing(encode_progress("iteration 1", 2.0).encode()) is None
    assert decode_standing(b'{"iteration": 1}') is decode_standing(b"x") is None


def row(arm: str, seed: int, height: int | None, added: float | None) -> dict[str, Any]:
    return {
        "arm": arm, "seed": seed, "height_untrained": 7, "added_untrained": 4.28, "height": height, "added": added,
    }  # fmt: skip


def test_a_study_ends_with_what_was_learned_against_what_and_what_may_not_be_said() -> None:
    ladder = [row("ours", 0, 12, 8.28), row("frozen", 0, 7, 3.81)]
    about = dict.fromkeys(("ours", "frozen", "coin"), "")
    learned, controls, limits = study_lines({"about": about, "ladder": ladder}, "page.html")
    assert "ours T 7 -> 12, S 4.28 -> 8.28 (1 seed" in learned
    assert "frozen T 7, S 3.81" in controls and "coin" not in controls
    assert "one seed" in limits and "coin (not finished)" in limits and limits.endswith("page.html")
    two = [*ladder, row("ours", 1, 9, 5.5), row("frozen", 1, 9, 5.6)]
    learned, controls, limits = study_lines({"about": {"ours": "", "frozen": ""}, "ladder": two}, "p")
    assert "T 7/7 -> 12/9" in learned and "frozen T 7/9" in controls
    assert "ours above frozen (not so in S on every seed)" in limits and "one seed" not in limits
    assert study_lines({"about": about, "ladder": [row("ours", 0, None, None)]}, "p") == []


def test_a_lone_run_names_the_control_that_it_lacks() -> None:
    test = [
        {"evaluation": "base-test", "forced_tool": 0, "by_level": {"4": 1.0, "5": 0.4}},
        {"evaluation": "base-test-forced", "forced_tool": 1, "by_level": {"4": 1.0, "5": 1.0}},
        {"evaluation": "student-9-test-final", "forced_tool": 0, "by_level": {"4": 1.0, "5": 0.6}},
    ]
    learned, control, limits = run_lines({"test": test, "run": "r1", "config": {"curriculum": {}}})
    assert "T 4 -> 5, S 1.40 -> 1.60" in learned
    assert "agent0 experiment ablation --profile climb" in control and "r1" in limits
    assert run_lines({"test": test[:2], "run": "r1", "config": {}}) == []


def test_a_study_that_has_not_begun_ends_without_a_picture() -> None:
    assert end_lines({"about": {"ours": ""}, "ladder": []}, Standings(), "p") == []
