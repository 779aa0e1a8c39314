"""Replies that mark no answer, and answers that only knowledge of their kind makes equal."""

# ruff: noqa: RUF001 (signs and letters as they are written)
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.grading import answer_in, grade
from agent0.grading.extraction.choices import choice_of
from agent0.grading.extraction.conclusions import concluded
from agent0.grading.math.symbolic import compared
from agent0.grading.math.undone import UNDONE
from agent0.verification.labelled_pairs import read_pairs

DATA = Path(__file__).parent / "data"
BY_CAUSE: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _file in ("concluded_pairs.jsonl", "respelled_pairs.jsonl", "chat_pairs.jsonl", "kinds_pairs.jsonl"):
    for _row in read_pairs((DATA / _file).read_text(encoding="utf-8"), _file):
        BY_CAUSE[_row["category"]].append(_row)


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_pairs_of_every_cause_are_decided_as_labelled(cause: str) -> None:
    """Without the symbolic engine, but for identities of sines and logarithms, which it is asked about."""
    rows = BY_CAUSE[cause]
    found = [compared(row["gold"], row["candidate"], reply=row["form"] == "response") for row in rows]
    wrong = [
        (row["gold"], row["candidate"])
        for row, one in zip(rows, found, strict=True)
        if (one.correct is True) != (row["label"] == "accept") and not one.symbolic
    ]
    assert wrong == [] and {row["label"] for row in rows} >= {"accept"}
    asked = [row["gold"] for row, one in zip(rows, found, strict=True) if one.symbolic and row["label"] == "accept"]
    assert all("sin" in gold or "cos" in gold or r"\l" in gold for gold in asked)


def test_rejected_pairs_are_at_least_two_fifths() -> None:
    labels = [row["label"] for rows in BY_CAUSE.values() for row in rows]
    assert labels.count("reject") >= 0.4 * len(labels)


@given(st.integers(2, 99), st.integers(2, 99))
def test_several_values_are_no_answer_where_one_is_wanted(one: int, other: int) -> None:
    """Naming more values earns nothing, whichever stands last."""
    if one == other:
        return
    for said in (
        f"The answer is {other} or {one}.",
        rf"$\boxed{{{other}}}$ or $\boxed{{{one}}}$",
        f"So x = {other} or x = {one}.",
        f"It may be {one}.",
        f"{one} or {other}",
        f"So the values are {other}, {one}.",
        f"So it is {other}, not {one}.",
    ):
        assert compared(str(one), said, reply=True).correct is not True, said


@given(st.integers(2, 999))
def test_the_last_statement_is_what_is_said(value: int) -> None:
    for said in (
        f"Adding gives {value + 1} - 1, so the total is {value}.",
        f"Therefore $n = {value}$.\n\nI hope this helps!",
        f"**{value}** ways.\n\nEach is counted once.",
        f"We get\n$$n = {value}$$",
    ):
        assert compared(str(value), said, reply=True).correct is True, said
        assert compared(str(value + 1), said, reply=True).correct is False, said


def test_the_inverse_of_the_imaginary_unit_is_exact() -> None:
    assert grade("-i", r"\frac{1}{i}").correct is True and grade("i", r"\frac{1}{i}").correct is False


def test_a_rounded_number_is_no_function() -> None:
    for said in ("0.693147180559945", r"\frac{693147180559945}{1000000000000000}", r"\approx 0.693"):
        assert grade(r"\ln 2", said).correct is not True


@settings(max_examples=60, deadline=None)
@given(st.text("$*_`\\().,:=<>|&; \nab17éx≤½°", max_size=120))
def test_any_reply_is_read_to_its_end(text: str) -> None:
    found = concluded(text)
    assert found is None or isinstance(found, str)
    assert grade("17", answer_in(text) or "").correct in (True, False, None)


