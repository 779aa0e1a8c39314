"""Classifies the error of a wrong answer by how its attempt ended and by the verdict's reason."""

import re

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
