"""Manual changes of a run's student: promotion against the gate, rollback, and the comparison of two
checkpoints. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from agent0.errors import NotFoundError, OperationError
from agent0.events.checkpoints import CheckpointPromoted, CheckpointRolledBack, CheckpointTrained
from agent0.state.run_state import Checkpoint, RunState
from agent0.stats.paired_tests import FELL, IMPROVED, UNSHOWN, agreeing, compare, outcomes


def check_promotion(state: RunState, trained: CheckpointTrained) -> None:
    """Check that ``trained`` can become the student.

    Raises:
        OperationError: it is the teacher's, has no adapter, or is the student already.
    """
    name = trained.checkpoint
    if trained.role != "student":
        raise OperationError(f"{name} is the {trained.role}'s.", fix="Promote a checkpoint of the student.")
    if trained.adapter is None:
        raise OperationError(f"{name} has no adapter.", f"There was nothing to learn from: it is {trained.parent}.")
    if state.student.id == name:
        raise OperationError(f"{name} is the student already.")


def promotion(state: RunState, trained: CheckpointTrained, accuracy: float, reason: str) -> CheckpointPromoted:
    """The event that makes ``trained`` the run's student, whatever the gate decided. ``accuracy`` is its validation
    accuracy.

    Raises:
        OperationError: as ``check_promotion`` does.
    """
    check_promotion(state, trained)
    return CheckpointPromoted(
        checkpoint=trained.checkpoint,
        iteration=trained.iteration,
        accuracy=accuracy,
        against=state.student.score.accuracy if state.student.score else None,
        reason=reason or "a person's word",
        by="person",
        adapter=trained.adapter,
    )


def rollback(state: RunState, to: str, reason: str) -> CheckpointRolledBack:
    """The event that makes the earlier checkpoint ``to`` the student again; what was promoted since is dropped.

    Raises:
        NotFoundError: it was never promoted.
        OperationError: it is the student already.
    """
    names = [checkpoint.id for checkpoint in state.promoted]
    if to not in names:
        raise NotFoundError(f"{to[:80]!r} was not promoted in run {state.run}.", f"Known: {', '.join(names)}.")
    if to == names[-1]:
        raise OperationError(f"{to} is the student already.")
    why = reason or "a person's word"
    return CheckpointRolledBack(checkpoint=names[-1], to=to, reason=why, let_go=state.since(to))


def kept(state: RunState) -> tuple[Checkpoint, ...]:
    """The checkpoints whose adapters a run still needs: promoted students that were not dropped, teacher, candidate."""
    tested = [state.tested_teacher.checkpoint] if state.tested_teacher else []
    candidate = state.in_training.candidate
    return (*state.promoted, state.teacher, *tested, *([candidate] if candidate else []))


Row = Mapping[str, Any]
_WORDS = {IMPROVED: "the second is better", FELL: "the second is worse", UNSHOWN: "not significant"}
_SET = ("validation", "seed", "levels")
"""Settings of an evaluation that decide which items validation is made of."""


class CheckpointComparison(TypedDict):
    """Two checkpoints side by side: their last validation scores, the settings in which their recipes differ, the
    fields of the paired ``Difference`` (None: they cannot be tested), and what it says in words."""

    models: list[dict[str, object]]
    recipe: list[dict[str, object]]
    test: dict[str, float] | None
    word: str


def side_by_side(
    checkpoints: Sequence[Row], scores: Sequence[Sequence[Row]], plans: Sequence[Row]
) -> CheckpointComparison:
    """Compare two checkpoints' rows, given the evaluations and settings of their runs.

    The paired test of their last validation scores where both are of the same items, and where their recipes differ.
    """
    last = [
        _validation(checkpoint["checkpoint"], evaluations)
        for checkpoint, evaluations in zip(checkpoints, scores, strict=True)
    ]
    models = [_model_row(checkpoint, score) for checkpoint, score in zip(checkpoints, last, strict=True)]
    same = all(plans[0].get(name) == plans[1].get(name) for name in _SET)
    first, second = last
    recipes = [dict(checkpoint["recipe"] or {}) for checkpoint in checkpoints]
    keys = sorted({*recipes[0], *recipes[1]})
    rows = [{"setting": key, "first": recipes[0].get(key), "second": recipes[1].get(key)} for key in keys]
    differing = [row for row in rows if row["first"] != row["second"]]
    if not first or not second or not same or len(first["outcomes"]) != len(second["outcomes"]):
        word = "They were not scored on the same items, so nothing can be tested: agent0 model ab."
        return {"models": models, "recipe": differing, "test": None, "word": word}
    test = compare(outcomes(first["outcomes"]), outcomes(second["outcomes"]))
    test = agreeing(test, test.p)
    verdict = _WORDS[test.claimed(test.p)]
    verdict += f" (smallest detectable effect {100 * test.detectable:.1f} points)" if verdict == _WORDS[UNSHOWN] else ""
    span = f"{100 * test.mean:+.1f} points ({100 * test.lower95:+.1f} to {100 * test.upper95:+.1f}), p {test.p:.2g}"
    word = f"{verdict}: {span}, {test.gained} gained, {test.lost} lost"
    return {"models": models, "recipe": differing, "test": asdict(test), "word": word}


def _validation(checkpoint: str, scores: Sequence[Row]) -> Row | None:
    validations = [s for s in scores if s["checkpoint"] == checkpoint and s["split"] == "validation" and s["outcomes"]]
    return validations[-1] if validations else None


def _model_row(checkpoint: Row, score: Row | None) -> dict[str, object]:
    columns = ("accuracy", "lower95", "upper95", "solved_within", "n", "tool_use")
    values = {name: score.get(name) if score else None for name in columns}
    return {"model": f"{checkpoint['run']}/{checkpoint['checkpoint']}", "status": checkpoint["status"], **values}
