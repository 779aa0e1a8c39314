"""A climb is trained again from its stored run: as it was, to the same adapters; under permuted verdicts, to others.
Nothing is generated anew. What the latter solve is measured in docs/results/studies.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kept_open import attached
from tests.terminal import agent0 as call

pytestmark = pytest.mark.slow  # part of make crash
SMALL = (
    *("--profile", "climb", "--seed", "0", "--iterations", "2", "--tasks", "64", "--name", "climbed"),
    *(
        "-s",
        "run.evaluation.validation=54",
        "-s",
        "run.training.student.steps=20",
        "-s",
        "run.training.student.optimizer_state=continued",
        "-s",
        "run.evaluation.test=0",
        "-s",
        "sandbox.workers=1",
    ),
)
RETRAIN = ("experiment", "retrain", "climbed", "--json", "--name")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a climb of two iterations."""
    with attached(tmp_path_factory.mktemp("climbed")) as folder:
        said = call("run", "start", *SMALL, home=folder)
        assert said.code == 0, said.err
        yield folder


def rows(home: Path, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("projections", "query", query, "--json", home=home).json
    return found


def adapters(home: Path, run: str) -> list[str]:
    asked = f"SELECT adapter FROM checkpoints WHERE role = 'student' AND run = '{run}' AND adapter != '' ORDER BY 1"
    return [row["adapter"] for row in rows(home, asked)]


def test_the_log_gives_the_adapters_of_a_climb_again_and_permuted_verdicts_give_others(home: Path) -> None:
    run = str(call("run", "list", "--json", home=home).json[-1]["run"])
    same = call(*RETRAIN, "same", home=home)
    assert same.code == 0 and same.json["sameness"] == "The adapters are the very same as the run's own.", same.err
    assert adapters(home, "exp-same") == adapters(home, run) != []
    permuted = call(*RETRAIN, "permuted", "-s", "training.student.gate=permuted", home=home)
    assert permuted.code == 0, permuted.err
    assert not set(adapters(home, "exp-permuted")) & set(adapters(home, run))
    attempts = "SELECT count(*) AS n FROM events WHERE type = 'TaskAttempted'"
    assert rows(home, attempts)[0]["n"] == 128, "nothing was generated anew"
