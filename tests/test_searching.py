"""Lessons from one's own search: true facts, nothing kept for held-out sets, and no wrong choice is ever learned."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.families import families
from agent0.heldout import split_of, task_of
from agent0.searching import AGAIN, OPEN, Searched, lessons, tries
from agent0.settings import RecipeConfig, RunConfig, TrainingConfig
from events.values import Task

COUNTDOWN = families()["countdown"]


def config(shuffle: bool = False, **recipe: object) -> RunConfig:
    student = RecipeConfig.model_validate({"lessons": "search", "replay_by": "pattern", **recipe})
    return RunConfig(training=TrainingConfig(student=student), shuffle_rewards=shuffle)


def task(rng: random.Random, level: int = 2) -> Task:
    while True:
        params = COUNTDOWN.sample(level, rng)
        found = task_of(COUNTDOWN, COUNTDOWN.render(params, rng))
        if found and split_of(found.canonical) == "train":
            return found


def wild(asked: Task, rng: random.Random) -> str:
    """Steps that somebody might write who cannot add up."""
    params = COUNTDOWN.parse(asked.question)
    assert params
    steps = [
        f"{rng.choice(params['numbers'])}{rng.choice('+-*')}{rng.choice(params['numbers'])}={rng.randint(0, 99)}"
        for _ in params["numbers"][1:]
    ]
    return ";".join(steps)


def attempts(seed: int, count: int = 12) -> list[Searched]:
    rng, found = random.Random(seed), []
    for number in range(count):
        asked = task(rng, rng.choice((2, 3)))
        params = COUNTDOWN.parse(asked.question)
        assert params
        for again in range(3):
            written = [wild(asked, rng) for _ in range(rng.randint(1, 4))]
            right = rng.random() < 0.3
            written += [COUNTDOWN.solve(params)] if right else []
            text = OPEN + AGAIN.join(written) + "}"
            found.append(Searched(f"e{number}-{again}", asked, text, right))
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_what_is_retraced_solves_what_it_says_it_solves(seed: int, level: int) -> None:
    rng = random.Random(seed)
    asked = task(rng, level)
    params = COUNTDOWN.parse(asked.question)
    assert params and COUNTDOWN.retrace and COUNTDOWN.check
    for text in (wild(asked, rng), COUNTDOWN.solve(params)):
        found = COUNTDOWN.retrace(params, text)
        if found is None:
            continue
        assert COUNTDOWN.check(found.params, found.text) == ""
        assert sorted(found.params["numbers"]) == sorted(params["numbers"])
        again = COUNTDOWN.retrace(params, found.text)
        assert again == found
        chosen = "".join(c for n, c in enumerate(found.text) if not any(a <= n < b for a, b in found.facts))
        assert "=" in chosen and all(found.text[a - 1] == "=" for a, _ in found.facts)


@given(st.text(max_size=400))
def test_any_text_is_retraced_or_not(text: str) -> None:
    assert COUNTDOWN.retrace
    COUNTDOWN.retrace({"numbers": [3, 7, 2], "target": 20}, text)
    tries(text)


def test_a_lesson_ends_right_and_its_wrong_tries_are_wrong() -> None:
    for lesson in lessons(attempts(1), 300, config(), 7):
        said = lesson.turns[-1].content
        asked = next(turn.content for turn in lesson.turns if turn.role == "user")
        params = COUNTDOWN.parse(asked)
        assert params and COUNTDOWN.check
        assert split_of(COUNTDOWN.canonical(params)) == "train"
        *wrong, last = tries(said) if lesson.closed else [*tries(said), ""]
        assert all(COUNTDOWN.check(params, one) for one in wrong)
        reached = [COUNTDOWN.retrace(params, one) for one in wrong if COUNTDOWN.retrace]
        assert all(split_of(COUNTDOWN.canonical(way.params)) == "train" for way in reached if way)
        assert not lesson.closed or COUNTDOWN.check(params, last) == ""
        assert len({*wrong}) == len(wrong)


def test_choices_of_wrong_tries_are_never_learned() -> None:
    held = lessons(attempts(2), 200, config(), 1)
    assert any(not lesson.closed for lesson in held)
    assert any(AGAIN in lesson.turns[-1].content for lesson in held)
    for lesson in held:
        said = lesson.turns[-1].content
        assert lesson.learned
        kept = [said[a:b] for a, b in lesson.learned]
        last = said.rindex(AGAIN) + len(AGAIN) if AGAIN in said else 0
        for (start, end), text in zip(lesson.learned, kept, strict=True):
            assert 0 <= start < end <= len(said)
            if end <= last:
                assert text == AGAIN or set(text) <= set("0123456789,")
        assert bool(said[last:]) == lesson.closed


def test_the_same_attempts_in_any_order_give_the_same_lessons() -> None:
    found = attempts(3)
    shuffled = random.Random(0).sample(found, len(found))
    assert lessons(found, 50, config(), 5) == lessons(shuffled, 50, config(), 5)
    assert lessons(found, 50, config(), 5) != lessons(found, 50, config(), 6)


def test_without_hindsight_only_what_was_asked_is_taught() -> None:
    found = attempts(4, 30)
    asked = {COUNTDOWN.canonical(params) for one in found if (params := COUNTDOWN.parse(one.task.question))}
    for lesson in lessons(found, 200, config(hindsight=False), 1):
        params = COUNTDOWN.parse(next(turn.content for turn in lesson.turns if turn.role == "user"))
        assert params and COUNTDOWN.canonical(params) in asked


def test_who_explores_is_shown_one_right_try_at_once_and_searches_afterwards() -> None:
    plan = config(explore=0.5).model_copy(update={"iterations": 4})
    shown = [[lesson.turns[-1].content for lesson in lessons(attempts(6), 200, plan, 1, n)] for n in range(4)]
    again = [sum(AGAIN in text for text in texts) for texts in shown]
    assert again[:2] == [0, 0] and min(again[2:]) > 50
    assert all(len(tries(text)) == 1 for texts in shown[:2] for text in texts)


def test_the_control_teaches_what_is_not_so() -> None:
    found = lessons(attempts(5), 200, config(shuffle=True), 1)
    assert COUNTDOWN.check
    wrong = 0
    for lesson in found:
        params = COUNTDOWN.parse(next(turn.content for turn in lesson.turns if turn.role == "user"))
        assert params
        wrong += bool(COUNTDOWN.check(params, tries(lesson.turns[-1].content)[-1]))
    assert wrong > len(found) / 2


def test_families_without_a_tool_that_retraces_give_no_lesson() -> None:
    other = Task(domain="math", family="linear", level=1, question="Solve 2*x+3=9.", canonical="linear")
    assert lessons([Searched("e", other, OPEN + "3}", True)], 10, config(), 1) == ()
