"""Rules about tasks at their borders, with every field: constraints, difficulty, frontiers, screening."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.errors import Agent0Error, ConfigError
from agent0.events.values import Task
from agent0.settings import CurriculumConfig, RunConfig
from agent0.state.run_state import Arm, RunState, TaskState, arm_key
from agent0.stats.intervals import wilson
from agent0.tasks.answer_length import too_long
from agent0.tasks.curriculum.difficulty import Difficulty, grade
from agent0.tasks.curriculum.frontier import around, frontier
from agent0.tasks.curriculum.ladder_height import Standing, attempted_height
from agent0.tasks.curriculum.sampler import broadened, entropy, open_slots, stale
from agent0.tasks.families import expression, families
from agent0.tasks.screening import Archive, Decision, Proposed, decide_batch
from agent0.tasks.splits import heldout, task_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def told(work: Any, kind: type[Agent0Error] = ConfigError) -> tuple[str, str, str]:
    with pytest.raises(kind) as found:
        work()
    return found.value.what, found.value.why, found.value.fix


def test_slots_are_kept_diverse() -> None:
    assert entropy([1, 1]) == pytest.approx(1) and entropy([1, 0]) == 0 and entropy([5]) == 1.0 == entropy([0, 0])
    assert entropy([3, 1]) == pytest.approx(0.8112781)
    assert broadened([3, 1], 0.5) == [0.75, 0.25] and broadened([0, 0], 0.9) == [0.5, 0.5]
    mixed = broadened([1, 0, 0], 0.9)
    assert sum(mixed) == pytest.approx(1) and entropy(mixed) == pytest.approx(0.9, abs=1e-9) and mixed[1] == mixed[2]
    arms = [("math", "a", 1), ("math", "a", 2), ("math", "b", 1)]
    assert open_slots(arms, arms[:1], 0.5, 4) == arms and open_slots(arms, arms[:2], 0.5, 4) == arms[2:]
    assert open_slots(arms, [*arms[:2], *arms[2:] * 2], 0.5, 4) == arms and open_slots(arms, [], 0.01, 4) == arms
    last = {arms[0]: 5, arms[1]: 2, arms[2]: 2}
    assert stale(arms, last, 6, 3) == [arms[1], arms[2]] and stale(arms, last, 6, 4) == []
    assert stale(arms, {arms[0]: 0}, 1, 1) == [arms[1], arms[2]], "never is before the first iteration"
    assert stale(arms, {}, 0, 1) == [] and stale(arms, {}, 0, 0) == arms


def test_difficulty_is_graded_by_rate_and_interval() -> None:
    low, high = wilson(1, 2)
    assert grade(1, 2, turns=3.0, calls=0.5) == Difficulty("frontier", 1, 2, 0.5, low, high, 3.0, 0.5)
    assert grade(0, 0, turns=1.0) == Difficulty("unknown", 0, 0)
    words = {(0, 3): "hard", (0, 99): "unsolved", (3, 3): "easy", (99, 99): "mastered", (1, 10): "frontier",
             (9, 10): "frontier"}  # fmt: skip
    assert {key: grade(*key).grade for key in words} == words
    for solved, tried in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"^{solved} of {tried} attempts cannot have solved it$"):
            grade(solved, tried)


def test_the_frontier_is_the_highest_level_half_solved() -> None:
    rungs = [("math", "f", level) for level in range(1, 6)]
    arms = {arm_key(*rungs[2]): Arm(4.0, 0.0, 2.0), arm_key(*rungs[0]): Arm(4.0, 0.0, 1.0)}
    assert frontier(arms, rungs, 0) == 3 and frontier(arms, rungs, 4) == 4 and frontier({}, rungs[1:], 0) == 2
    assert frontier({arm_key(*rungs[1]): Arm(4.0, 0.0, 1.0)}, rungs, 2) == 1, "what was asked for is known"
    other = [("math", "g", 1), ("math", "g", 2)]
    plan = CurriculumConfig(ahead=1)
    found = around(lambda one: frontier(arms, one, plan.mastered), [*rungs[::-1], *other], plan)
    assert found == [rungs[1], other[0], rungs[2], other[1], rungs[3]]
    assert around(lambda _: 1, [], plan) == []


def ladder_state(*rates: tuple[int, float | None]) -> RunState:
    tasks = {
        f"t{n}": TaskState(n, "math", "reversal", level, solve_rate=rate,
                           proposal=Task(question="q", domain="math", family="reversal", level=level, canonical="c"))
        for n, (level, rate) in enumerate(rates)
    }  # fmt: skip
    return RunState("r", 1, RunConfig(), "", tasks=tasks)


def test_attempts_say_how_high_a_student_stands() -> None:
    held = ladder_state((4, 1.0), (4, 0.0), (7, 0.5), (9, 0.4), (11, None))
    assert attempted_height(held) == 7 and attempted_height(held, 2) == 4 and attempted_height(held, 3) is None
    assert attempted_height(ladder_state((4, 0.4))) == 0 and attempted_height(ladder_state()) is None
    assert (Standing({"4": 0.5, "5": 0.25}).height, Standing({"4": 0.5, "5": 0.25}).added) == (4, 0.75)


def test_an_answer_that_fits_in_no_turn_is_refused_with_its_length() -> None:
    entry = families()["reversal"]
    task = task_of(entry, "Reverse 1230.")
    assert task is not None
    needed = 4 + len("\\boxed{}") + 1
    assert too_long(task, needed) == "" or "needs" in too_long(task, needed)
    least = next(n for n in range(99) if not too_long(task, n))
    assert too_long(task, least - 1) == (f"its answer needs {least} tokens, and run.student.max_tokens is {least - 1}")
    assert (
        too_long(task.model_copy(update={"family": "open"}), 0)
        == ""
        == too_long(task.model_copy(update={"family": "arithmetic"}), 0)
    )


def test_proposals_are_refused_in_this_order_with_these_words() -> None:
    trained, other = (one for one in heldout("train", 2, 1, ["math"], names=["arithmetic"]))
    (kept_,) = heldout("test", 1, 1, ["math"], names=["arithmetic"])

    def asked(slot: int, proposal: Task | None, **more: Any) -> Proposed:
        return Proposed(f"t{slot}", slot, more.pop("domain", "math"), proposal, **more)

    batch = [
        asked(9, other), asked(0, None, problem="why"), asked(1, trained, domain="code"),
        asked(2, trained, kind="long"),
        asked(3, kept_), asked(4, trained), asked(5, trained), asked(6, other), asked(7, other), asked(8, other),
    ]  # fmt: skip
    near, far = (1.0, 0.0), (0.6, 0.8)
    vectors: dict[str, Sequence[float]] = {f"t{n}": near for n in range(9)} | {"t9": far}
    archive = Archive(frozenset(), 2, {"t4": 0.25, "t6": 0.5, "t9": 0.7})
    found = decide_batch(batch, archive, vectors, 0.9, {"t7": "a row"}, too_long={"t8": "long"})
    assert found == [
        Decision("t0", 0, "malformed", "why"),
        Decision("t1", 1, "off_target", "asked for code, got math"),
        Decision("t2", 2, "off_target", "asked for a long task, got a short one"),
        Decision("t3", 3, "reserved", "kept for test"),
        Decision("t4", 4, None, "", 0.75, 2),
        Decision("t5", 5, "duplicate", trained.canonical[:200]),
        Decision("t6", 6, "similar", "similarity 1.0000 > 0.9", 0.0, 3),
        Decision("t7", 7, "contaminated", "a row"),
        Decision("t8", 8, "unsolvable", "long"),
        Decision("t9", 9, None, "", 0.3, 3),
    ]
    (alone,) = decide_batch([asked(4, trained)], Archive(), {"t4": near}, 0.9)
    assert alone == Decision("t4", 4, None, "", 1.0, 0)
    seen = decide_batch([asked(4, trained)], Archive(frozenset({trained.canonical})), {"t4": near}, 0.9)
    assert seen[0].reason == "duplicate"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2**100", "power 100 is out of bounds"), ("2**-1", "a number is missing before ['-']"),
        ("(1+2", "a bracket is open"), ("1+", "a number is missing before []"),
        ("007", "a number is missing before ['007']"),
        ("1 2", "not an expression: '1 2'"), ("1)", "left over: [')']"),
        ("1+" * 49, f"not an expression: {'1+' * 48!r}"),
        ("1 and 2<3", "1 is a number, not a truth value"), ("(1<2)+3", "True is a truth value, not a number"),
    ],
)  # fmt: skip
def test_what_is_no_expression_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        expression.value(text)


def test_expressions_have_their_precedence() -> None:
    values = {"2+3*4": 14, "2**3**1": None, "(2+3)*4-1": 19, "2**99": 2**99, "0**0": 1, "1<2 and not 3<2": True,
              "1==2 or 2>1": True, "not 1<2 or 3==3": True, "10-3-2": 5, "2*3**2": 18}  # fmt: skip
    assert {text: expression.value(text) for text, found in values.items() if found is not None} == {
        text: found for text, found in values.items() if found is not None
    }
    assert expression.numbers("a12b3-4") == [12, 3, 4]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("8-3=5;5*2=10", ""), ("8-3=5,2;5*2=10", ""), ("8-3=2,5;5*2=10", ""), ("x", "step 1: cannot be read"),
        ("8-3=6;6*2=12", "step 1: 8-3 is 5"), ("8-3=2;5*2=10", "step 1: 8-3 is 5"),
        ("8-9=1;x", "step 1: there is no 9 to take from 2,3,8"), ("2-3=1;x", "step 1: 2-3 is below 0"),
        ("8-3=6,2;x", "step 1: 8-3 is 5"), ("8-3=5,3;x", "step 1: 2,5 is left, not 5,3"),
        ("8-3=5;5+2=7", "it makes 7, not 10"), ("8-3=5;5*2=10;1+1=2", "step 3: only one number is left"),
        ("(8-3)*2", ""), ("(8-3)*2=10", ""), ("(8-3)*2=11", "(8-3)*2 is 10, not 11"), ("8-3*2", "it makes 2, not 10"),
        ("8-3", "it uses 3,8, not 2,3,8"), ("8**3+2", "cannot be read"), ("(8-3*2", "cannot be read"),
    ],
)  # fmt: skip
def test_an_answer_to_a_countdown_is_checked_step_by_step(steps: str, why: str) -> None:
    check = families()["countdown"].check
    assert check is not None
    assert check({"numbers": [3, 8, 2], "target": 10}, steps) == why
    four = {"numbers": [3, 8, 2, 1], "target": 10}
    assert check(four, "8-3=5;5*2=10") == "1,10 are left: all numbers must be used"
