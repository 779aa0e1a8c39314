"""Families of reasoning-gym: a question says how it was made and must be just that, and its scorer is asked only about
answers that look like answers."""

import random
from importlib import util
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError
from agent0.infra.models.scripted import Scripted
from agent0.rollout.teacher import read_proposal
from agent0.tasks.families import Family, families, gym, rejection, requested_families
from agent0.tasks.splits import heldout, split_of, task_of
from tests.memory import MemoryArtifacts
from tests.test_checked import HOSTILE
from tests.test_student import play
from tests.test_verifiers import judged
from tests.world import small

HERE = {name: entry for name, entry in families().items() if entry.domain == gym.DOMAIN}
needed = pytest.mark.skipif(util.find_spec(gym.PACKAGE) is None, reason="reasoning-gym is not installed")
every_family = pytest.mark.parametrize("entry", HERE.values(), ids=list(HERE))


def plan(**changes: Any) -> dict[str, Any]:
    return {"curriculum": {"embedder": "ngram", **changes}, "evaluation": {"validation": 8, "test": 8}}


def test_without_the_package_there_are_none_and_who_asks_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert bool(HERE) == gym.present()
    monkeypatch.setattr(gym, "present", lambda: False)
    for wanted in ({"domains": ("gym",)}, {"families": ("gym_jugs",)}):
        with pytest.raises(ConfigError, match=r"needs the package reasoning-gym.*not installed.*EXTRAS=gym"):
            check_names(small(**plan(**wanted)))
    check_names(small())


@needed
def test_they_are_asked_for_by_domain_or_name() -> None:
    assert requested_families("gym") == HERE and set(HERE) == {f"gym_{name}" for name in gym.SOURCES}
    check_names(small(**plan(domains=("gym",))))
    check_names(small(**plan(domains=("math", "gym"), families=("gym_jugs", "countdown"))))
    tasks = heldout("validation", 8, 3, ("gym",))
    assert {split_of(task.canonical) for task in tasks} == {"validation"}
    assert {task.family for task in tasks} <= set(HERE)


@needed
@every_family
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_a_question_is_read_back_only_as_it_was_made(entry: Family, seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    params = entry.sample(1 + seed % 4, rng)
    question = entry.render(params, rng)
    assert entry.parse(question) == params and entry.level(params) == 1 + seed % 4
    assert read_proposal(question, "gym", entry.name, 1)[0] == task_of(entry, question)
    assert rejection(entry.name, question) is None and len(question) < 2000
    at = data.draw(st.integers(0, len(question) - 1))
    changed = question[:at] + data.draw(st.sampled_from("x 7,\n")) + question[at + 1 :]
    assert changed == question or entry.parse(changed) is None
    for wrong in (f"{question} ", f"\n{question}", question.replace("level", "Level"), question[-60:], "", "x" * 9000):
        assert entry.parse(wrong) is None


@needed
@every_family
async def test_the_scorer_judges_and_no_hostile_text_reaches_it(entry: Family) -> None:
    rng = random.Random(11)
    task = task_of(entry, entry.render(entry.sample(2, rng), rng))
    assert task and entry.check
    right = entry.solve(task.params)
    good, none = await judged(task, f" {right}\n", None)
    assert (good.correct, none.correct, good.expected) == (True, False, "")
    for answer in (
        *HOSTILE,
        right + right,
        right[: len(right) // 2],
        right * 99,
        "infeasible",
        "No solution",
        "[]",
        "0",
    ):
        why = entry.check(task.params, answer)
        assert why and len(why) < 100, answer[:40]


@needed
async def test_another_right_answer_than_the_data_sets_own_is_right() -> None:
    entry = HERE["gym_jugs"]
    params = entry.sample(1, random.Random(1))
    longer = entry.solve(params).replace("[", '["empty A", ', 1)
    assert entry.check and entry.check(params, longer) == ""
    assert entry.check(params, '["fill A"]').startswith("it scores")


@needed
@pytest.mark.parametrize("family", list(HERE))
async def test_the_scripted_student_plays_them(family: str) -> None:
    entry, rng = families()[family], random.Random(5)
    task = task_of(entry, entry.render(entry.sample(1, rng), rng))
    assert task
    solved = await play(model=Scripted(MemoryArtifacts()), task=task, seed=1, prefill="<tool_call>")
    assert entry.check and solved.end == "answered"
    assert entry.check(task.params, solved.answer or "") == ""
