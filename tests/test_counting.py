"""An iteration has one number everywhere, the first being 0: in ids, rows, SQL, Python, flags, URLs, sentences."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.assembly.runtime.progress import Milestone, milestone_line
from agent0.cli import console
from agent0.state.run_state import task_id
from tests.api.conftest import seeing
from tests.api.served import stored
from tests.story import whole_run
from tests.terminal import agent0 as call

ROOT = Path(__file__).parent.parent
ROUNDS = 3
SCREENS = ("agent0/api", "agent0/cli", "agent0/report", "agent0/run", "agent0/verification", "projections")
SHIFTED = re.compile(r"(iteration|number)\b[\w.\"\]]* [+-] 1\b")
LINK = re.compile(r'href="(/runs/r1/iterations/(\d+))["#?]')


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("counting"), whole_run(iterations=ROUNDS))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_flag_of_an_iteration_names_the_tasks_whose_ids_have_its_number(home: Path, number: int) -> None:
    listed = call("task", "list", "r1", "--iteration", str(number), "--json", home=home).json
    assert listed and all(row["iteration"] == number and row["task"].startswith(f"t{number}-") for row in listed)
    query = f"SELECT DISTINCT iteration AS n, substr(task, 1, 2) AS prefix FROM tasks WHERE iteration = {number}"
    assert call("projections", "query", query, "--json", home=home).json == [{"n": number, "prefix": f"t{number}"}]
    begun = call("events", "show", f"iteration:{number}", "--run", "r1", "--json", home=home).json
    following = call("events", "show", str(begun["seq"] + 1), "--json", home=home).json
    assert following["task"] == task_id(number, 0)


def test_a_table_shows_the_number_that_its_rows_have(capsys: pytest.CaptureFixture[str]) -> None:
    console.table([{"iteration": -1}, {"iteration": 0}, {"iteration": 1}, {"other": 2}], False)
    assert capsys.readouterr().out.split() == ["iteration", "untrained", "0", "1", "-"]


def test_a_page_of_an_iteration_has_the_tasks_of_its_number(home: Path) -> None:
    client = seeing(home)
    links = {int(number): path for path, number in LINK.findall(client.get("/runs/r1").text)}
    assert sorted(links) == [*range(ROUNDS)]
    for number, path in links.items():
        page = client.get(path).text
        assert f"<h1>Iteration {number}</h1>" in page
        assert set(re.findall(r"/tasks/t(\d+)-", page)) == {str(number)}


def test_a_line_of_progress_has_the_number_of_what_was_trained() -> None:
    milestone = Milestone(4, None, None, None, None, "", 1, 1.0, None)
    assert milestone_line(milestone, 10).startswith("iteration 4 of 0-9 ")


def _shifts() -> Iterator[str]:
    """Where an iteration is shown or asked for by another number than its own."""
    for folder in SCREENS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".jinja":
                yield from (f"{path.name}: {line}" for line in path.read_text().splitlines() if "iteration + 1" in line)
            elif path.suffix == ".py":
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.FormattedValue) and "iteration" in (text := ast.unparse(node.value)):
                        yield from [f"{path.name}: {text}"] if SHIFTED.search(text) else []


def test_nothing_that_people_read_adds_one_to_an_iteration() -> None:
    assert [*_shifts()] == []
