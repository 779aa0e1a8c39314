"""What is said first: help by question, answers before tables, progress in words; and what bad input gets."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from agent0.assembly.runtime.progress import Progress
from agent0.cli import build, tutorial
from agent0.cli.examples import EXAMPLES, examples_of
from agent0.cli.first_page import GROUPS, first_page
from agent0.cli.runs.live import describe
from agent0.events.alarms import DependencyLost, DependencyRestored
from agent0.events.base import record
from agent0.report.answers import claim_words, held_out_gain
from agent0.settings import RunConfig
from agent0.state.run_state import RunState, TaskState
from agent0.stats.paired_tests import LEVEL, UNSHOWN, agreeing, compare, exact_interval, holm, mcnemar
from tests.story import whole_run
from tests.terminal import agent0 as call
from tests.test_report import told

ROOT = get_command(build())


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    if not below:
        yield path
    for name, inner in below.items():
        yield from commands(inner, (*path, name))


# --- help ------------------------------------------------------------------------------------------------------------


def test_the_first_page_has_every_noun_once_under_a_question() -> None:
    named = [noun for nouns in GROUPS.values() for noun in nouns]
    assert sorted(named) == sorted(ROOT.commands)  # type: ignore[attr-defined]
    assert call("--help").out == call().out == first_page() + "\n"
    assert max(map(len, first_page().splitlines())) <= 80
    assert "Others:\n  greet" in first_page(["greet"])


@pytest.mark.parametrize("path", [*commands()], ids=" ".join)
def test_every_command_has_examples_in_its_help(path: tuple[str, ...]) -> None:
    found = examples_of(" ".join(path))
    assert found
    said = " ".join(call(*path, "--help").out.split())
    assert all(" ".join(line.split()) in said for line in found)


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_read_by_the_command_line(line: str) -> None:
    """Parsed to the last word, and not carried out."""
    _, *words = shlex.split(line)
    command: Any = ROOT
    while below := getattr(command, "commands", {}):
        command = below[words.pop(0)]
    if "--help" not in words:
        for parameter in command.params:
            parameter.callback = None
        command.make_context("agent0", words)


@pytest.mark.slow
def test_the_tutorial_walks_through_a_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[tuple[str, ...]] = []

    def execute(words: Any, home: Path) -> int:
        done.append((*words,))
        small = ("--tasks", "4", "-s", "run.evaluation.validation=4") if words[:2] == ("run", "start") else ()
        return call(*words, *small, home=home).code

    tutorial.walk(tmp_path, execute, waits=False)
    assert done == [step.command for step in tutorial.STEPS]
    assert tutorial.END.split()[0] in capsys.readouterr().out


# --- answers ---------------------------------------------------------------------------------------------------------

outcomes = st.integers(5, 80).flatmap(
    lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n) for _ in range(4)])
)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.05, 0.025, 0.01]))
def test_an_exact_interval_excludes_zero_where_its_test_is_significant(
    gained: int, lost: int, same: int, level: float
) -> None:
    low, high = exact_interval(gained, lost, max(1, gained + lost + same), level)
    assert (mcnemar(gained, lost) < level) == (low > 0 or high < 0)
    assert low <= (gained - lost) / max(1, gained + lost + same) <= high


@given(outcomes)
def test_a_verdict_never_stands_beside_an_interval_that_says_otherwise(held: tuple[list[bool], ...]) -> None:
    first, *others = ([float(one) for one in side] for side in held)
    found = [compare(first, other, rounds=200) for other in others]
    for one, adjusted in zip(found, holm([one.p for one in found]), strict=True):
        shown = agreeing(one, adjusted)
        if adjusted >= LEVEL:
            assert shown.claimed(adjusted) == UNSHOWN and shown.lower95 <= 0 <= shown.upper95
        assert shown.lower95 <= shown.mean <= shown.upper95
        row = {"word": shown.claimed(adjusted), "adjusted_p": adjusted, **vars(shown)}
        assert ("not significant (adjusted p" in claim_words(row)) == (row["word"] == UNSHOWN)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "tables").mkdir()
    told([*whole_run(iterations=2)], folder / "tables" / "view.db").close()
    return folder


def test_what_concludes_begins_with_three_lines_and_shows_tables_on_demand(home: Path) -> None:
    answer = call("run", "show", "r1", "--json", home=home).json["answer"]
    assert (
        1 <= len(answer) <= 3
        and answer[1].startswith(("Learned: ", "Measured: "))
        and "Not to be claimed: " in answer[2]
    )
    assert "untrained with its tool forced" in answer[2]
    for words in (("run", "show", "r1"), ("report", "r1")):
        short, full = call(*words, home=home), call(*words, "--full", home=home)
        assert short.out.splitlines()[: len(answer)] == full.out.splitlines()[: len(answer)] == answer
        assert "\t" not in short.out and "\t" in full.out
    page = Path(call("report", "r1", home=home).out.splitlines()[-1]).read_text()
    assert page.index('class="answer"') < page.index("<table")


def test_what_was_not_shown_is_not_claimed(home: Path) -> None:
    held = call("run", "show", "r1", "--json", home=home).json
    rows = [{**one, "iteration": 1 if one["evaluation"].endswith("final") else -1} for one in held["test"]]
    same = [{**row, "outcomes": "10" * 15} for row in rows]
    assert {row["word"] for row in held_out_gain(same)} == {UNSHOWN}
    assert held_out_gain(same[:-1]) == []


# --- progress --------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_progress_says_when_the_teacher_proposes_and_what_is_waited_for() -> None:
    tasks = {f"t0-{n:03}": TaskState(n, "math", "sums", 1, proposed=n < 2) for n in range(3)}
    state = RunState("r1", 9, replace_config(tasks=3), "", phase="tasks", iteration=0, tasks=tasks)
    progress = Progress(state)
    assert said(progress).startswith("iteration 0: the teacher proposes tasks 2/3")
    lost = DependencyLost(dependency="ollama", waiting="propose_task", message="It does not answer.")
    progress.feed(record(lost, run="r1", time=NOW))
    assert said(progress) == "iteration 0: the teacher proposes tasks: waits for ollama (It does not answer)"
    progress.feed(record(DependencyRestored(dependency="ollama", waiting="propose_task"), run="r1", time=NOW))
    assert "waits" not in said(progress)
    progress.state = replace(state, status="paused")
    assert said(progress) == "iteration 0: the teacher proposes tasks: paused; agent0 run resume r1 goes on"


def replace_config(**changes: int) -> RunConfig:
    return RunConfig(**changes)  # type: ignore[arg-type]


def said(progress: Progress) -> str:
    pace = progress.pace(NOW + timedelta(seconds=1))
    assert pace is not None
    return describe(pace)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("experiment rescore r1 --rewards rules.toml", 2, "weights.novelty = 'much': Input should be a valid number"),
        ("experiment rescore r1 --rewards papr", 2, "Did you mean paper?"),
        ("config validate --set run.rewards.weights.novelty=much", 2, "Input should be a valid number"),
        ("task show t9-999 r1", 1, "has no task 't9-999'"),
        ("reward explain t9-999 r1", 1, "has no task 't9-999'"),
        ("reward explain t0-999-a0 r1", 1, "has no attempt 't0-999-a0'"),
        ("trajectory list r1 --task t9-999", 1, "has no task 't9-999'"),
        ("projections query 'SELECT * FROM taks'", 1, "There is no table 'taks'. Did you mean tasks?"),
        ("projections show taks", 1, "Did you mean tasks?"),
        ("run list", 2, "The data folder cannot be /proc/nowhere. Nothing can be made in /proc."),
        ("report r1 --out no/page.html", 2, "There is no folder no. Make it (mkdir -p no)"),
        ("report r1 --out rules.toml/x.html", 2, "/rules.toml is a file, no folder. Name another place."),
        ("run export r1 --out rules.toml/x/logs", 2, "/rules.toml is a file, no folder. Name another place."),
        ("run export r1 --out no/logs", 2, "There is no folder no."),
        ("model card r1/student-1 --out no/card.md", 2, "There is no folder no."),
        ("curriculum draw r1 --out no/x.svg", 2, "There is no folder no."),
        ("experiment compare r1 r1 --out no/x.html", 2, "There is no folder no."),
        ("experiment ablation --write no/x.md", 2, "There is no folder no."),
        ("projections build --into no/x.db", 2, "There is no folder no."),
        ("events export no/x.tar", 2, "There is no folder no."),
    ],
)
def test_bad_input_gets_one_line_the_mend_and_its_exit_code(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.toml").write_text('set = "agent0"\n[weights]\nnovelty = "much"\n')
    answered = call(*shlex.split(words), home=Path("/proc/nowhere") if words == "run list" else home)
    assert answered.code == code and said in answered.err, answered.err
    assert answered.err.count("\n") == 1 and answered.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rules.toml"]
