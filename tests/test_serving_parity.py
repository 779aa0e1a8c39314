"""How far a served copy of a checkpoint may depart from the model in the process, by hand."""

import pytest

from agent0.evaluation.serving_parity import Parity, Step, parity, probes
from agent0.tasks.families import families


def test_parity_has_all_fields() -> None:
    ours = [[Step(0, -1.0), Step(1, -2.0)], [Step(5, -1.0)], [Step(7, -1.0)], []]
    theirs = [[Step(0, -1.5), Step(2, -0.1, {1: -2.25}), Step(9, 0.0)], [Step(6, -1.0)], [], []]
    assert parity(ours, theirs) == Parity(4, 2, 0.5, 0.375, 3, 2)
    assert parity([ours[1], ours[0]], [theirs[1], ours[0]]) == Parity(2, 2, 0.0, 0.0, 1, 1), "the next prompt counts"
    assert parity([], []) == Parity(0, 0, 0.0, 0.0, 0, 0)
    assert parity([[Step(1, -1.0), Step(2, -1.0)]], [[Step(1, -1.0)]]) == Parity(1, 1, 0.0, 0.0, 0, 0)
    with pytest.raises(ValueError, match="zip"):
        parity(ours, theirs[1:])


def test_probes_are_questions_of_a_user() -> None:
    turns = probes()
    assert len(turns) == 8 and [len(one) for one in turns] == [1] * 8 and {one[0].role for one in turns} == {"user"}
    entries = {name: one for name, one in families().items() if not one.ladder}
    assert all(any(one.parse(turn.content) for one in entries.values()) for (turn,) in turns)
    assert len(probes(100)) == 100 and [turn.content for (turn,) in probes(100)] != [turn.content for (turn,) in turns]
