"""The splitter: steps in any of the common spellings are found, anything else is left whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.tasks.subgoals import LONGEST, LONGEST_STEP, MOST_STEPS, split


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        ("Do this.\n1. Add 3 to 4.\n2. Double it.\n\nWhat is left?", ("Add 3 to 4", "Double it")),
        ("Do: 1) add 3 2) add 4 3) report the sum.", ("Add 3", "Add 4", "Report the sum")),
        ("(1) sort it (2) reverse it", ("Sort it", "Reverse it")),
        ("Step 1: take 7.\nstep 2: add 5. 8 is wrong.", ("Take 7", "Add 5. 8 is wrong")),
        ("a) who is first?\nb) who is last?", ("Who is first?", "Who is last?")),
        ("First (a) walk (b) run (c) rest", ("Walk", "Run", "Rest")),
        ("a. one\nb. two", ("One", "Two")),
        ("Shop:\n- buy 3 pears\n- sell\n  one of them\nHow many?", ("Buy 3 pears", "Sell one of them")),
        ("First, sort it. Then, drop the last. Finally, add up.", ("Sort it", "Drop the last", "Add up")),
        ("Firstly do x; next do y. After that, do z. Lastly do w!", ("Do x", "Do y", "Do z", "Do w!")),
        ("1. Add 1 to 2. It grows.\n2. Halve it.", ("Add 1 to 2. It grows", "Halve it")),
        ("1. One\n3. Three\n2. Two", ("One 3. Three", "Two")),
    ],
)
def test_marked_steps_are_found(question: str, steps: tuple[str, ...]) -> None:
    assert split(question) == steps


@pytest.mark.parametrize(
    "question",
    [
        "", "What is 12+30?", "1. Only one step.", "2. Not\n3. from the first", "What is 1.5 + 2.5?", "- one bullet",
        "Then add. Finally report.", "At first sight, then.", "1. 2. 3.", "1.\n2.\n3.", "- \n- \n",
        "\n".join(f"{n}. step" for n in range(1, MOST_STEPS + 2)), f"1. a\n2. {'b' * (LONGEST_STEP + 1)}",
        "1. a\n2. b" + " " * LONGEST,
    ],
)  # fmt: skip
def test_what_names_no_steps_is_left_whole(question: str) -> None:
    assert split(question) == ()


SENTENCES = st.from_regex(r"[A-Z][a-z]{3,9}( [a-z]{5,9}| \d{3,5}){0,4}", fullmatch=True).filter(
    lambda text: not text.lower().startswith(("first", "second", "third", "next", "finally", "lastly", "after", "step"))
)


def lower(text: str) -> str:
    return text[0].lower() + text[1:]


@settings(deadline=None)
@given(steps=st.lists(SENTENCES, min_size=2, max_size=MOST_STEPS))
def test_however_a_list_is_marked_its_steps_are_the_same(steps: list[str]) -> None:
    later = ["Then", *["Next"] * (len(steps) - 3), "Finally"][-len(steps) + 1 :]
    letters = "abcdefghijkl"
    marked = [
        "\n".join(f"{n}. {text}." for n, text in enumerate(steps, 1)),
        "All of this:\n" + "\n\n".join(f"{n}) {text}" for n, text in enumerate(steps, 1)),
        " ".join(f"({n}) {lower(text)};" for n, text in enumerate(steps, 1)),
        "\n".join(f"Step {n}: {text}." for n, text in enumerate(steps, 1)),
        "\n".join(f"({letter}) {text}" for letter, text in zip(letters, steps, strict=False)),
        "\n".join(f"  * {text}" for text in steps),
        " ".join(f"{when}, {lower(text)}." for when, text in zip(["First", *later], steps, strict=True)),
    ]
    for question in marked:
        assert split(question) == tuple(steps), question


MARKS = st.sampled_from(["1. ", "2) ", "(3)", "Step 1: ", "step 2. ", "- ", "* ", "a) ", "First, ", "Then ", "\n", " "])


@settings(max_examples=80, deadline=None)
@given(st.lists(MARKS | st.text(max_size=12), max_size=60).map("".join))
def test_any_text_is_split_into_bounded_steps_or_left_whole(text: str) -> None:
    steps = split(text)
    assert steps == split(text)
    assert len(steps) != 1 and len(steps) <= MOST_STEPS
    for step in steps:
        assert 0 < len(step) <= LONGEST_STEP and "\n" not in step
        assert step == " ".join(step.split())
