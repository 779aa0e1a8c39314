"""What training is worth: measures read exams, every control is held against them, sentences follow from numbers, and
a killed cell goes on with the exams that are missing."""

import asyncio
import json
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.ablations.ablation_run import RunPlan, execute_ablation_run, read_result
from agent0.assembly.ablations.base_models import make_bases, provenance, seeds_without_base, with_base
from agent0.assembly.ablations.study import StudyRequest, run_study
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.evaluation.protocol import TaskSet
from agent0.experiments.ablation_results import ONE_SEED, Outcome, as_json, from_json
from agent0.experiments.ablation_runs import AblationRun
from agent0.experiments.ablations import AblationStudy, Variant, ablation_studies
from agent0.experiments.training_gain import (
    BASE,
    CHANCE,
    CONTROLS,
    MEASURES,
    SAME_TOKENS,
    SAME_TRIES,
    Chance,
    ProtocolReading,
    base_protocols,
    student_protocols,
    summarise,
)
from agent0.report.charts.ablation_charts import chart_files
from agent0.report.html.ablation_page import ablation_page
from agent0.report.markdown.ablation import page
from agent0.report.markdown.training_gain import aimed, sentences, word
from agent0.settings import RunConfig
from events.checkpoints import StudentExamined
from infra.models.tiny import packaged
from infra.tiny import courses
from tests.figures import result_of
from tests.terminal import agent0 as call

FRESH = TaskSet("fresh", "new tasks", 40, 7, (2, 3))
HARDER = TaskSet("harder", "longer <tasks>", 10, 8, (4,))
COST = ("arm", "cells", "attempts", "tokens", "model_s", "steps", "training_s", "wall_s")


# --- arithmetic, on students whose every attempt is known


