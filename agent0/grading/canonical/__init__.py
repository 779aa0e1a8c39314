"""One reading of what has several: signs, numerals of other bases, money, lengths and times, derivatives, dimensions.

Version 5 of the verification rules. It goes before ``rewriting``, which stays as it is, so runs of version 4 decide as
they did. Both sides are brought to one form; what is no algebra is decided here.
"""

from agent0.grading.canonical.measures import measured
from agent0.grading.canonical.numerals import in_one_base
from agent0.grading.canonical.shapes import same_shape, same_text
from agent0.grading.canonical.signs import one_figure, one_sign
from agent0.grading.canonical.vectors import one_vector
from agent0.grading.canonical.wording import without_words

__all__ = ["canonical", "decided"]

LONGEST = 400


def canonical(gold: str, said: str) -> tuple[str, str]:
    """Return both in one form; unchanged where they are long. The gold decides what an ambiguous sign means."""
    if max(len(gold), len(said)) > LONGEST:
        return gold, said
    gold, said = one_figure(gold, said)
    gold, said = one_sign(gold), without_words(one_sign(said), gold)
    return one_vector(*measured(*in_one_base(gold, said)))


def decided(gold: str, said: str) -> tuple[bool, str] | None:
    """Decide with a reason what is no algebra; None for everything else."""
    if max(len(gold), len(said)) > LONGEST:
        return None
    if same_text(gold, said):
        return True, "the same text"
    same = same_shape(gold, said)
    return None if same is None else (same, "shape")
