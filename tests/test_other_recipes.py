"""The guide's search over recipes is executed, with a stand-in for Optuna that tries two."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent0.events.checkpoints import CheckpointEvaluated
from tests.pasts import events_of, keep, tell

GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "replay-experiments.md"


class _Trial:
    """Tries each choice in turn, and rates from the least on."""

    def __init__(self, number: int) -> None:
        self.number = number

    def suggest_categorical(self, _: str, choices: list[int]) -> int:
        return choices[self.number]

    def suggest_float(self, _: str, low: float, high: float, log: bool) -> float:
        return min(low * 10**self.number, high)


class _Study:
    """Two trials, and what each came to."""

    def __init__(self, direction: str) -> None:
        self.direction, self.trials, self.scores = direction, [_Trial(0), _Trial(1)], list[float]()

    def optimize(self, score: Callable[[_Trial], float], n_trials: int) -> None:
        assert n_trials >= len(self.trials) and self.direction == "maximize"
        self.scores = [score(trial) for trial in self.trials]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_sandbox")
def test_the_guides_search_trains_scores_on_validation_alone_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = keep(tmp_path, *tell())
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "optuna", SimpleNamespace(create_study=_Study))
    section = GUIDE.read_text(encoding="utf-8").partition("## Another recipe")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["exp-recipe-0", "exp-recipe-1"]
    assert all("adjusted_p" in line for line in lines)
    assert len(names["search"].scores) == 2 and all(0 <= score <= 1 for score in names["search"].scores)
    for name in names["tried"]:
        scored = [event.event for event in events_of(settings, name)]
        assert {event.split for event in scored if isinstance(event, CheckpointEvaluated)} == {"validation"}
