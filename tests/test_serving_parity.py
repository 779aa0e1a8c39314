"""How far a served copy of a checkpoint may depart from the model in the process, by hand."""

import pytest

from agent0.evaluation.serving_parity import DecodedToken, Parity, limit, parity, probes
from agent0.tasks.families import families


def test_parity_has_all_fields() -> None:
    ours = [[DecodedToken(0, -1.0), DecodedToken(1, -2.0)], [DecodedToken(5, -1.0)], [DecodedToken(7, -1.0)], []]
    theirs = [
        [DecodedToken(0, -1.5), DecodedToken(2, -0.1, {1: -2.25}), DecodedToken(9, 0.0)],
        [DecodedToken(6, -1.0)],
        [],
        [],
    ]
    assert parity(ours, theirs) == Parity(4, 2, 0.5, 0.375, 3, 2)
    assert parity([ours[1], ours[0]], [theirs[1], ours[0]]) == Parity(2, 2, 0.0, 0.0, 1, 1), "the next prompt counts"
    assert parity([], []) == Parity(0, 0, 0.0, 0.0, 0, 0)
    assert parity([[DecodedToken(1, -1.0), DecodedToken(2, -1.0)]], [[DecodedToken(1, -1.0)]]) == Parity(
        1, 1, 0.0, 0.0, 0, 0
    )
    with pytest.raises(ValueError, match="zip"):
        parity(ours, theirs[1:])


@pytest.mark.parametrize(
    ("largest", "unseen", "untrained", "agrees"),
    [
        (0.0005, 0, Parity(8, 100, 0.0, 0, 0, 0), True),
        (0.011, 0, Parity(8, 100, 1.1, 0, 0, 0), True),  # a cache in half precision
        (0.011, 0, Parity(8, 2, 0.1, 0, 8, 6), True),  # the untrained one writes something else
        (0.011, 0, Parity(8, 100, 0.02, 0, 0, 0), False),  # hardly trained: nobody can tell the two apart
        (1.1, 0, Parity(8, 100, 0.0, 0, 0, 0), False),  # the untrained base is served
        (1.1, 0, Parity(8, 100, 0.002, 0, 0, 0), False),
        (0.4, 0, Parity(8, 100, 1.1, 0, 0, 0), False),  # another step of the same run
        (0.06, 0, Parity(8, 100, 1.1, 0, 0, 0), False),
        (0.011, 1, Parity(8, 100, 1.1, 0, 0, 0), False),
        (0.04, 0, Parity(8, 100, 9.0, 0, 0, 0), True),
    ],
)
def test_a_served_model_is_judged_by_how_far_the_untrained_one_is(
    largest: float, unseen: int, untrained: Parity, agrees: bool
) -> None:
    assert Parity(8, 100, largest, 0.0, 0, unseen).within(limit(1e-3, untrained.distance)) == agrees


@pytest.mark.parametrize(
    ("largest", "rounding", "agrees"),
    [(0.081, 0.079, True), (0.13, 0.079, False), (0.081, 0.0, False), (0.25, 0.4, False)],
)
def test_a_quantised_base_allows_what_it_rounds_itself(largest: float, rounding: float, agrees: bool) -> None:
    """As measured of an adapter beside a base in Q4_K_M; a base that is further off is another one."""
    assert Parity(8, 100, largest, 0.0, 0, 0).within(limit(1e-3, 0.13, rounding)) == agrees


@pytest.mark.parametrize(("own", "other", "nearer"), [(0.0075, 0.011, True), (0.01, 0.011, False), (0.0, 0.0, True)])
def test_models_that_cannot_be_told_apart_are_not_nearer(own: float, other: float, nearer: bool) -> None:
    assert Parity(8, 100, 0.1, own, 0, 0).nearer(Parity(8, 100, 0.1, other, 0, 0)) == nearer
    assert not Parity(8, 0, 0.0, 0.0, 0, 0).nearer(Parity(8, 100, 0.1, other, 0, 0))


def test_probes_are_questions_of_a_user() -> None:
    turns = probes()
    assert len(turns) == 8 and [len(turn) for turn in turns] == [1] * 8 and {turn[0].role for turn in turns} == {"user"}
    entries = {name: one for name, one in families().items() if not one.ladder}
    assert all(any(entry.parse(turn.content) for entry in entries.values()) for (turn,) in turns)
    assert len(probes(100)) == 100 and [turn.content for (turn,) in probes(100)] != [turn.content for (turn,) in turns]
