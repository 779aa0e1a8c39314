"""Answers that are no numbers: truth values, letters of a choice, names in a row, formulas of propositional logic,
texts. A text that resembles the right one is another text."""

import re

from agent0.grading import Grade
from agent0.grading.answer_types import MOST, kind, plain, words
from agent0.grading.comparison.truth_tables import SURE, NoFormulaError, truths
from agent0.grading.comparison.words.choices import letter_of

_TRUTHS = {"true": "True", "yes": "True", "false": "False", "no": "False"}
_quoted_or_date = re.compile(
    r"(['\"]).*\1|\d{1,4}([-/.])\d{1,2}\2\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp]\.?[Mm]\.?)?", re.DOTALL
)
_number = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?j?|[-+]?\d[\d.,/]*\s+[a-z]+[.]?|pi|z?oo|inf(?:inity)?|nan", re.I)
_text = re.compile(r"(?=.*[^\W\d_])[^\W_](?:[\w '.,!?:;&]|(?<=[^\W\d_]{2})-(?=[^\W\d_]{2}))*")
_joint = re.compile(r"\s*(\\(?:lt|gt|to)(?![A-Za-z])|->|→|[<>,;]|,?\s+\bthen\b(?=\s)|\n)\s*", re.I)
_ORDERS = {"<": "<", r"\lt": "<", ">": ">", r"\gt": ">"}


def _compared(expected: str, answer: str, reason: str) -> Grade:
    """Grade what was read of both; empty is what could not be read."""
    correct = answer == expected if expected else None
    return Grade(correct, reason if expected and answer else f"no {reason}", expected[:200], answer[:200])


@kind("truth", 1, lambda expected: words(expected) in _TRUTHS)
def truth(expected: str, answer: str) -> Grade:
    """Compare truth values: true and false, yes and no, in any case."""
    return _compared(_TRUTHS.get(words(expected), ""), _TRUTHS.get(words(answer), ""), "truth value")


@kind("choice", 2, re.compile(r"\([A-Z]\)").fullmatch)
def choice(expected: str, answer: str) -> Grade:
    """``(B)``, ``b.``, ``Option B`` and ``B) the second`` are one answer."""
    return _compared(letter_of(plain(expected)) or "", letter_of(plain(answer)) or "", "choice")


def _row(text: str) -> tuple[list[str], str]:
    """Names in a row, and < or > where they are compared, a comma where they are only listed; none of anything else."""
    bare = re.sub(r"^[\[({]+|[\])}]+$", "", plain(text).strip().strip("$").rstrip(".").strip())
    pieces = _joint.split(bare)
    names = [words(re.sub(r"^(?:and|\d{1,2}[.)])\s+", "", name.strip(), flags=re.I)) for name in pieces[::2]]
    signs = {_ORDERS.get(sign.strip(), ",") for sign in pieces[1::2]} or {","}
    return (names, signs.pop()) if len(signs) == 1 and all(names) and len(names) <= MOST else ([], "")


@kind("ordering", 3, re.compile(r"[^\W\d_]{2,}(\s*[<>]\s*)[^\W\d_]{2,}(?:\1[^\W\d_]{2,})+").fullmatch)
def ordering(expected: str, answer: str) -> Grade:
    """``Ann < Bob < Cid`` is ``Cid > Bob > Ann``. A row without signs is in the order that was asked for."""
    (names, sign), (others, other_sign) = _row(expected), _row(answer)
    others = others[::-1] if {sign, other_sign} == {"<", ">"} else others
    correct = names == others if names else None
    return Grade(correct, "order" if others else "no single order", " < ".join(names)[:200], " < ".join(others)[:200])


@kind("formula", 4, SURE.search)
def formula(expected: str, answer: str) -> Grade:
    """By truth table. What is expected and cannot be read decides nothing."""
    correct: bool | None = None
    try:
        truths(plain(expected))
        correct = False
        expected_truths, answer_truths = truths(plain(expected), plain(answer))
        correct, reason = expected_truths == answer_truths, "truth table"
    except NoFormulaError as error:
        reason = f"no formula: {error}"
    return Grade(correct, reason, expected[:200], answer[:200])


@kind("text", 8, lambda it: _quoted_or_date.fullmatch(it) or (not _number.fullmatch(it) and _text.fullmatch(it)))
def text(expected: str, answer: str) -> Grade:
    """Case, spaces and quotes around it do not count. Letters beside one another are a word, never a product, and a
    date is no sum; what has an operator is no text."""
    return _compared(words(expected), words(answer), "words")
