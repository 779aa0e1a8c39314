"""How high students stand on a ladder, as studies tell it."""

from typing import Any

from agent0.events.checkpoints import CheckpointEvaluated
from agent0.experiments.ablation_results import Outcome, as_json, from_json
from agent0.experiments.ladder_rows import ladder_rows
from agent0.tasks.curriculum.ladder_height import added, height


def scored(checkpoint: str, by_level: dict[str, float], **more: Any) -> CheckpointEvaluated:
    plain = {"evaluation": f"{checkpoint}-test", "split": "test", "n": 4, "correct": 2, "tool_use": 0.0, **more}
    plain |= {"accuracy": 0.5, "lower95": 0.1, "upper95": 0.9}
    return CheckpointEvaluated.model_validate(
        {"checkpoint": checkpoint, "iteration": -1, "by_level": by_level, **plain}
    )


def test_height_is_the_highest_level_half_solved_whatever_lies_between() -> None:
    assert height({"4": 1.0, "9": 0.5, "10": 0.49, "12": 0.6, "30": 0.0}) == 12
    assert height({"4": 0.4}) == height({}) == 0
    assert added({"4": 1.0, "9": 0.5, "30": 0.25}) == 1.75


def test_a_row_tells_of_the_base_the_last_student_and_its_teachers_text() -> None:
    scores = (
        scored("base", {"4": 1.0, "5": 0.25}),
        scored("base", {"4": 1.0, "5": 1.0}, forced_tool=True),
        scored("student-7", {"4": 1.0, "5": 1.0}, split="validation"),
        scored("student-7", {"4": 1.0, "5": 0.75}),
    )
    seen = tuple({"written_level": float(n), "readable": 1.0} for n in range(6))
    one = Outcome("trained", 3, "r", "student-7", 8, scores, measures=seen)
    (row,) = ladder_rows([one])
    assert (row["height_untrained"], row["added_untrained"]) == (4, 1.25)
    assert (row["height"], row["added"]) == (5, 1.75)
    assert (row["written_level_first"], row["written_level"], row["readable"]) == (0.0, 3.5, 1.0)
    assert row["half_solved"] is None, "unknown is not 0"
    assert ladder_rows([from_json(as_json(one))]) == [row]
