"""Truth values: one word that says yes, or one that says no."""

from agent0.grading import Grade
from agent0.grading.answer_types import kind, words

_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


@kind("truth", applies=lambda expected: words(expected) in _TRUTHS, rank=1)
def truth(expected: str, given: str) -> Grade:
    """Compare truth values: true and false, yes and no, in any case."""
    wanted, answer = (_TRUTHS.get(words(one)) for one in (expected, given))
    if wanted is None:
        return Grade(None, "a truth value was expected, and there is none to compare with", expected[:200], given[:200])
    got = words(given)[:200] if answer is None else str(answer)
    return Grade(answer == wanted, "truth value" if answer is not None else "no truth value", str(wanted), got)