def examined(checkpoint: str, tasks: TaskSet, way: ProtocolReading, share: float) -> StudentExamined:
    """Solves the first ``share`` of the set, half of the attempts right (all where there is one)."""
    exam, solved = way.of(tasks), round(share * tasks.n)
    right = max(1, exam.attempts // 2)
    every, majority = (right,) * solved + (0,) * (tasks.n - solved), "1" * solved + "0" * (tasks.n - solved)
    return result_of(exam, checkpoint, right=every, majority=majority, tokens=10, wall_s=1.0)


def runs_of_study(
    shares: dict[str, float], base: float = 0.2, seeds: int = 3, student: str = "student-1"
) -> list[Outcome]:
    """Arms that solve so much of each set, on bases that solve ``base`` whatever is tried (and 1 task more a seed)."""
    out = []
    for seed in range(seeds):
        for place, (arm, share) in enumerate(shares.items()):
            exams: list[StudentExamined] = []
            for tasks in (FRESH, HARDER):
                ways = {
                    ProtocolReading(e.attempts, e.temperature, "within", e.forced_tool) for e in base_protocols(tasks)
                }
                if place == 0:
                    exams += [examined(BASE, tasks, way, base + seed / tasks.n) for way in sorted(ways, key=repr)]
                more = seeds - 1 - seed if abs(share - base) > 0.1 else seed  # seeds do not agree on a gap to the digit
                own = {
                    ProtocolReading(e.attempts, e.temperature, "within", e.forced_tool)
                    for e in student_protocols(tasks)
                }
                if student != BASE or place:
                    exams += [examined(student, tasks, way, share + more / tasks.n) for way in sorted(own, key=repr)]
            out.append(Outcome(arm, seed, f"g-{arm}-{seed}", student, 2, (), {"wall_s": 1.0}, tuple(exams)))
    return out


def told(outcomes: list[Outcome]) -> dict[str, Any]:
    found = {"grid": "skill-search", "experiment": "skill", "question": "Is <it> so?", "profile": "search"}
    about = {one.arm: "an arm" for one in outcomes}
    found |= {"models": [], "settings": {arm: {} for arm in about}}
    return found | {
        **{
            "seeds": [0, 1],
            "given": {},
            "effort": "Asked alike.",
            "about": about,
            "folder": "/somewhere",
        },
        **{"complete": True, "failed": [], "measures": [], "arms": [], "against": [], "cells": [], "curves": {}},
        **{"cost": [dict.fromkeys(COST, 1.0) | {"arm": "ours"}], "skill": summarise(outcomes, (FRESH, HARDER))},
    }


def test_each_measure_is_held_against_every_control_by_hand() -> None:
    found = summarise(runs_of_study({"ours": 0.6, "random": 0.2}), (FRESH, HARDER))
    rows = [row for row in found["against"] if row["set"] == "fresh" and row["measure"] == "within"]
    assert {row["against"] for row in rows} == set(CONTROLS["check"]) and len(CONTROLS["check"]) == 8
    assert all(row["mean"] == pytest.approx(0.4) and row["by_seed"] == pytest.approx([0.45, 0.4, 0.35]) for row in rows)
    assert all(row["word"] == "improved" and row["items"] == 40 and row["adjusted_p"] >= row["p"] for row in rows)
    means = {
        row["against"]: row["mean"] for row in found["against"] if (row["set"], row["measure"]) == ("fresh", "mean")
    }
    assert set(means) == set(CONTROLS["nobody"]) and len(means) == 11
    # half of 8 sampled attempts are right, of the base's, too; its one greedy attempt and its majority are all right
    assert means["sampled, T=1"] == pytest.approx(0.2) and means["greedy"] == pytest.approx(0.31 - 0.225, abs=0.01)
    arms = [row for row in found["arms"] if row["set"] == "harder" and row["measure"] == "single"]
    assert [(row["arm"], row["against"]) for row in arms] == [("ours", "random")]
    alike = {row["arm"]: row for row in found["alike"] if (row["set"], row["measure"]) == ("fresh", "within")}
    assert alike["random"]["mean"] == 0 and word(alike["random"]) == "not significant (adjusted p 1)"
    assert found["cost"]["exams"] == sum(len(one.exams) for one in runs_of_study({"ours": 0.6, "random": 0.2}))


def test_an_exam_of_another_set_or_student_counts_for_nobody() -> None:
    one = runs_of_study({"ours": 0.5}, seeds=1)[0]
    strangers = [event.model_copy(update=change) for event in one.exams for change in ({"levels": (1,)}, {"seed": 9})]
    strangers += [
        event.model_copy(update={"checkpoint": "student-0", "right": event.right[::-1]}) for event in one.exams
    ]
    assert (
        summarise([replace(one, exams=(*strangers, *one.exams))], (FRESH,))["means"]
        == summarise([one], (FRESH,))["means"]
    )
    assert summarise([replace(one, exams=())], (FRESH,))["means"] == [] == summarise([], (FRESH, HARDER))["against"]


def test_a_student_that_is_still_the_base_is_measured_as_the_base() -> None:
    found = summarise(runs_of_study({"ours": 0.2, "random": 0.2}, student=BASE), (FRESH, HARDER))
    assert all(row["mean"] == 0 for row in found["alike"]) and len(found["alike"]) == 16
    assert any("student is still the base: ours (seed 0)" in said for said in sentences(found))


# --- words follow from numbers


def test_sentences_say_what_is_significant_and_what_is_not() -> None:
    better = sentences(summarise(runs_of_study({"ours": 0.6, "random": 0.2}), (FRESH, HARDER)))
    assert better[0].startswith("**fresh, solved within 8 checked attempts:** ours 62.5 % (")
    assert "40.0 points more than any control" in better[0] and "The aim was 20 points" in better[0]
    assert "Better than 8 of 8 controls, significant (adjusted p < 0.05)." in better[0]
    assert "The aim" not in next(said for said in better if said.startswith("**harder"))
    assert any("ours less each other variant" in said and "Better, significant: random." in said for said in better)
    assert any("random beside its own base" in said and "not significant (adjusted p 1)" in said for said in better)
    same = sentences(summarise(runs_of_study({"ours": 0.2}), (FRESH,)))
    assert "as many as the best control" in same[0]
    assert "Better than 0 of 8 controls" in same[0] and "Not significant against: any." in same[0]
    worse = sentences(summarise(runs_of_study({"ours": 0.05}, base=0.6), (FRESH,)))
    assert "55.0 points less than the best control" in worse[0] and "Worse than: any." in worse[0]
    assert "improved" not in "".join(worse) and not any("at once" in said for said in worse + same)
    assert "every one of them at once: significant (p = " in better[0]
    assert "no difference" not in "".join((*better, *same, *worse))
    alone = sentences(summarise(runs_of_study({"ours": 0.9}, seeds=1), (FRESH,)))
    assert f"O{ONE_SEED[1:]}." in alone[0] and "significant (adjusted" not in alone[0]


def test_seeds_that_only_the_first_arm_has_count_beside_controls_and_not_beside_other_arms() -> None:
    five = [one for one in runs_of_study({"ours": 0.6, "random": 0.2}, seeds=5) if one.arm == "ours" or one.seed < 3]
    found = summarise(five, (FRESH,))
    assert {row["seeds"] for row in found["against"]} == {5} and {row["seeds"] for row in found["arms"]} == {3}
    assert {(row["arm"], row["seeds"]) for row in found["alike"]} == {("ours", 5), ("random", 3)}


def test_a_lead_that_one_control_may_explain_is_not_a_lead_over_every_one() -> None:
    near = sentences(summarise(runs_of_study({"ours": 0.225}, base=0.2), (FRESH,)))
    assert "at once: not significant (p = 0.25," in near[0], "one task more, on each of three seeds"


# --- chance, variants and the aim


def by_chance(share: float, tokens: float | None = 10.0) -> dict[str, Chance]:
    return {one.name: Chance((1 - (1 - share) ** (1 / 8),) * one.n, tokens) for one in (FRESH, HARDER)}


def test_random_derivations_are_controls_with_as_many_tries_and_as_many_tokens() -> None:
    outcomes = [
        replace(one, exams=tuple(exam.model_copy(update={"tokens": 40 * 8 * 25}) for exam in one.exams))
        for one in runs_of_study({"ours": 0.6, "random": 0.2})
    ]
    found = summarise(outcomes, (FRESH, HARDER), by_chance(0.3))
    means = {row["how"]: row for row in found["means"] if row["who"] == CHANCE and row["set"] == "fresh"}
    assert means[SAME_TRIES]["mean"] == pytest.approx(0.3) and means[SAME_TRIES]["picked"] == "check"
    # 25 tokens an attempt, 8 attempts, 10 tokens a derivation: 20 of them
    assert means[SAME_TOKENS]["mean"] == pytest.approx(1 - 0.7 ** (20 / 8))
    rows = {row["against"] for row in found["against"] if (row["set"], row["measure"]) == ("fresh", "within")}
    assert rows == {*CONTROLS["check"], SAME_TRIES, SAME_TOKENS}
    assert not any(row["against"] in (SAME_TRIES, SAME_TOKENS) for row in found["against"] if row["measure"] == "mean")
    untold = summarise(outcomes, (FRESH,), by_chance(0.3, None))
    assert [row["how"] for row in untold["means"] if row["who"] == CHANCE] == [SAME_TRIES]


def test_an_aim_is_reached_only_over_chance_and_over_the_variants() -> None:
    arms = {"ours": 0.8, "random-tries": 0.2, "permuted-verdicts": 0.2}
    reached = aimed(summarise(runs_of_study(arms), (FRESH,), by_chance(0.1)), "within")
    assert reached.endswith(": reached.")
    assert (
        aimed(summarise(runs_of_study(arms), (FRESH,)), "within").count("not measured against random derivations") == 2
    )
    beaten = aimed(summarise(runs_of_study(arms), (FRESH,), by_chance(0.7)), "within")
    assert "not reached (the least lead is" in beaten
    for name in ("random-tries", "permuted-verdicts"):
        same = aimed(summarise(runs_of_study({**arms, name: 0.8}), (FRESH,), by_chance(0.1)), "within")
        assert f"not reached (not significantly better than {name})" in same
        less = aimed(
            summarise(runs_of_study({k: v for k, v in arms.items() if k != name}), (FRESH,), by_chance(0.1)), "within"
        )
        assert f"not reached (not measured against {name})" in less


def test_the_page_begins_with_its_answer_in_at_most_five_lines() -> None:
    outcomes = runs_of_study({"ours": 0.6, "random-tries": 0.6, "permuted-verdicts": 0.6, "right-as-written": 0.3})
    made = {"written": 40, "corrected": 50, "placed": 10, "examples": 4, "other_tasks": 1}
    outcomes = [replace(one, learned=made) for one in outcomes]
    found = told(outcomes) | {"skill": summarise(outcomes, (FRESH, replace(HARDER, name="outside")), by_chance(0.3))}
    lines = page(found | {"notes": ["**Looks.** Three."]}, {}, "docs/results/learning.md").split("```")[0].splitlines()
    answer = [line for line in lines if line.startswith("- ")]
    assert 3 <= len(answer) <= 5 and "40 % is as the student wrote it" in answer[0]
    assert "**outside, solved within 8" in answer[2] and "random-tries +0.0 (not significant" in answer[3]
    assert answer[-1].count("not reached") == 2
    text = page(found | {"notes": ["**Looks.** Three."]}, {}, "docs/results/learning.md")
    assert "- **Looks.** Three." in text and "| ours | 0.400 | 0.500 | 0.100 | 12 | 0.250 |" in text


def test_the_page_and_its_pictures_are_the_same_bytes_again(tmp_path: Path) -> None:
    found = json.loads(json.dumps(told(runs_of_study({"ours": 0.6, "random": 0.2}))))
    drawn = chart_files(found)
    names = {name: f"learning-{name}.svg" for name in drawn}
    text = page(found, names, "docs/results/learning.md")
    assert (text, drawn) == (page(found, names, "docs/results/learning.md"), chart_files(found))
    assert set(drawn) == {"fresh", "harder", "arms"}  # nobody has a curve here
    for name, picture in drawn.items():
        assert ET.fromstring(picture).tag.endswith("svg") and "prefers-color-scheme: dark" in picture
        assert f"(learning-{name}.svg)" in text
    assert all(how in drawn["fresh"] for held in CONTROLS.values() for how in held)
    assert all(f"| {one['arm']} | {one['seed']} | student-1 |" in text for one in found["skill"]["cells"])
    told_by = "agent0 experiment skill --arms ours,random --jobs 2 --write docs/results/learning.md"
    assert "/somewhere" not in text and text.count(f"\n```\n{told_by}\n```") == 1
    assert "# Learning\n\nIs <it> so?\n\n- " in text
    shown = ablation_page(found)
    assert "Is &lt;it&gt; so?" in shown and "longer &lt;tasks&gt;" in shown and "62.5 %" in shown


def test_what_a_cell_sat_is_read_back() -> None:
    one = runs_of_study({"ours": 0.5}, seeds=1)[0]
    assert from_json(json.loads(json.dumps(as_json(one)))) == one


def test_the_grid_asks_what_the_measures_read() -> None:
    entry = ablation_studies()["skill"]
    assert set(entry.protocols) == {m.way.of(tasks) for tasks in entry.sets for m in MEASURES.values()}
    assert len(entry.protocols) == 8 and len(entry.base_protocols) == 32 and entry.variants[0].name == "ours"
    assert entry.seeds == (0, 1) and {"random-tries", "permuted-verdicts"} < {arm.name for arm in entry.variants}
    assert (
        not {"frozen", "random-reward"} & {arm.name for arm in entry.variants} and "taught itself" not in entry.question
    )
    asked = load(entry.profile, {f"run.{key}": text for key, text in entry.settings.items()}, {}).run.evaluation
    assert asked.test == 0 and entry.sets[0].seed != asked.seed != entry.sets[1].seed
    assert set(entry.sets[1].levels) > set() and not set(entry.sets[1].levels) & set(asked.levels)


# --- bases


@pytest.mark.slow
def test_a_base_is_taught_once_and_the_packaged_one_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert asyncio.run(make_bases(tmp_path, "search", [0], 1, said.append)) == {0: packaged("search")}
    short = replace(courses.SEARCH_MIX, phases=(replace(courses.SEARCH_MIX.phases[0], steps=2),), batch=2)
    monkeypatch.setitem(courses.MIXES, "search", short)
    (tmp_path / "base-1.part").mkdir()  # of a process that was killed
    (tmp_path / "base-1.part" / "provenance.json").write_text("{}")
    found = asyncio.run(make_bases(tmp_path, "search", [1], 1, said.append))
    assert found == {1: tmp_path / "base-1"} and provenance(found[1])["seed"] == 1 and said
    assert not (tmp_path / "base-1.part").exists() and (found[1] / "model.safetensors").exists()
    told_once = list(said)
    assert asyncio.run(make_bases(tmp_path, "search", [1], 1, said.append)) == found and said == told_once
    monkeypatch.setitem(courses.MIXES, "search", replace(short, batch=3))
    with pytest.raises(ExceptionGroup) as refused:
        asyncio.run(make_bases(tmp_path, "search", [1], 1, said.append))
    assert refused.group_contains(OperationError, match="The base of seed 1 is another one")
    own = with_base(AblationRun("ours", 1, "r", load("search", env={}).run), "search", found)
    assert (own.config.student.provider, own.config.student.model) == ("transformers", str(found[1]))
    assert seeds_without_base([own, AblationRun("x", 2, "r", RunConfig())], "search") == []
    plain = AblationRun("bandit", 0, "r", load("tiny", env={}).run)
    assert with_base(plain, "", {}) == plain and seeds_without_base([plain], "") == []  # a grid without a course


# --- a cell that is killed between exams


SIZES = {
    **{"run.tasks": "2", "run.attempts": "2", "run.iterations": "1", "sandbox.workers": "1"},
    **{"run.evaluation.validation": "4", "run.evaluation.test": "0", "run.evaluation.forced_tool": "false"},
    "run.student.max_tokens": "24",
}
TINY = TaskSet("fresh", "new tasks", 4, 7)
EXAMS, OF_BASE = student_protocols(TINY), base_protocols(TINY)[:3]


def planned(folder: Path) -> None:
    held = load("scripted", {**SIZES, "home": str(folder)}, {})
    RunPlan(
        AblationRun("ours", 0, "skill-ours-0", held.run), "scripted", {"sandbox.workers": "1"}, EXAMS, OF_BASE
    ).write(folder)


def carried_on(folder: Path, already: int) -> None:
    """To the end, without what is recorded; and then nothing is left to do."""
    assert read_result(folder) is None
    heard: list[str] = []
    asyncio.run(execute_ablation_run(folder, lambda text, _: heard.append(text)))
    found = read_result(folder)
    assert found is not None
    asked = [(one.checkpoint, one.exam) for one in found.exams]
    wanted = {(BASE, exam.name) for exam in OF_BASE} | {(found.student, exam.name) for exam in EXAMS}
    assert set(asked) == wanted and len(asked) == len(wanted)
    assert sum(" examined on " in text for text in heard) == len(wanted) - already


@pytest.mark.usefixtures("shared_sandbox")
def test_a_cell_that_is_stopped_between_exams_sits_each_once(tmp_path: Path) -> None:
    planned(tmp_path)

    def told_first(text: str, _: float | None) -> None:
        if " examined on " in text:
            raise OperationError("Stopped.")

    with pytest.raises(OperationError, match="Stopped"):
        asyncio.run(execute_ablation_run(tmp_path, told_first))
    carried_on(tmp_path, 1)
    asked = RunPlan.read(tmp_path)
    assert (asked.protocols, asked.base_protocols) == (EXAMS, OF_BASE)


@pytest.mark.slow  # part of make crash
def test_a_cell_that_is_killed_between_exams_sits_each_once(tmp_path: Path) -> None:
    planned(tmp_path)
    command = [sys.executable, "-m", "agent0.cli.experiments.worker_ablation_run", str(tmp_path)]
    pipe, root = subprocess.PIPE, Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert any(" examined on " in line for line in process.stdout), "it never came so far"
        process.send_signal(signal.SIGKILL)
    said = call("events", "tail", "--type", "StudentExamined", "--json", home=tmp_path)
    carried_on(tmp_path, len(said.out.splitlines()))


@pytest.mark.slow  # part of make crash
def test_a_finished_grid_sits_exams_that_are_added_and_nothing_else(tmp_path: Path) -> None:
    """Its runs stand: nothing is trained again, and no exam is made again."""
    held = load("scripted", {**SIZES, "home": str(tmp_path)}, {})
    entry = AblationStudy(
        "added", "Which?", (Variant("ours", {}),), sets=(TINY,), protocols=EXAMS, base_protocols=OF_BASE
    )
    asked = StudyRequest(entry, "added", "scripted", (0,))
    before = asyncio.run(run_study(held, asked))
    more = TaskSet("harder", "harder ones", 3, 8)
    larger = replace(entry, sets=(TINY, more), protocols=(*EXAMS, *student_protocols(more)))
    said: list[str] = []
    after = asyncio.run(run_study(held, replace(asked, study=larger), said.append))
    made = [text for text in said if " examined on " in text]
    assert len(made) == len(student_protocols(more)) and all("(3 tasks)" in text for text in made)
    assert after["cells"] == before["cells"] and after["complete"]
    assert {row["set"] for row in after["skill"]["means"]} == {"fresh", "harder"}
    own = [row for row in after["skill"]["means"] if row["set"] == "fresh"]
    assert own == before["skill"]["means"] and all(row["tokens"] > 0 for row in own)