@pytest.mark.parametrize(
    "piece", ["$", "**", "\\[", "= ", "so ", "(", "7 and ", "\\boxed{1} or ", "a = $b$ ", "<b>", "- "]
)
def test_repeated_openings_end(piece: str) -> None:
    assert grade("17", answer_in(piece * (50_000 // len(piece)) + "x")).correct is not True


@pytest.mark.parametrize("said", ["= = 5", "= ≈ 5,", "So = = 5"])
def test_signs_in_a_row_are_read_to_their_end(said: str) -> None:
    assert compared("17", said, reply=True).correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "Someone claims the answer is 17.",
        "He says that it is 17.",
        "Many people believe the answer is 17.",
        "有人说答案是17。",
        "ある人は答えは17だと言っています。",
        "누군가는 답이 17이라고 주장합니다.",
        "Birisi cevabın 17 olduğunu iddia ediyor.",
        "Jemand behauptet, die Antwort ist 17.",
        "Quelqu'un affirme que la réponse est 17.",
        "Alguien dice que la respuesta es 17.",
        "Кто-то утверждает, что ответ 17.",
        "Некоторые считают, что ответ равен 17.",
        "Он говорит, что ответ — 17.",
        "Неверно, что ответ 17.",
        "Ответ 17, что неверно.",
        "Если бы ответ был 17, сумма была бы нечётной.",
        "Hans glaubt, dass die Antwort 17 ist.",
        "Marie pense que la réponse est 17.",
        "Juan cree que la respuesta es 17.",
        "他说答案是17。",
        "太郎は答えは17だと言う。",
        "Ali cevabın 17 olduğunu düşünüyor.",
    ],
)
def test_what_another_claims_is_no_answer(reply: str) -> None:
    assert compared("17", reply, reply=True).correct is not True


@pytest.mark.parametrize(
    "reply",
    [
        "I'd say the answer is 17.",
        "This says that the answer is 17.",
        "So we can say that it is 17.",
        "Я считаю, что ответ 17.",
        "Значит, ответ — 17 яблок.",
        r"\boxed{17}. Нет других решений.",
        "Ответ: 17. Нет, не 16.",
        "Wir denken, dass die Antwort 17 ist.",
        "Je pense que la réponse est 17.",
        "Creo que la respuesta es 17.",
        "Cevap 17 olduğunu düşünüyorum.",
        "Cevap 17 olduğunu söyleyebiliriz.",
    ],
)
def test_what_the_writer_says_is_an_answer(reply: str) -> None:
    assert compared("17", reply, reply=True).correct is True


@pytest.mark.parametrize(
    "reply",
    [
        "答案是16。不对，答案是17。",
        r"\boxed{16}。不对，答案是17。",
        "答えは16です。いや、答えは17です。",
        "정답은 16입니다. 아니, 정답은 17입니다.",
        "Cevap 16'dır. Hayır, cevap 17.",
        r"\boxed{16}. Das ist falsch. Es ist 17.",
        "La réponse est 16. Non, la réponse est 17.",
        "La respuesta es 16. No, la respuesta es 17.",
        "Ответ: 16. Нет, ответ: 17.",
        r"\boxed{16}. Это неверно. Ответ 17.",
        r"\boxed{16}. Погодите, это не так. Ответ: 17.",
        r"\boxed{16}. Подождите, должно быть 17.",
        "Ответ равен 16. Ой, нет, он равен 17.",
        "Ответ: 16. Я ошибся, ответ: 17.",
        r"\boxed{16}. Warte, die Antwort ist 17.",
        r"\boxed{16}. En fait, la réponse est 17.",
        r"\boxed{16}. En realidad, la respuesta es 17.",
        r"\boxed{16}。其实答案是17。",
        r"\boxed{16}. 実は答えは17です。",
        r"\boxed{16}. 사실 정답은 17입니다.",
        r"\boxed{16}. Aslında cevap 17.",
        "The result is 16. No, it is 17.",
        "The result is 17. No, really, it is 17.",
        "### Answer\n\n17",
        "## Final Answer\nThe total is 17.",
    ],
)
def test_what_is_taken_back_repeated_or_stands_below_a_heading(reply: str) -> None:
    assert compared("17", reply, reply=True).correct is True
    assert compared("16", reply, reply=True).correct is not True


@pytest.mark.parametrize(
    "number", ["Millionen", "tausend", "mille", "millones", "bin", "тысяч", "миллионов", "Dutzend", "docenas"]
)
def test_a_number_of_another_language_is_no_unit(number: str) -> None:
    assert grade("17", f"17 {number}").correct is not True


@pytest.mark.parametrize(
    "reply",
    [
        r"\boxed{answer}",
        r"\boxed{?}",
        r"\boxed{\text{your answer}}",
        r"\boxed{...}",
        "I don't know.",
        "The answer is ?",
        "The answer is I don't know.",
        "<answer></answer>",
        "<answer>I cannot solve this.</answer>",
        "Sorry, no idea.",
    ],
)
def test_a_blank_is_no_answer(reply: str) -> None:
    assert answer_in(reply) is None
    assert compared("17", reply, reply=True).reason == "no answer"


@pytest.mark.parametrize(
    ("sentence", "letter"),
    [
        ("I'd go with B over C.", "B"),
        ("A, C, and D are false, so B is the answer.", "B"),
        ("Eliminating A, C and D leaves B as the only valid choice.", "B"),
        ("C is correct, D isn't.", "C"),
        ("Every option but B is correct.", None),
        ("This rules out choice (B).", None),
        ("Option C is a common misconception.", None),
        ("(B) is not correct.", None),
    ],
)
def test_the_option_that_a_sentence_takes(sentence: str, letter: str | None) -> None:
    assert choice_of(sentence) == letter


def test_a_small_letter_is_a_variable_and_in_brackets_an_option() -> None:
    assert grade("D", "d").correct is False
    assert grade("D", "(d)").correct is grade("D", "A and C fail, which leaves (D).").correct is True
    assert grade("x = 3, y = 1", r"x = 1 \text{ and } x = 3").correct is False


def test_a_factorial_is_work_left_undone_and_an_exclamation_is_none() -> None:
    for reply in ("6!", "The answer is 6!", "So there are 6! ways."):
        assert compared("720", reply, reply=True).reason == UNDONE
    assert compared("42", "The answer is 42!", reply=True).correct is True
    assert compared("6!", "It is 6!", reply=True).correct is True


@pytest.mark.parametrize("gold", ["x = 2, y = 3", "B"])
def test_nothing_beside_a_box_or_within_thoughts_is_read(gold: str) -> None:
    """Other readings are of what is said, and a box says all of it."""
    for said in ("x = 2\ny = 3", "So x = 2 and y = 3.", "Option B fits."):
        assert compared(gold, f"$\\boxed{{7}}$\n{said}", reply=True).correct is not True
        assert compared(gold, f"<think>{said}</think>", reply=True).correct is not True


@pytest.mark.parametrize(
    "reply",
    [
        "One of them is 12.",
        "So one of the roots is $12$.",
        "Another is **12**.",
        "One possible value of x is 12.",
        "One root equals 12.",
        "12 is another.",
    ],
)
def test_one_of_several_values_is_not_the_value(reply: str) -> None:
    assert compared("12", reply, reply=True).correct is not True


@pytest.mark.parametrize(
    "reply",
    [
        "The only root is 12.",
        "There is only one solution: 12.",
        "One root is 5. So the answer is 12.",
        "One hour is 12 pages.",
        r"One of them is $\boxed{12}$.",
        "The other number is 12.",
    ],
)
def test_what_is_the_only_value_is_one(reply: str) -> None:
    assert compared("12", reply, reply=True).correct is True


@pytest.mark.parametrize(
    ("gold", "answer", "correct"),
    [
        ("5 pounds", "£5", False), ("5 lb", "£5", False), ("£5", "5 lb", False), ("5 pounds", "5 lb", True),
        ("5 pounds", "80 ounces", True), ("2 pounds 50 pence", "£2.50", True), ("£5", "5 pounds", True),
        ("£5", "500 pence", True), ("£5", "£5", True), ("5 pounds", "5 pounds", True), ("£5", "5", True),
        ("5 pounds", "5", True), ("5", "£5", True), ("5", "5 pounds", True),
    ],
)  # fmt: skip
def test_a_pound_is_a_weight_or_money(gold: str, answer: str, correct: bool) -> None:
    assert grade(gold, answer).correct is correct
