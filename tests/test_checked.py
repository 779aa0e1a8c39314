"""Families where checking is easy and finding is hard: many answers are right, none is known beforehand, and no text
that a student may write is taken for one that is not."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.values import Task
from agent0.tasks import families as room
from agent0.tasks.families import CHECKED as CHECKED_KIND
from agent0.tasks.families import Family, Params, families, rejection, requested_families
from agent0.tasks.families.chain import ENTRY as LONG
from agent0.tasks.families.synthesis import LANGUAGE
from agent0.tasks.screening import Archive, Proposed, decide_batch
from agent0.tasks.splits import heldout, task_of
from agent0.verification.verifiers import verifier_for
from tests.test_verifiers import HOSTILE, judged

CHECKED = {name: entry for name, entry in families().items() if entry.kind == CHECKED_KIND and entry.domain != "gym"}
every_family = pytest.mark.parametrize("entry", CHECKED.values(), ids=list(CHECKED))

seeds = st.integers(0, 2**32)


def drawn(entry: Family, seed: int) -> Task:
    rng = random.Random(seed)
    task = task_of(entry, entry.render(entry.sample(1 + seed % entry.levels, rng), rng))
    assert task is not None
    return task


def judge(entry: Family, params: Params, answer: str) -> str:
    assert entry.check
    return entry.check(params, answer)


def shuffled(name: str, params: Params, rng: random.Random) -> Params:
    """The same task with its parts in another order."""
    match name:
        case "countdown":
            return {**params, "numbers": rng.sample(params["numbers"], len(params["numbers"]))}
        case "placement":
            return {key: rng.sample(params[key], len(params[key])) for key in ("items", "clues")}
        case "synthesis":
            return {**params, **{key: rng.sample(params[key], len(params[key])) for key in ("operations", "examples")}}
    swap = str.maketrans("xy", "yx")
    return {**params, "steps": [step.translate(swap) for step in params["steps"]], "end": params["end"][::-1]}


def test_there_is_one_of_each_domain_and_none_is_asked_for_unless_it_is_named() -> None:
    assert {entry.domain for entry in CHECKED.values()} == {"math", "logic", "code"}
    for domain in ("math", "logic", "code"):
        assert not set(requested_families(domain)) & set(CHECKED)
        assert set(requested_families(domain, list(CHECKED))) == {
            n for n, entry in CHECKED.items() if entry.domain == domain
        }


@every_family
@settings(max_examples=12, deadline=None)
@given(seed=seeds)
def test_what_is_found_is_right_and_order_is_no_identity(entry: Family, seed: int) -> None:
    task, rng = drawn(entry, seed), random.Random(seed)
    assert judge(entry, task.params, entry.solve(task.params)) == ""
    assert rejection(entry.name, task.question) is None
    other = entry.parse(entry.render(shuffled(entry.name, task.params, rng), rng))
    assert other is not None and entry.canonical(other) == task.canonical
    assert judge(entry, other, entry.solve(other)) == ""
    if entry.name != "inverse":
        assert judge(entry, other, entry.solve(task.params)) == ""


@every_family
@settings(max_examples=20, deadline=None)
@given(seed=seeds, data=st.data())
def test_what_is_nearly_right_is_judged_by_what_it_does(entry: Family, seed: int, data: st.DataObject) -> None:
    """A character less, more or changed: where it is still accepted, it is so by an independent reading."""
    params = drawn(entry, seed).params
    right = entry.solve(params)
    at, cut = data.draw(st.integers(0, len(right))), data.draw(st.integers(0, 2))
    changed = right[:at] + data.draw(st.text("0123456789+-*=,;ABCDXxy \n()", max_size=2)) + right[at + cut :]
    if not judge(entry, params, changed):
        assert does(entry.name, params, changed), changed


def does(name: str, params: Params, answer: str) -> bool:
    """Whether ``answer`` is right, by Python itself. Only for answers that the check let through."""
    flat = "".join(answer.split())
    match name:
        case "countdown":
            values = [eval(step.partition("=")[0], {}) for step in flat.split(";")]
            return values[-1] == params["target"]
        case "inverse":
            x, y = map(int, flat.strip("()").replace("x=", "").replace("y=", "").replace(";", ",").split(","))
            for step in params["steps"]:
                made = eval(step[2:], {"x": x, "y": y}) % params["modulus"]
                x, y = (made, y) if step[0] == "x" else (x, made)
            return [x, y] == params["end"]
        case "placement":
            return sorted(filter(str.isalpha, flat)) == sorted(params["items"])
    program = answer.replace(";", " ").replace(",", " ").split()
    for before, after in params["examples"]:
        for step in program:
            before = eval(LANGUAGE[step][0], {"s": before})
        if before != after:
            return False
    return True


def every_order(params: Params) -> list[str]:
    return [",".join(order) for order in itertools.permutations(params["items"])]


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_orders_are_right_exactly_where_every_clue_holds(seed: int) -> None:
    entry, rng = CHECKED["placement"], random.Random(seed)
    params = entry.sample(1, rng)
    code = entry.call(params)[1]["code"]
    holds = code.partition(" if ")[2].partition(":\n")[0]
    for order in every_order(params):
        assert (judge(entry, params, order) == "") == eval(holds, {"i": order.replace(",", "").index})


@every_family
@settings(max_examples=20, deadline=None)
@given(seed=seeds, said=st.text(max_size=80) | st.text("0123456789+-*=,;()xy ABC", max_size=80))
def test_nothing_else_is_right(entry: Family, seed: int, said: str) -> None:
    """Emptiness, injections, floods: a reason each, short, and never an exception or a long wait."""
    params = drawn(entry, seed).params
    right = entry.solve(params)
    floods = ["(" * 299, ")" * 299, "1+" * 149 + "1", f"{right};{right}", right * 50, "9" * 299, ";" * 99, "--" * 99]
    for answer in (*HOSTILE, *floods, f"{right} or not", f"not {right}", f"{right}\x00", f"x={right}="):
        why = judge(entry, params, answer)
        assert why and len(why) < 400, answer[:60]
    why = judge(entry, params, said)
    assert len(why) < 400
    assert why == "" or right not in why, "a reason is no solution"


@every_family
async def test_a_verdict_comes_from_the_check_and_from_no_key(entry: Family) -> None:
    task = drawn(entry, 3)
    right = entry.solve(task.params)
    assert verifier_for(task).name == "checked" == verifier_for(task, "self_consistency").name
    good, wrong, none = await judged(task, right, f"{right} {right}", None)
    assert (good.correct, wrong.correct, none.correct) == (True, False, False)
    assert (good.expected, wrong.expected, none.reason) == ("", "", "no answer")
    lying = task.model_copy(update={"params": {}, "canonical": "forged", "level": 9})
    assert [one.correct for one in await judged(lying, right, "0")] == [True, False]
    (foreign,) = await judged(task.model_copy(update={"question": "Say 42."}), "42")
    assert foreign.correct is None


RIGHT = [
    ("Make 20 from 3,7,2.", ["7+3=10,2;10*2=20", "7+3=10;10*2=20", "3+7=10 2,10;2*10=20 20", "(3+7)*2", "2*(3+7) = 20",
                             " 7 + 3 = 10 , 2 ; 10 * 2 = 20 "]),
    ("Make 5 from 7,2.", ["7-2=5", "7-2", "7-2=5 5"]),
    ("Find x,y: x=x*y+5;y=y+3*x mod 31 gives 7,23.", ["1,2", "x=1, y=2", "(1,2)", "1;2"]),
    ("Order A,B,C,D: B before A, A beside D, C apart D.", ["CBAD", "C,B,A,D", "C<B<A<D", "B C A D"]),
    ("Chain at most 3 of sort,reverse,tail: 3,1,2 to 3,2; 9,4,7 to 9,7.",
     ["sort;tail;reverse", "sort, tail, reverse", "sort tail reverse", "sort -> tail -> reverse"]),
]  # fmt: skip
WRONG = [
    ("Make 20 from 3,7,2.", "7+3=10;10*3=30", "step 2: there is no 3 to take from 2,10"),
    ("Make 20 from 3,7,2.", "7+3=11,2;11*2=22", "step 1: 7+3 is 10"),
    ("Make 20 from 3,7,2.", "7+3=10,3;10*2=20", "step 1: 2,10 is left, not 10,3"),
    ("Make 20 from 3,7,2.", "7+3=10", "it uses 3,7, not 2,3,7"),
    ("Make 20 from 3,7,2.", "7+3=10,2", "2,10 are left: all numbers must be used"),
    ("Make 20 from 3,7,2.", "7*3=21,2;21-2=19", "it makes 19, not 20"),
    ("Make 20 from 3,7,2.", "7+3=10;10*2=20;20*1=20", "step 3: only one number is left"),
    ("Make 20 from 3,7,2.", "3-7=4,2", "step 1: 3-7 is below 0"),
    ("Make 20 from 3,7,2.", "20", "it uses 20, not 2,3,7"),
    ("Make 20 from 3,7,2.", "(3+7)*2=21", "(3+7)*2 is 20, not 21"),
    ("Make 20 from 3,7,2.", "3**7*2", "cannot be read"),
    ("Find x,y: x=x*y+5;y=y+3*x mod 31 gives 7,23.", "2,2", "2,2 gives 9,29"),
    ("Find x,y: x=x*y+5;y=y+3*x mod 31 gives 7,23.", "32,2", "32 is not below 31"),
    ("Order A,B,C,D: B before A, A beside D, C apart D.", "A,B,C,D", "it does not hold that B before A"),
    ("Order A,B,C,D: B before A, A beside D, C apart D.", "A,B,C", "not each of A,B,C,D once"),
    ("Chain at most 3 of sort,reverse,tail: 3,1,2 to 3,2; 9,4,7 to 9,7.", "sort;tail", "3,1,2 becomes 2,3, not 3,2"),
    ("Chain at most 3 of sort,reverse,tail: 3,1,2 to 3,2; 9,4,7 to 9,7.", "sort;inc", "there is no operation 'inc'"),
    ("Chain at most 2 of odds,evens: 3,1 to 3; 2,9,1 to 9.", "odds;evens", "it gives the same whatever the list"),
]  # fmt: skip


def of(question: str) -> tuple[Family, Params]:
    found = [(entry, params) for entry in CHECKED.values() if (params := entry.parse(question)) is not None]
    assert len(found) == 1, question
    return found[0]


@pytest.mark.parametrize(("question", "answers"), RIGHT)
def test_every_way_of_writing_it_is_read(question: str, answers: list[str]) -> None:
    entry, params = of(question)
    assert {answer: judge(entry, params, answer) for answer in answers} == dict.fromkeys(answers, "")


@pytest.mark.parametrize(("question", "answer", "why"), WRONG)
def test_the_first_wrong_step_is_told(question: str, answer: str, why: str) -> None:
    assert judge(*of(question), answer) == why


FAULTY = [
    ("Make 97 from 2,3.", "unsolvable"),
    ("Find x,y: x=2*x+y mod 12 gives 5,6.", "unsolvable"),
    ("Order A,B,C,D: A before B, B before C, C before A.", "unsolvable"),
    ("Chain at most 2 of sort,tail: 1,2 to 9; 3,4 to 8.", "unsolvable"),
    ("Find x,y: x=x+2*y mod 12 gives 0,0.", "trivial"),
    ("Order A,B,C,D: B before A.", "trivial"),
    ("Chain at most 3 of sort,tail: 3,1,2 to 1,2,3; 9,4 to 4,9.", "trivial"),
    ("Chain at most 3 of inc,dec: 3,1,2 to 3,1,2; 9,4 to 9,4.", "trivial"),
]


@pytest.mark.parametrize(("question", "reason"), FAULTY)
def test_what_has_no_answer_or_needs_no_search_is_refused_with_a_reason(question: str, reason: str) -> None:
    entry, _ = of(question)
    task = task_of(entry, question)
    proposed = Proposed("t0-000", 0, entry.domain, task)
    (decision,) = decide_batch([proposed], Archive(), {"t0-000": [1.0]}, 0.95)
    assert decision.reason == reason and decision.detail
    (elsewhere,) = decide_batch([replace(proposed, domain="music")], Archive(), {"t0-000": [1.0]}, 0.95)
    assert elsewhere.reason == "off_target"


def test_families_that_compute_have_no_fault() -> None:
    assert rejection("arithmetic", "What is 1+2?") is None
    assert rejection("open", "Why?") is None and rejection("countdown", "Why?") is None


@pytest.mark.parametrize(
    "question",
    ["Make 20 from 3.", "Make 0 from 3,7.", "Make 20 from 03,7.", "Make 20 from 3, 7.", "Make 20 from 1,2,3,4,5,6.",
     "Make 100 from 3,7.", "Find x,y: x=x+2*x mod 31 gives 1,1.", "Find x,y: x=x+1*y mod 31 gives 1,1.",
     "Find x,y: x=x+2*y mod 31 gives 31,1.", "Find x,y: x=x+2*y mod 10 gives 1,1.", "Order A,B,C,A: A before B.",
     "Order A,B,C,D: A before E.", "Order A,B,C,D: A before A.", "Order A,B,C: A before B.",
     "Chain at most 3 of sort,sort: 1 to 2; 1 to 3.", "Chain at most 3 of sort,exec: 1 to 2; 1 to 3.",
     "Chain at most 9 of sort,tail: 1 to 2; 1 to 3.", "Chain at most 3 of sort,tail: 1 to 2.",
     "Chain at most 3 of sort,tail: 1 to 200; 1 to 3."],
)  # fmt: skip
def test_what_is_not_quite_a_question_is_none(question: str) -> None:
    assert not any(entry.parse(question) for entry in CHECKED.values())


def test_held_out_tasks_may_be_of_named_families_only() -> None:
    tasks = heldout("validation", 40, 1, names=("countdown", "synthesis", "linear"))
    assert {task.family for task in tasks} == {"countdown", "synthesis", "linear"}
    assert sum(task.domain == "math" for task in tasks) == 20
    assert heldout("test", 30, 1) == heldout(
        "test", 30, 1, names=[n for d in ("math", "logic", "code") for n in requested_families(d)]
    )
    with pytest.raises(ValueError, match="no family"):
        heldout("test", 3, 1, ("music",))


def test_a_domain_that_only_checks_is_asked_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = replace(CHECKED["inverse"], name="alone", domain="alone")
    monkeypatch.setitem(room._families.entries, "alone", alone)
    assert requested_families("alone") == {"alone": alone}


def test_steps_are_compared_so_a_long_family_has_no_check() -> None:
    with pytest.raises(ValueError, match="cannot have a check"):
        replace(LONG, check=lambda params, answer: "")
