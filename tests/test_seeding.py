"""Whose tries training examples are made from: controls keep everything but the one thing that they leave out."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from agent0.training.search_traces import OPEN, SearchAttempt, search_examples, tries
from agent0.training.trace_sources import apply_source
from events.values import Task
from tests.test_searching import COUNTDOWN, attempts, config, judge, question, read, retraced


def held() -> list[SearchAttempt]:
    found = [replace(one, iteration=n % 3) for n, one in enumerate(attempts(11, 20))]
    assert 10 < sum(one.right for one in found) < len(found) - 10
    return found


def test_the_own_tries_are_left_as_they_are() -> None:
    assert apply_source(held(), config()) == held()


def test_random_tries_are_as_many_and_nothing_that_the_student_wrote() -> None:
    before, plan = held(), config(source="random")
    after = apply_source(before, plan)
    assert after == apply_source(before, plan) != apply_source(before, plan.model_copy(update={"seed": 1}))
    for old, new in zip(before, after, strict=True):
        params, written = read(COUNTDOWN, new.task.question), tries(new.text)
        assert (old.event, old.task, old.iteration) == (new.event, new.task, new.iteration)
        assert len(written) == len(tries(old.text))
        ways = [retraced(COUNTDOWN, params, one) for one in written]
        for way, one in zip(ways, written, strict=True):
            assert (way and judge(COUNTDOWN, way.params, one) == "") or not one, (
                "true steps, or a draw that ends nowhere"
            )
        assert new.right == (judge(COUNTDOWN, params, written[-1]) == "")
    assert search_examples(after, 50, plan, 1)


def test_a_task_without_random_derivations_gives_no_random_try() -> None:
    other = Task(domain="math", family="linear", level=1, question="Solve 2*x+3=9.", canonical="linear")
    (found,) = apply_source([SearchAttempt("e", other, OPEN + "3}", True)], config(source="random"))
    assert (found.text, found.right) == ("", False)


def test_verdicts_are_permuted_within_an_iteration_and_tries_stay() -> None:
    before, plan = held(), config(source="permuted")
    after = {one.event: one for one in apply_source(before, plan)}
    assert all(replace(after[one.event], right=one.right) == one for one in before) and len(after) == len(before)
    assert any(after[one.event].right != one.right for one in before)
    for iteration in range(3):
        old, new = (Counter(o.right for o in some if o.iteration == iteration) for some in (before, after.values()))
        assert old == new
    later = {one.event: one for one in apply_source([one for one in before if one.iteration], plan)}
    assert all(after[event] == one for event, one in later.items()), "another iteration changes nothing"
    assert {one.right for one in apply_source(before, config(source="wrong"))} == {False}


def test_only_tries_without_a_mistake_enter_as_they_were_written() -> None:
    found, rng = held(), random.Random(3)
    derive = COUNTDOWN.derive
    assert derive
    sloppy = [
        replace(one, text=one.text[:-1] + "} no \\boxed{" + derive(read(COUNTDOWN, one.task.question), rng) + "}")
        for one in found
    ]
    written = {text for one in sloppy for text in tries(one.text)}
    made = search_examples(sloppy, 200, config(source="written", hindsight=False), 1)
    assert made and {text for one in made for text in tries(one.turns[-1].content)} <= written
    assert {question(one).split(" from ")[-1].split(".")[0] for one in made}
    assert all(one.origin.get("corrected", 0) == 0 and one.origin.get("other_tasks", 0) == 0 for one in made)
    repaired = search_examples(sloppy, 200, config(), 1)
    assert not {text for one in repaired for text in tries(one.turns[-1].content)} <= written


@pytest.mark.parametrize("seed", [1, 2])
def test_every_character_that_counts_has_an_origin(seed: int) -> None:
    made = search_examples(attempts(seed, 20), 200, config(), seed)
    for one in made:
        assert one.learned is not None and one.origin["examples"] == 1
        parts = [one.origin.get(name, 0) for name in ("written", "corrected", "placed")]
        assert min(parts) >= 0 and sum(parts) == sum(end - start for start, end in one.learned)
    whole = sum((Counter(one.origin) for one in made), Counter[str]())
    assert whole["written"] > 0 < whole["corrected"] and 0 < whole["other_tasks"] < whole["examples"] == 200


def test_a_corrected_step_is_the_tool_s_and_the_one_before_it_the_student_s() -> None:
    task = Task(
        domain="math", family="countdown", level=2, question="Make 20 from 3,7,2.", canonical="countdown 20 from 2,3,7"
    )
    text = OPEN + "7+3=10,2;10*2=21}"
    (made,) = search_examples([SearchAttempt("e", task, text, False)], 1, config(), 1)
    own, corrected = "7+3=10,2;", "10*2=20"
    assert made.turns[-1].content == f"{OPEN}{own}{corrected}}}"
    assert (made.origin["written"], made.origin["corrected"]) == (len(own), len(corrected))
    assert made.origin["placed"] == len(OPEN) + 1 and made.origin.get("other_tasks", 0) == 0
