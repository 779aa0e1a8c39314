"""What a vote of checkpoints adds: measured against the best member alone and against as many attempts of its own."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.report.score_answers import ensemble_answer
from agent0.rollout.confidence.ensembles import Attempted, EnsembleScores, ensemble_scores, majority

RIGHT = "4"


def scores(**members: Sequence[Sequence[str | None]]) -> EnsembleScores:
    def judged(task: Sequence[str | None]) -> tuple[Sequence[str | None], list[bool | None]]:
        return task, [answer in (RIGHT, "4.0") for answer in task]

    return ensemble_scores({name: [*map(judged, tasks)] for name, tasks in members.items()})


def test_members_that_err_apart_solve_together_what_none_solves_alone_nor_by_its_own_majority() -> None:
    """Each always errs on another third of the tasks."""
    tasks = range(30)
    members = {name: [["7" if task % 3 == own else RIGHT] * 3 for task in tasks] for own, name in enumerate("abc")}
    outcome = scores(**members)
    assert outcome.vote.accuracy == 1 and {member.accuracy for member in outcome.members} == {2 / 3}
    assert {own.accuracy for own in outcome.majorities} == {2 / 3} and outcome.best == "a"
    assert [round(gain.mean, 6) for gain, _ in outcome.gains] == [round(1 / 3, 6)] * 2
    assert all(p < 0.01 and gain.lower95 > 0 for gain, p in outcome.gains)
    vote, own = outcome.labels
    assert (vote.coverage, vote.right, own.coverage) == (1, 1, 1) and own.right == pytest.approx(2 / 3)
    others, alone = outcome.doubts
    assert others and alone and (others.auroc, alone.auroc) == (1.0, 0.5), "its own attempts share every mistake"
    text = " ".join(ensemble_answer(outcome, "test"))
    assert "vote of 3 members 100.0%" in text and "majority of 3 by a 66.7%" in text and "+33.3 points" in text
    assert "30 tasks are few" in text


def test_copies_of_a_model_vote_as_one_of_them_that_is_asked_as_often() -> None:
    """Attempts of one number are alike among copies, so votes of these would be one attempt."""
    tries = [[RIGHT, "7", RIGHT], [RIGHT, RIGHT, "9"], ["7", "7", RIGHT], [None, "4.0", None]] * 20
    outcome = scores(a=tries, b=tries, c=tries)
    assert outcome.vote.accuracy == outcome.majorities[0].accuracy == 0.75 > outcome.members[0].accuracy
    assert outcome.gains[1][0].mean == 0 and outcome.gains[1][1] == 1
    others, repeated = outcome.doubts
    assert others and repeated and others.auroc == repeated.auroc


@given(st.lists(st.lists(st.sampled_from([RIGHT, "4.0", "7", "9", None]), min_size=6, max_size=6), min_size=4))
def test_an_ensemble_is_bounded_and_does_not_depend_on_the_order_of_its_members(tasks: list[list[str | None]]) -> None:
    reverse = [task[::-1] for task in tasks]
    outcome = scores(a=tasks, b=reverse)
    assert outcome == scores(b=reverse, a=tasks)
    for solver in (*outcome.members, *outcome.majorities, outcome.vote):
        assert 0 <= solver.lower95 <= solver.accuracy + 1e-9 and solver.accuracy <= solver.upper95 + 1e-9 <= 1 + 2e-9
    for labels in outcome.labels:
        assert 0 <= labels.coverage <= 1 and (labels.right is None) == (labels.coverage == 0)


def test_a_majority_is_of_answers_that_mean_the_same_and_a_tie_goes_to_the_first() -> None:
    right, wrong, none = Attempted("4", True), Attempted("7", False), Attempted(None, False)
    assert majority([wrong, right, right, none]) == (True, 2)
    assert majority([wrong, right, none, none]) == (False, 1), "silence is no answer that others share"
    assert majority([right, wrong]) == (True, 1) and majority([none, none]) == (False, 0)
    assert scores(a=[["4.0", "7"]], b=[["9", "4"]]).labels[0].coverage == 0.5, "4.0 is 4; 7 and 9 share nothing"


@pytest.mark.parametrize(
    "tasks",
    [{"a": [["1", "2"]]}, {"a": [["1"]], "b": [["1"]]}, {"a": [], "b": []}, {"a": [["1", "2"]], "b": [["1", "2"]] * 2}],
)
def test_what_cannot_vote_is_refused(tasks: dict[str, list[list[str]]]) -> None:
    with pytest.raises(ValueError, match="are no ensemble"):
        scores(**tasks)
