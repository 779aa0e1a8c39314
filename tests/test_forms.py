"""The form that an answer's text is read as, by its brackets, signs and words, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.grading.math import algebra
from agent0.grading.math.forms import MOST_ITEMS, Based, Expression, Form, Group, Relation, Words, fold, form_of


def number(value: int | Fraction) -> Expression:
    return Expression(algebra.number(value))


ONE, TWO, THREE = number(1), number(2), number(3)
X = Words("x")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("101_2", Based("101", 2)),
        ("(0ff)_{16}", Based("FF", 16)),
        ("000_{seven}", Based("0", 7)),
        (r"\emptyset", Group("set", ())),
        (r"\{\}", Group("set", ())),
        (r"\{1, 2\}", Group("set", (ONE, TWO))),
        (r"\{1\}", Group("set", (ONE,))),
        ("(1, 2)", Group("tuple", (ONE, TWO), "()")),
        ("[1, 2)", Group("tuple", (ONE, TWO), "[)")),
        ("(1, 2]", Group("tuple", (ONE, TWO), "(]")),
        ("(1; 2, 3)", Group("tuple", (ONE, TWO, THREE), "()")),
        ("(1)", ONE),
        ("1, 2", Group("list", (ONE, TWO))),
        ("1, 2 and 3", Group("list", (ONE, TWO, THREE))),
        ("1, 2, and 3", Group("list", (ONE, TWO, THREE))),
        ("1 or 2", Group("list", (ONE, TWO))),
        ("(1, 2), 3", Group("list", (Group("tuple", (ONE, TWO), "()"), THREE))),
        (r"1, 2 \pm 1", Group("list", (ONE, THREE, ONE))),
        (r"2 \pm 1", Group("list", (THREE, ONE))),
        ("1,234", number(1234)),
        ("-1,234,567", number(-1234567)),
        ("1,2345", Group("list", (ONE, number(2345)))),
        ("1:2", Group("tuple", (ONE, TWO), "::")),
        ("1:2:3", Group("tuple", (ONE, TWO, THREE), "::")),
        (r"[1, 2) \cup (2, 3]", Group("union", (Group("tuple", (ONE, TWO), "[)"), Group("tuple", (TWO, THREE), "(]")))),
        (r"\{1\} \cap \{2\}", Group("intersection", (Group("set", (ONE,)), Group("set", (TWO,))))),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 1 \end{pmatrix}",
         Group("matrix", (Group("row", (ONE, TWO)), Group("row", (THREE, ONE))))),
        (r"\begin{vmatrix} 1 \end{vmatrix}", ONE),
        (r"\begin{vmatrix} 1 & 2 \\ 1 & 3 \end{vmatrix}", ONE),
        (r"|\begin{matrix} 1 \\ \hline \\ 2 \end{matrix}|",
         Group("matrix", (Group("row", (ONE,)), Group("row", (TWO,))), "|")),
        (r"\infty", Expression(algebra.number(0), 1)),
        (r"+\infty", Expression(algebra.number(0), 1)),
        (r"-\infty", Expression(algebra.number(0), -1)),
        ("-oo", Expression(algebra.number(0), -1)),
        ("x = 1, x = 2", Group("list", (Relation("=", form_of("x"), ONE, "x"), Relation("=", form_of("x"), TWO, "x")))),
        ("x <= 2", Relation(r"\le", form_of("x"), TWO, "x")),
        ("x >= 2", Relation(r"\ge", form_of("x"), TWO, "x")),
        ("x != 2", Relation(r"\ne", form_of("x"), TWO, "x")),
        ("f(x) = 2", Relation("=", form_of("f(x)"), TWO, algebra.opaque("f(1*x^1)"))),
        (r"x \in (1, 2)", Relation(r"\in", X, Group("tuple", (ONE, TWO), "()"), "x")),
        ("1 < x < 2", Relation(r"\in", X, Group("tuple", (ONE, TWO), "()"), "x")),
        ("1 <= x < 2", Relation(r"\in", X, Group("tuple", (ONE, TWO), "[)"), "x")),
        (r"1 < x \le 2", Relation(r"\in", X, Group("tuple", (ONE, TWO), "(]"), "x")),
        ("2 > x >= 1", Relation(r"\in", X, Group("tuple", (ONE, TWO), "[)"), "x")),
        (r"2 \ge x > 1", Relation(r"\in", X, Group("tuple", (ONE, TWO), "(]"), "x")),
        (r"1 \cdot 2 = 2", TWO),
        (r"x = 1 \cdot 2 = 2", Relation("=", X, TWO, "x")),
    ],
)  # fmt: skip
def test_a_text_has_exactly_this_form(text: str, form: Form) -> None:
    assert form_of(text) == form


@pytest.mark.parametrize(
    "text",
    ["", "(", "(1, 2", "1)", "1 < x > 2", "1 < 2 < 3 < 4", "1 < (x) < 2 < x", "1 <= x = 2", ",",
     "1:2:3:4:5:6:7", r"1 \cup 2 \cap 3", r"|\begin{vmatrix} 1 \end{vmatrix}|", r"(\begin{matrix} 1 \end{matrix}]",
     "(" * 12 + "1, 2" + ")" * 12,
     r"\begin{matrix}" + r"1 \\" * 21 + r"\end{matrix}", r"1 \pm 2 \pm 3"],
)  # fmt: skip
def test_what_has_no_form_is_words(text: str) -> None:
    assert form_of(text) == Words(fold(text))


@given(st.integers(MOST_ITEMS - 1, MOST_ITEMS + 1), st.sampled_from(["{}", r"\{{{}\}}"]))
def test_a_long_list_is_words_beyond_its_limit(count: int, around: str) -> None:
    found = form_of(around.format(", ".join(["7"] * count)))
    assert isinstance(found, Group if count <= MOST_ITEMS else Words)
    assert not isinstance(found, Group) or len(found.items) == count


@given(st.integers(1, 12))
def test_brackets_nest_eight_deep(depth: int) -> None:
    text = "7"
    for _ in range(depth):
        text = f"(1, {text})"
    assert isinstance(form_of(text), Group if depth <= 8 else Words)


def test_matrices_have_twenty_rows_at_most() -> None:
    for count in (20, 21):
        body = r" \\ ".join(["1"] * count)
        found = form_of(rf"\begin{{matrix}}{body}\end{{matrix}}")
        assert isinstance(found, Group if count == 20 else Words)


@pytest.mark.parametrize(
    ("text", "folded"),
    [("  Two   Words. ", "two words"), (r"\underline{Even}", "even"), ('"Yes"!', "yes"), (r"\Delta X", r"\Delta x"),
     (r"red and \textcolor{blue}{B}", "red and b"), ("a;", "a")],
)  # fmt: skip
def test_words_are_folded(text: str, folded: str) -> None:
    assert fold(text) == folded
