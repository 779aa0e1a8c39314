"""Which split a task is in: tasks on the same operands are in one."""

import random
from pathlib import Path

import pytest

from agent0.assembly.validate.curriculum import check_curriculum
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.values import Task
from agent0.tasks.families import Family, families
from agent0.tasks.screening import Archive, Proposed, decide_batch
from agent0.tasks.splits import heldout, split_key, split_of, split_of_task, task_of

COUNTDOWN = families()["countdown"]
SHARING = {name: entry for name, entry in families(long=None).items() if entry.operands}
every_family = pytest.mark.parametrize("entry", SHARING.values(), ids=list(SHARING))


def countdown(target: int, *numbers: int) -> Task:
    found = task_of(COUNTDOWN, f"Make {target} from {','.join(map(str, numbers))}.")
    assert found
    return found


def sides() -> set[frozenset[str]]:
    """For every triple of numbers up to 9: the splits of the tasks on it."""
    triples = [(a, b, c) for a in range(1, 10) for b in range(a, 10) for c in range(b, 10)]
    return {frozenset(split_of_task(countdown(target, *given)) for target in range(1, 40)) for given in triples}


def test_targets_of_the_same_numbers_are_in_one_split() -> None:
    assert sides() == {frozenset({"train"}), frozenset({"validation"}), frozenset({"test"})}
    assert split_of_task(countdown(20, 3, 7, 2)) == split_of_task(countdown(13, 2, 3, 7))


@every_family
def test_operands_are_what_rewording_leaves(entry: Family) -> None:
    rng = random.Random(6)
    for level in range(1, entry.levels + 1):
        params = entry.sample(level, rng)
        again = entry.parse(entry.render(params, rng))
        assert again and split_key(entry, again) == split_key(entry, params) != entry.canonical(params)


def test_other_families_stay_where_they_were() -> None:
    rng = random.Random(7)
    for entry in families(long=None).values():
        if not entry.operands and entry.domain != "gym":
            params = entry.sample(1, rng)
            assert split_key(entry, params) == entry.canonical(params)


def test_held_out_sets_and_training_share_no_numbers() -> None:
    kept = [tuple(sorted(t.params["numbers"])) for s in ("validation", "test") for t in drawn(s)]
    rng = random.Random(8)
    asked = (COUNTDOWN.sample(rng.randint(2, 4), rng) for _ in range(3000))
    trained = {tuple(sorted(p["numbers"])) for p in asked if split_of(split_key(COUNTDOWN, p)) == "train"}
    assert kept and trained and trained.isdisjoint(kept)


def drawn(split: str) -> list[Task]:
    return heldout(split, 60, 4, ("math",), names=("countdown",), levels=(2, 3, 4))  # type: ignore[arg-type]


def test_screening_refuses_what_is_held_out() -> None:
    one = next(task for task in drawn("test") if split_of(task.canonical) == "train")
    batch, vectors = [Proposed("t", 0, "math", one)], {"t": [1.0, 0.0]}
    assert decide_batch(batch, Archive(), vectors, 0.9)[0].reason == "reserved"


# --- levels of held-out tasks


def test_levels_choose_among_the_same_tasks() -> None:
    assert heldout("test", 12, 3, ("math",)) == heldout("test", 12, 3, ("math",), levels=())
    for levels in ((2, 3), (4,)):
        found = heldout("test", 12, 3, ("math",), names=("countdown",), levels=levels)
        assert {task.level for task in found} == set(levels) and len({task.canonical for task in found}) == 12


@pytest.mark.parametrize("levels", ["[0]", "[2, 9]", "[5]"])
def test_levels_that_no_family_has_are_refused(levels: str, tmp_path: Path) -> None:
    own = {"run.curriculum.families": "countdown", "run.curriculum.domains": "math", "home": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"run.evaluation.levels = .* Levels of math are 1 to 4"):
        check_curriculum(load("tiny", {**own, "run.evaluation.levels": levels}, {}).run)
    check_curriculum(load("tiny", {**own, "run.evaluation.levels": "[2, 4]"}, {}).run)
