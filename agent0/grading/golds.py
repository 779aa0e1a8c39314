r"""Golds as data sets publish them, with the solution before the answer: ``2+3=<<2+3=5>>5\n#### 5`` is the gold 5."""

import re

from agent0.chat_format import boxed

HASHES = "####"
_calculation = re.compile(r"<<[^<>\n]*=[^<>\n]*>>")
_environment = re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL)


def one_answer(gold: str) -> str:
    r"""Return the answer of a gold: what stands behind ``####``, or in its last ``\boxed``, else all of it.

    Raises:
        ValueError: it holds a solution, and nothing marks its answer.
    """
    if HASHES in gold:
        answer = gold.rpartition(HASHES)[2].strip().partition("\n")[0].strip()
        return answer or _refuse(gold, f"nothing follows its last {HASHES}")
    if "\\boxed" in gold or "\\fbox" in gold:
        return boxed(gold) or _refuse(gold, "its box is not closed")
    if _calculation.search(gold):
        return _refuse(gold, "it is a solution, and nothing marks its answer")
    if "\n" in _environment.sub("", gold.strip()):
        return _refuse(gold, "it has several lines, and nothing marks its answer")
    return gold


def _refuse(gold: str, why: str) -> str:
    raise ValueError(f"a gold is one answer, and of {gold[:60]!r} {why}")
