"""What a study ends with on a terminal: its curves, and what its first variant may not claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.report.answers import study_answer
from agent0.report.charts.ladder_picture import BLOCKS, DIGITS, WIDE, curve_picture
from agent0.stats.paired_tests import FELL, IMPROVED

NAMES = st.text("abcdefghij-", min_size=1, max_size=30)


@given(st.dictionaries(NAMES, st.lists(st.floats(0, 1), max_size=300), max_size=5), st.sampled_from([BLOCKS, DIGITS]))
def test_a_curve_has_its_ends_in_figures_and_fits(means: dict[str, list[float]], marks: str) -> None:
    lines = curve_picture({name: [{"mean": mean} for mean in own] for name, own in means.items()}, "validation", marks)
    drawn = {name: own for name, own in means.items() if own}
    assert len(lines) == (len(drawn) + 1 if drawn else 0)
    for line, (name, own) in zip(lines[1:], drawn.items(), strict=True):
        assert len(line) <= WIDE and line.startswith(name[:20])
        assert f"{own[0]:.1%}" in line and line.endswith(f"{own[-1]:.1%}")


def test_a_higher_mean_has_no_lower_mark() -> None:
    _, line = curve_picture({"a": [{"mean": n / 20} for n in range(21)]}, "validation")
    bar = line.split()[2]
    assert [BLOCKS.index(mark) for mark in bar] == sorted(BLOCKS.index(mark) for mark in bar)
    assert (bar[0], bar[-1]) == (BLOCKS[0], BLOCKS[-1])


@pytest.mark.parametrize(
    ("untrained", "forced", "seeds", "limits"),
    [
        (IMPROVED, IMPROVED, [0, 1, 2], "anything of other models and tasks"),
        (IMPROVED, FELL, [0, 1, 2], "a new skill beyond tool use, anything of other models and tasks"),
        ("level", FELL, [0], "that ours learned, a new skill beyond tool use, anything of other seeds"),
    ],
)
def test_what_may_not_be_claimed_follows_from_the_controls(
    untrained: str, forced: str, seeds: list[int], limits: str
) -> None:
    row = {"measure": "test", "arm": "ours", "mean": 0.1, "low": 0.0, "high": 0.2, "adjusted_p": 0.01}
    against = [
        {**row, "against": name, "word": word} for name, word in (("untrained", untrained), ("forced_tool", forced))
    ]
    results = {"about": {"ours": ""}, "measures": ["test"], "against": against, "seeds": seeds, "failed": []}
    assert study_answer(results)[-1] == f"Not to be claimed: {limits}."
    assert not any("Not to be claimed" in line for line in study_answer({**results, "measures": [], "against": []}))
