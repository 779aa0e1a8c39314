"""Lessons from one's own search: true facts, nothing kept for held-out sets, and no wrong choice is ever learned."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.ports.training import TrainingExample
from agent0.settings import RecipeConfig, RunConfig, TrainingConfig
from agent0.tasks.families import Family, Params, Retraced, families
from agent0.tasks.splits import split_key, split_of, split_of_task, task_of
from agent0.training.search_traces import AGAIN, OPEN, SearchAttempt, search_examples, tries
from events.values import Task
from tests.test_verifiers import HOSTILE

COUNTDOWN = families()["countdown"]
RETRACED = {name: entry for name, entry in families(long=None).items() if entry.retrace}
every_family = pytest.mark.parametrize("entry", RETRACED.values(), ids=list(RETRACED))


def config(shuffle: bool = False, **recipe: object) -> RunConfig:
    student = RecipeConfig.model_validate({"lessons": "search", "replay_by": "pattern", **recipe})
    return RunConfig(training=TrainingConfig(student=student), shuffle_rewards=shuffle)


def task(rng: random.Random, level: int = 2, entry: Family = COUNTDOWN) -> Task:
    while True:
        params = entry.sample(level, rng)
        found = task_of(entry, entry.render(params, rng))
        if found and split_of_task(found) == "train":
            return found


def wild(name: str, params: Params, rng: random.Random) -> str:
    """What somebody might write who cannot add up, or only guesses."""
    match name:
        case "countdown":
            pairs = [rng.choices(params["numbers"], k=2) for _ in params["numbers"][1:]]
            return ";".join(f"{a}{rng.choice('+-*')}{b}={rng.randint(0, 99)}" for a, b in pairs)
        case "inverse":
            return f"{rng.randrange(120)},{rng.randrange(120)}"
        case "placement":
            return ",".join(rng.sample(params["items"], len(params["items"])))
    return ";".join(rng.choices(params["operations"], k=rng.randint(1, params["most"] + 1)))


def read(entry: Family, question: str) -> Params:
    params = entry.parse(question)
    assert params is not None, question
    return params


def retraced(entry: Family, params: Params, text: str) -> Retraced | None:
    assert entry.retrace
    return entry.retrace(params, text)


def judge(entry: Family, params: Params, text: str) -> str:
    assert entry.check
    return entry.check(params, text)


def attempts(seed: int, count: int = 12, entry: Family = COUNTDOWN) -> list[SearchAttempt]:
    rng, found = random.Random(seed), []
    for number in range(count):
        asked = task(rng, rng.choice((2, 3)), entry)
        params = read(entry, asked.question)
        for again in range(3):
            written = [wild(entry.name, params, rng) for _ in range(rng.randint(1, 4))]
            right = rng.random() < 0.3
            written += [entry.solve(params)] if right else []
            text = OPEN + AGAIN.join(written) + "}"
            found.append(SearchAttempt(f"e{number}-{again}", asked, text, right))
    return found


def within_the_contract(entry: Family, params: Params, text: str, rng: random.Random) -> Retraced | None:
    """``text`` retraced, which is a right answer of a task that may be asked, and the asked one where it is right."""
    found = retraced(entry, params, text)
    own, right = entry.canonical(params), judge(entry, params, text) == ""
    if found is None:
        assert not right or entry.name == "countdown", "a formula, or a way past 99, is not retraced"
        return None
    assert judge(entry, found.params, found.text) == ""
    aim = entry.canonical(found.params)
    again = read(entry, entry.render(found.params, rng))
    assert entry.canonical(again) == aim and entry.level(again) == entry.level(params)
    assert not entry.trivial or entry.trivial(found.params) == ""
    assert (judge(entry, params, found.text) == "") == (aim == own) and (aim == own or not right)
    assert retraced(entry, found.params, found.text) == found
    assert tries(f"{OPEN}{found.text}}}") == [found.text]
    places = [0, *(place for fact in found.facts for place in fact), len(found.text)]
    assert places == sorted(places) and all(start < end for start, end in found.facts)
    return found


@every_family
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_what_is_retraced_solves_what_it_says_it_solves(entry: Family, seed: int, data: st.DataObject) -> None:
    """Two ways come to the same exactly where each solves what the other does: what is shown as wrong is wrong."""
    rng = random.Random(seed)
    params = read(entry, task(rng, 1 + seed % entry.levels, entry).question)
    right = entry.solve(params)
    at, cut = data.draw(st.integers(0, len(right))), data.draw(st.integers(0, 2))
    changed = right[:at] + data.draw(st.text("0123456789+-*=,;ABCDXxy \n()", max_size=2)) + right[at + cut :]
    texts = [right, changed, f" {right} ", *(wild(entry.name, params, rng) for _ in range(4))]
    ways = [found for text in texts if (found := within_the_contract(entry, params, text, rng))]
    for one in ways:
        for other in ways:
            same = entry.canonical(one.params) == entry.canonical(other.params)
            assert (judge(entry, one.params, other.text) == "") == same
            assert same or one.way != other.way


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_the_tool_writes_what_is_left_and_the_student_what_it_takes(seed: int, level: int) -> None:
    rng = random.Random(seed)
    params = read(COUNTDOWN, task(rng, level).question)
    if found := retraced(COUNTDOWN, params, wild("countdown", params, rng)):
        assert sorted(found.params["numbers"]) == sorted(params["numbers"])
        chosen = "".join(c for n, c in enumerate(found.text) if not any(a <= n < b for a, b in found.facts))
        assert "=" in chosen and all(found.text[a - 1] == "=" for a, _ in found.facts)


@every_family
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), said=st.text(max_size=400) | st.text("0123456789+-*=,;()xy ABC", max_size=80))
def test_any_text_is_retraced_or_not(entry: Family, seed: int, said: str) -> None:
    rng = random.Random(seed)
    params = read(entry, task(rng, 1 + seed % entry.levels, entry).question)
    right = entry.solve(params)
    floods = [right * 50, f"{right};" * 50, "9" * 299, "9" * 299 + ",1", "(" * 299, ";" * 99, "1+" * 149 + "1="]
    for text in (*HOSTILE, *floods, said):
        within_the_contract(entry, params, text, rng)
        tries(text)


FROM, ORDER = "Find x,y: x=x*y+5;y=y+3*x mod 31 gives {}.", "Order A,B,C,D: {}."
CHAIN = "Chain at most 3 of sort,reverse,tail,double: {}."
COMES_TO = [
    (FROM, "7,23", ["1,2", "x=32, y=2", "(1;33)"], "7,23"),
    (FROM, "7,23", ["2,2", "33,2"], "9,29"),
    (FROM, "7,23", ["0,0", "1,2,3", "one,2", "1000,2", "-1,2", "1"], ""),
    (ORDER, "B before A, A beside D, C apart D", ["CBAD", "B,D,A,C"], "B before A, A beside D, C apart D"),
    (ORDER, "B before A, A beside D, C apart D", ["D,B,A,C", "D<B<A<C"], "B before A, A apart D, C apart D"),
    (ORDER, "B before A, A beside D, C apart D", ["C,D,A,B"], "A before B, D beside A, C beside D"),
    (ORDER, "B before A, A beside D, C apart D", ["A,B,C,D", "A,B,C", "A,B,C,D,D", "B,A,D,E"], ""),
    (CHAIN, "3,1,2 to 3,2; 9,4,7 to 9,7", ["sort;tail;reverse"], "3,1,2 to 3,2; 9,4,7 to 9,7"),
    (CHAIN, "3,1,2 to 3,2; 9,4,7 to 9,7", ["reverse;tail", "reverse -> tail"], "3,1,2 to 1,3; 9,4,7 to 4,9"),
    (CHAIN, "3,1,2 to 3,2; 9,4,7 to 9,7", ["double;double;double"], "3,1,2 to 24,8,16; 9,4,7 to 72,32,56"),
    (CHAIN, "3,1,2 to 3,2; 9,14,7 to 14,9", ["double;double;double", "tail;tail;tail", "sort", "inc", "sort;" * 4], ""),
]


@pytest.mark.parametrize(("wording", "asked", "answers", "solved"), COMES_TO)
def test_what_an_answer_comes_to(wording: str, asked: str, answers: list[str], solved: str) -> None:
    (entry,) = (entry for entry in RETRACED.values() if entry.parse(wording.format(asked)))
    params, aim = read(entry, wording.format(asked)), entry.parse(wording.format(solved))
    ways = [retraced(entry, params, answer) for answer in answers]
    assert [way and entry.canonical(way.params) for way in ways] == [aim and entry.canonical(aim)] * len(answers)


@every_family
def test_lessons_are_made_of_attempts_at_every_family(entry: Family) -> None:
    """Of several tries and of one, for what was asked and for what was reached; others only say what is wrong."""
    found = attempts(8, 20, entry)
    asked = {one.task.canonical for one in found}
    made = search_examples(found, 300, config(), 3)
    aims = {entry.canonical(read(entry, question(lesson))) for lesson in made}
    assert asked & aims and aims - asked
    assert {(lesson.closed, AGAIN in lesson.turns[-1].content) for lesson in made} == {
        (True, True), (True, False), (False, True)
    }  # fmt: skip


def question(lesson: TrainingExample) -> str:
    return next(turn.content for turn in lesson.turns if turn.role == "user")


@every_family
def test_a_lesson_ends_right_and_its_wrong_tries_are_wrong(entry: Family) -> None:
    for lesson in search_examples(attempts(1, entry=entry), 300, config(), 7):
        said = lesson.turns[-1].content
        params = read(entry, question(lesson))
        assert split_of(split_key(entry, params)) == "train"
        *wrong, last = tries(said) if lesson.closed else [*tries(said), ""]
        assert all(judge(entry, params, one) for one in wrong)
        reached = [retraced(entry, params, one) for one in wrong]
        assert all(way and split_of(split_key(entry, way.params)) == "train" for way in reached)
        assert not lesson.closed or judge(entry, params, last) == ""
        assert len({*wrong}) == len(wrong)


@every_family
def test_choices_of_wrong_tries_are_never_learned(entry: Family) -> None:
    held = search_examples(attempts(2, entry=entry), 200, config(), 1)
    written = "0123456789," if entry is COUNTDOWN else ""
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
                assert text == AGAIN or set(text) <= set(written)
        assert bool(said[last:]) == lesson.closed


def test_the_same_attempts_in_any_order_give_the_same_lessons() -> None:
    found = attempts(3)
    shuffled = random.Random(0).sample(found, len(found))
    assert search_examples(found, 50, config(), 5) == search_examples(shuffled, 50, config(), 5)
    assert search_examples(found, 50, config(), 5) != search_examples(found, 50, config(), 6)


def test_without_hindsight_only_what_was_asked_is_taught() -> None:
    found = attempts(4, 30)
    asked = {COUNTDOWN.canonical(params) for one in found if (params := COUNTDOWN.parse(one.task.question))}
    for lesson in search_examples(found, 200, config(hindsight=False), 1):
        assert COUNTDOWN.canonical(read(COUNTDOWN, question(lesson))) in asked


def test_who_explores_is_shown_one_right_try_at_once_and_searches_afterwards() -> None:
    plan = config(explore=0.5).model_copy(update={"iterations": 4})
    shown = [[lesson.turns[-1].content for lesson in search_examples(attempts(6), 200, plan, 1, n)] for n in range(4)]
    again = [sum(AGAIN in text for text in texts) for texts in shown]
    assert again[:2] == [0, 0] and min(again[2:]) > 50
    assert all(len(tries(text)) == 1 for texts in shown[:2] for text in texts)


def test_the_control_teaches_what_is_not_so() -> None:
    found = search_examples(attempts(5), 200, config(shuffle=True), 1)
    wrong = 0
    for lesson in found:
        params = read(COUNTDOWN, question(lesson))
        wrong += bool(judge(COUNTDOWN, params, tries(lesson.turns[-1].content)[-1]))
    assert wrong > len(found) / 2


def test_families_without_a_tool_that_retraces_give_no_lesson() -> None:
    other = Task(domain="math", family="linear", level=1, question="Solve 2*x+3=9.", canonical="linear")
    assert search_examples([SearchAttempt("e", other, OPEN + "3}", True)], 10, config(), 1) == ()
