"""Rules that a question states in words, equations that it asks to solve, and rows that are no answers: each decides
what it says, at its border."""

import asyncio

import pytest

from agent0.errors import ConfigError
from agent0.events.values import Task
from agent0.verification.labelled_pairs import Decided, read_pairs, summary
from agent0.verification.panel import PanelCase, VerificationContext
from agent0.verification.panel.substitution import substitution
from agent0.verification.panel.wording import stated_rules, wording


def kept(question: str, answer: str) -> list[bool]:
    return [holds(answer) for _, holds in stated_rules(question)]


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("Answer in three words.", ["a b c"], ["a b", "a b c d"]),
        ("Use EXACTLY 2 letters.", ["a1b", "a-b"], ["a", "abc"]),
        ("Write at most 2 words.", ["a", "a b"], ["a b c"]),
        ("Write no more than two characters.", ["", "ab"], ["abc"]),
        ("Write at least 2 lines.", ["a\nb", "a\nb\nc"], ["a", "a\n"]),
        ("Write no fewer than two sentences.", ["A. B.", "A! B? C"], ["A.", "A"]),
        ("Write fewer than 3 words.", ["a b"], ["a b c"]),
        ("Write more than 10 characters.", ["a" * 11], ["a" * 10]),
        ("Write in ten words.", [" ".join("abcdefghij")], [" ".join("abcdefghi")]),
        ("Say it without using the word 'cat'.", ["a dog", "concatenate"], ["A Cat!"]),
        ('Say it and include the word "cat".', ["the cat."], ["cats", "dog"]),
        ("Never mention the letter 'e'.", ["no"], ["yes", "E"]),
        ("It contains the phrase 'by the way'.", ["By the way, no"], ["by the ways"]),
        ("Start with the word 'No'.", ["no, never", " NO"], ["oh no"]),
        ("End with 'end.'", ["the end."], ["the end", "end. no"]),
        ("It begins with 'x'.", ["xy", "X"], ["yx"]),
        ("It is ending with the letter 'x'.", ["yx", "yx.", "X!"], ["xy"]),
        ("Answer in upper case.", ["NO"], ["No"]),
        ("Answer in all lower-case.", ["no"], ["No"]),
        ("Answer in lowercase.", ["no"], ["NO"]),
    ],
)
def test_one_rule_holds_on_its_side_of_the_border_only(question: str, right: list[str], wrong: list[str]) -> None:
    assert [kept(question, one) for one in right] == [[True]] * len(right)
    assert all(words in question and " " in words for words, _ in stated_rules(question))
    assert [kept(question, one) for one in wrong] == [[False]] * len(wrong)


def case(question: str, *answers: str | None) -> PanelCase:
    task = Task(question=question, domain="math", family="open", level=1, canonical=question)
    return PanelCase(task, answers, tuple(range(len(answers))), VerificationContext())


def test_several_kept_rules_are_a_yes_and_a_broken_one_is_named() -> None:
    asked = "Answer in two words, in lower case."
    found = asyncio.run(wording(case(asked, "a b", "A b", "a", None)))
    assert found == [
        (True, "2 stated rules are kept"),
        (False, "asked for and not kept: in lower case"),
        (False, "asked for and not kept: in two words"),
        (None, "no answer"),
    ]
    assert asyncio.run(wording(case("Use two words.", "a b"))) == [(None, "the question states no form")]
    assert asyncio.run(wording(case("Answer in two words.", "a b"))) == [(None, "one stated rule is kept")]


NO_VALUE, WRONG = (None, "no value to put in"), (False, "it does not solve the equation")
YES, PERHAPS = (True, "it solves the equation"), (None, "it solves the equation, which may have other solutions")


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Solve 2*x+3=9.", "3", YES),
        ("Solve 2*x+3=9.", "x = 3", YES),
        ("Solve 2*x+3=9.", "4", WRONG),
        ("Solve 2*x+3=9.", "x", NO_VALUE),
        ("Solve 2*x+3=9.", "three", NO_VALUE),
        ("Solve 2*x+3=9.", r"\infty", NO_VALUE),
        ("Solve 2*x+3=9.", "(3, 3)", NO_VALUE),
        ("Solve x^2=9.", "3", PERHAPS),
        ("Solve x^2=9.", "3, -3", YES),
        ("Solve x^2=9.", r"\{3, -3\}", YES),
        ("Solve x^2=9.", "x = 3 or x = -3", YES),
        ("Solve x^2=9.", "3, 3", PERHAPS),
        ("Solve x^2=9.", "3, 4", WRONG),
        ("Solve x^3=x.", "0, 1, -1", YES),
        ("Solve x^3=x.", "0, 1", PERHAPS),
        ("Solve 1/x=2.", "1/2", PERHAPS),
        (r"Find x: \sqrt{x}=2.", "4", PERHAPS),
        ("Solve 1/x=2.", "0", NO_VALUE),
        ("Solve x=x.", "1", PERHAPS),
    ],
)
def test_an_answer_is_put_into_the_equation(question: str, answer: str, expected: tuple[bool | None, str]) -> None:
    assert asyncio.run(substitution(case(question, answer))) == [expected]


