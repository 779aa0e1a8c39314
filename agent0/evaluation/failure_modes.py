"""Where accuracy is lost, ordered by how much accuracy fixing each failure mode would gain; and the class of a wrong
answer's error, by how its attempt ended and by the verdict's reason."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from agent0.grading.normal_form import normal_form
from agent0.stats.intervals import wilson

CLASSES = (
    "undecided", "truncated", "out_of_turns", "no_answer", "format", "timeout", "crash", "wrong_value",
)  # fmt: skip
"""Every class there is, in the order in which they are looked for."""
_REASONS = (
    ("no_answer", re.compile(r"^no (?:answer|program)$")),
    ("format", re.compile(r"^no letter of a choice$|^not of the form|^too (?:long|many)|^nested too")),
    ("format", re.compile(r"\b(?:SyntaxError|IndentationError|TabError)\b")),
    ("timeout", re.compile(r"\btimeout\b|^TimeoutError\b")),
    ("wrong_value", re.compile(r"^AssertionError\b")),
    ("crash", re.compile(r"^the program does not run|did not return|^[A-Za-z.]+(?:Error|Exception|Exit|Interrupt)\b")),
)


def error_type(correct: bool | None, reason: str, end: str, answer: str | None) -> str:
    """Classify an answer as one of ``CLASSES``, empty for a right one.

    ``end`` is how the attempt ended (``agent0.rollout.attempt.End``): a reply that was cut off, or an attempt that ran
    out of turns or calls, is that before anything else, where it gave no answer.
    """
    if correct:
        return ""
    if correct is None:
        return "undecided"
    if answer is None and end in ("length", "turn_limit", "budget"):
        return "truncated" if end == "length" else "out_of_turns"
    return next((name for name, pattern in _REASONS if pattern.search(reason)), "wrong_value")


SIGN, OFF_BY_ONE, NEAR, ORDER, PART = "sign", "off_by_one", "near_value", "order", "part_of_answer"
"""Classes of wrong values beside ``CLASSES``, found by comparison with the right answer.
``near_value``: within a
tenth; ``order``: the right parts otherwise arranged; ``part_of_answer``: one holds the other."""

NO_ANSWER, FORMAT, WRONG_VALUE = "no_answer", "format", "wrong_value"
_number = re.compile(r"[+-]?\d+(?:/0*[1-9]\d*)?")


BEHAVIOUR = ("error", "tool")
"""Dimensions of what was done, of which one value tells something, too; the others are of what was asked."""


@dataclass(frozen=True)
class ItemOutcome:
    """One answered item. ``marks`` describe it by dimension (domain, level, family, error, tool…); empty: unknown.

    ``correct`` None, undecided, counts as not right. ``item`` is what several samples share.
    """

    correct: bool | None
    marks: Mapping[str, str] = field(default_factory=dict)
    item: str = ""


@dataclass(frozen=True)
class FailureMode:
    """The outcomes of one mark. ``gain`` is how much overall accuracy would rise were all of them right, with its 95 %
    interval; ``share`` is their part of all failures."""

    by: str
    mode: str
    items: int
    wrong: int
    accuracy: float
    share: float
    gain: float
    lower95: float
    upper95: float


def failure_modes(outcomes: Sequence[ItemOutcome]) -> list[FailureMode]:
    """List every mark with failures, largest gain first.

    Of what was asked, a dimension with one value only is left out. Modes of one dimension add up to all failures, those
    of several overlap.
    """
    failed = sum(outcome.correct is not True for outcome in outcomes)
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for outcome in outcomes:
        for by, mode in outcome.marks.items():
            if mode:
                groups[by, mode].append(outcome.correct is True)
    telling = _groups_to_show(groups)
    modes = [_mode(key, rights, len(outcomes), failed) for key, rights in groups.items() if key in telling]
    return sorted(modes, key=lambda mode: (-mode.gain, mode.accuracy, mode.by, mode.mode))


def _groups_to_show(groups: Mapping[tuple[str, str], Sequence[bool]]) -> set[tuple[str, str]]:
    """Groups with a failure, of dimensions with several values or of ``BEHAVIOUR``."""
    values = Counter(by for by, _ in groups)
    return {key for key, rights in groups.items() if not all(rights) and (values[key[0]] > 1 or key[0] in BEHAVIOUR)}


def _mode(key: tuple[str, str], rights: Sequence[bool], total: int, failed: int) -> FailureMode:
    wrong = len(rights) - sum(rights)
    low, high = wilson(wrong, total)
    return FailureMode(
        by=key[0],
        mode=key[1],
        items=len(rights),
        wrong=wrong,
        accuracy=1 - wrong / len(rights),
        share=wrong / failed,
        gain=wrong / total,
        lower95=low,
        upper95=high,
    )


def error_class(answer: str | None, correct: bool | None, *, reason: str = "", end: str = "", right: str = "") -> str:
    """Classify a wrong answer, empty where it is right.

    ``reason`` is the verdict's, ``end`` how the attempt ended, ``right`` the right answer; unknown ones are empty.
    """
    error = error_type(correct, reason, end, answer)
    if error != WRONG_VALUE:
        return error
    if answer is None or not answer.strip():
        return NO_ANSWER
    if not right:
        return WRONG_VALUE
    kind = kind_of_answer(right)
    if kind_of_answer(answer) != kind:
        return FORMAT
    got, expected = normal_form(answer), normal_form(right)
    return _off(Fraction(got), Fraction(expected)) if kind == "number" else _amiss(got, expected)


def _off(got: Fraction, expected: Fraction) -> str:
    if got == -expected:
        return SIGN
    if abs(got - expected) == 1:
        return OFF_BY_ONE
    return NEAR if abs(got - expected) * 10 <= abs(expected) else WRONG_VALUE


def _amiss(got: str, expected: str) -> str:
    if sorted(got) == sorted(expected):
        return ORDER
    return PART if got in expected or expected in got else WRONG_VALUE


def kind_of_answer(answer: str) -> str:
    """Classify an answer's form: number, list (of anything), or text."""
    plain = normal_form(answer)
    if _number.fullmatch(plain):
        return "number"
    return "list" if plain[:1] in ("[", "(", "{") or "," in plain else "text"


def failure_counts(outcomes: Iterable[ItemOutcome]) -> dict[str, int]:
    """Count the outcomes and how many of them failed."""
    failures = [outcome.correct is not True for outcome in outcomes]
    return {"items": len(failures), "wrong": sum(failures)}
