"""No task repeats an item of a benchmark; what only sounds like one passes."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.values import Task
from agent0.tasks.decontamination import (
    Phrases,
    Reference,
    ReferenceIndex,
    distinctive_words_needed,
    own_words,
    spelled,
    tokens_of,
    words_of,
)

DUCKS = (
    "Janet's ducks lay 16 eggs per day. She eats three for breakfast every morning and bakes muffins for her friends "
    "every day with four. She sells the remainder at the farmers' market daily for $2 per fresh duck egg. How much in "
    "dollars does she make every day at the farmers' market?"
)
HOUSE = (
    "Josh decides to try flipping a house. He buys a house for $80,000 and then puts in $50,000 in repairs. This "
    "increased the value of the house by 150%. What is the value of the profit that he made?"
)
SHORT = r"Evaluate $\log_{2} 64$."
BOOLEAN = "not ( True ) and ( True or False ) or True is"
ITEMS = {"ducks": DUCKS, "house": HOUSE, "short": SHORT, "boolean": BOOLEAN}
AWAY = [0.0, 1.0]
NEAR = [1.0, 0.0]


def index(items: dict[str, str], n: int = 8) -> ReferenceIndex:
    references = [Reference("set", name, text, (text,)) for name, text in items.items()]
    return ReferenceIndex(references, np.asarray([NEAR] * len(items), dtype=np.float32), n)


def task(question: str, family: str = "open", subgoals: Sequence[str] = ()) -> Task:
    kind = "long" if subgoals else "short"
    plain = {"question": question, "domain": "math", "family": family, "level": 1, "canonical": question}
    return Task(**plain, kind=kind, subgoals=tuple(subgoals))


def overlap(question: str, family: str = "open", items: dict[str, str] | None = None, n: int = 8) -> str:
    return index(items or ITEMS, n).overlap(task(question, family), AWAY, 0.95)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_found_as_it_is_and_inside_other_words(name: str) -> None:
    assert overlap(ITEMS[name]).startswith(f"set {name}: ")
    if name != "short":
        assert overlap(f"Please solve this: {ITEMS[name].upper()} Thank you!").startswith(f"set {name}: ")


def test_a_paraphrase_with_eight_words_in_a_row_is_found() -> None:
    told = overlap("On a farm Janet's ducks lay 16 eggs per day; how many in four?")
    assert told == "set ducks: 8 words in a row: 'janet s ducks lay 16 eggs per day'"
    assert not overlap("On a farm Janet's ducks lay 16 brown eggs per day; how many in four?")


def test_typography_hides_nothing() -> None:
    told = overlap("JANET\u2019S DUCKS  lay\n\uff11\uff16 eggs\u00a0per day. She eats")
    assert "janet s ducks lay 16 eggs per day" in told


DISGUISES = {
    "zero width": lambda text: "\u200b".join(text),
    "joiners, a mark of order, soft hyphens": lambda text: "\ufeff" + text.replace("e", "e\u2060\u00ad\u200d"),
    "Cyrillic": lambda text: text.translate(
        str.maketrans("aeopcyxiHMTB", "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u041d\u041c\u0422\u0412")
    ),
    "Greek": lambda text: text.translate(str.maketrans("ovHMTIE", "\u03bf\u03bd\u0397\u039c\u03a4\u0399\u0395")),
    "wide": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "bold": lambda text: "".join(chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c for c in text),
    "accents": lambda text: text.replace("e", "e\u0301").replace("a", "\u00e0"),
    "quotes, dashes, spaces": lambda text: text.replace("'", "\u2019").replace("-", "\u2011").replace(" ", "\u2003"),
}


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize("question", [DUCKS, HOUSE, "Evaluate 64 - 2 with Bob's own method."])
def test_letters_that_only_look_alike_hide_nothing(question: str, disguise: Callable[[str], str]) -> None:
    hidden = disguise(question)
    assert hidden != question or question.isascii()
    assert tokens_of(hidden) == tokens_of(question)
    assert overlap(hidden, items={"it": question}) == overlap(question, items={"it": question}) != ""


def test_each_way_to_tell_a_question_is_the_question() -> None:
    whole = "def rare(a): pass\nReturn the rarest. >>> rare([1])"
    found = ReferenceIndex([Reference("set", "it", whole, (whole, "Return the rarest."))], np.zeros((0, 2)), 8)
    assert found.overlap(task(whole), AWAY, 0.95).startswith("set it: 8 words")
    assert found.overlap(task("return  the rarest"), AWAY, 0.95) == "set it: the whole of it"
    assert not found.overlap(task("Return the rarest of them."), AWAY, 0.95), "that much is said by anybody"


def test_a_near_duplicate_in_other_words_is_found_by_its_embedding() -> None:
    near = [0.97, (1 - 0.97**2) ** 0.5]
    told = index(ITEMS).overlap(task("A woman owns some birds"), near, 0.95)
    assert told == "set ducks: similarity 0.9700 > 0.95"
    assert not index(ITEMS).overlap(task("A woman owns some birds"), near, 0.98)


INNOCENT = [
    "What is the value of 3 + 4 * 5?",
    "What is the value of the sum of 17 and 25?",
    "How much does she make every day if she makes 4 dollars every day?",
    "What is the value of the profit that he would have if he had 20?",
    "How many of them are there in total at the end of the day?",
    "Evaluate 64 / 2.",
    "Evaluate log 64.",
]


@pytest.mark.parametrize("question", INNOCENT)
def test_everyday_phrases_are_no_contamination(question: str) -> None:
    assert overlap(question) == ""


def test_what_many_items_say_is_an_instruction() -> None:
    tail = "Choose the most plausible continuation among these endings."
    names = ("apples", "barns", "clouds", "drums", "eagles")
    few = {name: f"Something rather peculiar about {name} happened. {tail}" for name in names[:4]}
    many = {name: f"Something rather peculiar about {name} happened. {tail}" for name in names}
    question = f"Nothing happened. {tail}"
    assert overlap(question, items=few) and not overlap(question, items=many)
    twice = {**few, "again": few["apples"]}
    assert overlap(question, items=twice), "the same item in two benchmarks is one item"


def test_what_a_family_always_says_is_no_evidence_against_it() -> None:
    """Else one item that happens to use a family's wording would end the family. Its numbers still tell."""
    question = "1. Start with coins: Bob 37, Eve 20, Ann 68; count all.\n2. Swap Bob's and Ann's; count Ann's."
    wording, numbers = (
        {"a": "Now swap Bob's and Ann's; count Ann's hats."},
        {"a": "With coins: Bob 37, Eve 20, Ann 68."},
    )
    assert overlap(question, items=wording) and not overlap(question, "ledger", wording)
    assert overlap(question, items=numbers) and overlap(question, "ledger", numbers)
    assert own_words("open") == frozenset() and {"coins", "swap"} <= own_words("ledger")
    assert not any(word.isdecimal() for word in own_words("ledger"))


