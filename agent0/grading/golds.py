r"""Golds as data sets publish them, with the solution before the answer: ``2+3=<<2+3=5>>5\n#### 5`` is the gold 5."""

import re

from agent0.chat_format import boxed

HASHES = "####"
_calculation = re.compile(r"<<[^<>\n]*=[^<>\n]*>>")
_environment = re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL)


def without_solution(gold: str) -> str:
    """Return what stands behind the last ``####`` of a gold; all of it where there is none, or nothing behind it."""
    return gold.rpartition(HASHES)[2].strip() or gold


def one_answer(gold: str) -> str:
    r"""Return the answer of a gold: what stands behind ``####``, or in its last ``\boxed``, else all of it.

    Raises:
        ValueError: it holds a solution, and nothing marks its answer.
    """
    answer, reason = gold, ""
    if HASHES in gold:
        answer = gold.rpartition(HASHES)[2].strip().partition("\n")[0].strip()
        reason = f"nothing follows its last {HASHES}"
    elif "\\boxed" in gold or "\\fbox" in gold:
        answer, reason = boxed(gold) or "", "its box is not closed"
    elif _calculation.search(gold):
        answer, reason = "", "it is a solution, and nothing marks its answer"
    elif "\n" in _environment.sub("", gold.strip()):
        answer, reason = "", "it has several lines, and nothing marks its answer"
    if not answer and reason:
        raise ValueError(f"a gold is one answer, and of {gold[:60]!r} {reason}")
    return answer