@pytest.mark.parametrize(
    "question",
    ["What is 2+3?", "Solve x+y=3.", "Solve x=1, x=2.", "Solve 1=x=2.", "If x+1=3, what is 2*x?", "Solve A=3."],
)
def test_no_single_equation_gives_no_vote(question: str) -> None:
    assert asyncio.run(substitution(case(question, "2", None))) == [(None, "the question is no single equation")] * 2


ANSWER = '"pair_id": "a", "candidate": "1", "label": "accept"'


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (f'{{{ANSWER}, "gold": "1"}}', "form is missing"),
        (f'{{{ANSWER}, "form": "answer"}}', "gold is missing"),
        (f"{{{ANSWER}}}", "gold is missing"),
        (f'{{{ANSWER}, "test": "x"}}', "setup is missing"),
        (f'{{{ANSWER}, "setup": "x"}}', "test is missing"),
        (f'{{{ANSWER}, "setup": "x", "test": "x"}}', "entry_point is missing"),
        (f'{{{ANSWER}, "entry_point": "x"}}', "setup is missing"),
        (f'{{{ANSWER}, "form": "answer", "test": "x"}}', "gold is missing"),
        (f'{{{ANSWER}, "gold": " ", "form": "answer"}}', "gold is empty"),
        (f'{{{ANSWER}, "gold": "1", "form": "other"}}', "form 'other' is none of answer, response"),
        (f'{{{ANSWER}, "gold": "1", "form": "answer", "policy": 1}}', "policy is neither true nor false"),
        (f'{{{ANSWER}, "gold": "1", "form": "answer", "kind": "odd"}}', "kind 'odd' is none of "),
        (f"{{{ANSWER}, {ANSWER}}}", "the field 'pair_id' is there twice"),
        ("[]", "no JSON object"),
        ("{", "no JSON"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(row: str, problem: str) -> None:
    with pytest.raises(ConfigError) as found:
        read_pairs(f"\n{row}", "pairs")
    assert str(found.value).startswith(f"pairs, line 2: {problem}")


def test_rows_that_can_be_read_are_those_of_the_file() -> None:
    code = f'{{{ANSWER}, "setup": "", "test": "x", "entry_point": "f"}}'
    answers = f'{{{ANSWER}, "gold": "1", "form": "answer", "policy": true}}'.replace('"a"', '"b"')
    assert [row["pair_id"] for row in read_pairs(f"{code}\n\n{answers}", "pairs")] == ["a", "b"]
    with pytest.raises(ConfigError, match="line 3: pair_id 'a' is that of line 1 too"):
        read_pairs(f"{code}\n\n{code}", "pairs")
    with pytest.raises(ConfigError, match="pairs has no rows"):
        read_pairs("\n", "pairs")


def test_rates_count_what_is_undecided_as_rejected() -> None:
    said = [(True, True), (True, False), (True, None), (True, True), (False, True), (False, None), (False, False)]
    pairs = [Decided(f"p{n}", accept, correct, "", n / 8, False) for n, (accept, correct) in enumerate(said)]
    found = summary([*pairs, Decided("own", True, True, "", 9.0, True)])
    assert (found["n"], found["accuracy"], found["tpr"], found["fpr"]) == (7, 4 / 7, 2 / 4, 1 / 3)
    assert (found["undecided"], found["slowest_s"], found["wrong"]) == (2, 0.75, ["p1", "p2", "p4"])
    assert 0 < found["lower95"] < 4 / 7 and (found["policy"]["n"], found["policy"]["fpr"]) == (1, None)
    assert summary([])["accuracy"] is None and summary([])["slowest_s"] == 0.0