def test_subgoals_are_looked_at_too() -> None:
    found = index(ITEMS).overlap(task("Do as told.", subgoals=("Nothing.", DUCKS)), AWAY, 0.95)
    assert found.startswith("set ducks")


@given(st.integers(3, 50))
def test_how_much_must_be_said_grows_with_the_phrase(n: int) -> None:
    assert 1 <= distinctive_words_needed(n) <= n and distinctive_words_needed(n) <= distinctive_words_needed(n + 1)


WORDS = st.lists(st.sampled_from(["ant", "bee", "cow", "dog", "elk", "fox", "gnu"]), max_size=30)


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), WORDS, st.integers(3, 6))
def test_phrases_are_those_that_a_plain_search_finds(texts: list[list[str]], words: list[str], n: int) -> None:
    """All words say something here, and fewer than five texts can share a phrase."""

    def runs(row: list[str]) -> set[tuple[str, ...]]:
        return {tuple(row[at : at + n]) for at in range(len(row) - n + 1)}

    held = [runs(text) for text in texts]
    told = list(Phrases([" ".join(text) for text in texts], n).shared(words))
    varied = {run for run in runs(words) if len(set(run)) >= distinctive_words_needed(n)}
    assert {tuple(phrase) for _, phrase in told} == varied & set().union(*held)
    assert all(tuple(phrase) in held[number] for number, phrase in told)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_compared(held: str, asked: str) -> None:
    found = index({"a": held or "x"}).overlap(task(asked), AWAY, 0.95)
    assert found == "" or found.startswith("set a: ")
    assert words_of(spelled(asked)) == words_of(asked), "one spelling is enough"


def test_an_index_of_nothing_finds_nothing() -> None:
    assert ReferenceIndex([], np.zeros((0, 2), dtype=np.float32), 8).overlap(task(DUCKS), NEAR, 0.5) == ""
