"""Aims of a study on a ladder, checked on every seed, and what its page says of them first."""

from typing import Any

from agent0.experiments.ablations import ablation_studies
from agent0.experiments.ladder_aims import BASE, LadderAim, aim_rows
from agent0.experiments.ladders.costs import base_solved
from agent0.report.markdown import ladder


def _row(arm: str, seed: int, before: tuple[int, float], after: tuple[int, float]) -> dict[str, Any]:
    base = {"height_untrained": before[0], "added_untrained": before[1]}
    return {"arm": arm, "seed": seed, **base, "height": after[0], "added": after[1]}


ROWS = [
    _row("ours", 0, (7, 4.0), (12, 8.0)),
    _row("ours", 1, (8, 5.0), (12, 9.5)),
    _row("uniform", 0, (7, 4.0), (8, 6.5)),
    _row("uniform", 1, (8, 5.0), (9, 7.5)),
]
STUDY = {"about": {"ours": "", "uniform": "", "frozen": ""}, "ladder": ROWS}


def test_an_aim_is_reached_only_where_every_seed_reaches_it() -> None:
    five, half, sums = (
        LadderAim("ours", BASE, "height", least=5),
        LadderAim("ours", BASE, "height", least=1.5, ratio=True),
        LadderAim("ours", "uniform", "added", least=1.5),
    )
    found = {row["aim"]: row for row in aim_rows((five, half, sums), ROWS)}
    assert found["T of ours at least 5 over base"] == {
        "aim": "T of ours at least 5 over base",
        "by_seed": [5, 4],
        "seeds": 2,
        "kept": 1,
        "reached": False,
    }
    assert found["T of ours at least 1.5 times that of base"]["by_seed"] == [1.71, 1.5]
    assert found["S of ours at least 1.5 over uniform"]["reached"]


def test_an_aim_about_a_mean_is_reached_where_the_mean_over_seeds_is_within_its_bounds() -> None:
    for least, reached in ((1.75, True), (1.76, False)):
        mean = LadderAim("ours", "uniform", "added", least=least, mean=True)
        (row,) = aim_rows([mean], ROWS)
        assert row["by_seed"] == [1.5, 2.0] and row["kept"] == 1 and row["reached"] is reached
    assert mean.title() == "S of ours at least 1.76 over uniform, on average"
    assert not aim_rows([LadderAim("ours", "uniform", "added", least=1.75)], ROWS)[0]["reached"]


def test_an_aim_has_two_sides_and_what_was_not_measured_has_none() -> None:
    near = LadderAim("uniform", BASE, "added", least=-1, most=1)
    assert near.title() == "S of uniform at least -1 and at most 1 over base"
    assert [row["kept"] for row in aim_rows([near], ROWS)] == [0]
    assert aim_rows([LadderAim("frozen", BASE, "added", least=0)], ROWS) == []
    unmeasured = [{**ROWS[0], "height": None, "added": None}]
    assert aim_rows([LadderAim("ours", BASE, "height", least=0)], unmeasured) == []


def test_a_page_begins_with_heights_differences_and_aims() -> None:
    found = {**STUDY, "aims": aim_rows([LadderAim("ours", BASE, "height", least=5)], ROWS)}
    said = ladder.answer(found)
    assert said == [
        "**Highest level of which half is solved (T), greedy, on fresh tasks:** ours climbs from 7 to 12, 8 to 12 "
        "(seeds 0, 1).",
        "**Accuracies added up over levels (S), ours less:** its base +4.2 (+1.1 to +7.4, p 0.037); uniform +1.8 "
        "(-1.4 to +4.9, p 0.09).",
        "**Aims:** 0 of 1 are reached; not reached: T of ours at least 5 over base (1 of 2 seeds).",
    ]
    rows = ladder.table(found)
    assert [row["variant"] for row in rows] == [BASE, "ours", "uniform"]
    assert rows[1]["T by seed"] == "12, 12" and rows[0]["S by seed"] == "4.0, 5.0"
    assert ladder.aims(found)[0]["reached"] == "no"


def test_a_study_without_a_finished_run_says_so() -> None:
    assert ladder.answer({**STUDY, "ladder": [], "aims": []}) == [
        "Nothing was measured: no run of the first variant is finished."
    ]


def test_aims_name_variants_of_their_study() -> None:
    for study in ablation_studies().values():
        names = {variant.name for variant in study.variants} | {BASE}
        assert all({aim.variant, aim.than} <= names for aim in study.aims)


def test_aims_about_the_base_itself_take_what_a_row_says_of_it() -> None:
    kept = LadderAim("ours", BASE, "taught_change", least=-0.03)
    alone = LadderAim("ours", BASE, "base_solved", most=0)
    rows = [{**ROWS[0], "taught_change": -0.02, "base_solved": 0}, {**ROWS[1], "taught_change": -0.1, "base_solved": 3}]
    found = aim_rows((kept, alone), rows)
    assert [row["by_seed"] for row in found] == [[-0.02, -0.1], [0, 3]] and [row["kept"] for row in found] == [1, 1]
    assert [row["aim"] for row in found] == [
        "accuracy at taught levels of ours at least -0.03 over base",
        "fresh tasks at T of ours that base solves in 32 samples: at most 0",
    ]
    assert aim_rows((kept, alone), [{**ROWS[0], "taught_change": None}]) == []


def test_an_aim_about_what_a_teacher_wrote_compares_with_nothing() -> None:
    wrote = LadderAim("ours", BASE, "half_solved", least=0.25)
    rows = [{**ROWS[0], "half_solved": 0.2}, {**ROWS[1], "half_solved": 0.25}]
    found = aim_rows([wrote], rows)
    assert [(row["by_seed"], row["kept"], row["reached"]) for row in found] == [([0.2, 0.25], 1, False)]
    assert wrote.title() == "share of half-solved tasks of ours at least 0.25"


def test_what_the_base_solves_is_looked_up_at_the_level_that_was_reached() -> None:
    def row(level: int, how: str, solved: int, who: str = BASE) -> dict[str, Any]:
        return {"seed": 0, "level": level, "who": who, "how": how, "solved": solved, "tasks": 64, "random": 0.0}

    greedy = row(12, "greedy", 6, "ours")
    sampled = [row(11, "32 at T=1", 9), row(12, "32 at T=0.7", 8), row(12, "32 at T=1", 7), greedy]
    assert base_solved(ROWS[0], sampled) == 7
    assert base_solved(ROWS[1], sampled) is None
    assert base_solved({**ROWS[0], "height": None}, sampled) is None
