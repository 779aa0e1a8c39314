"""Which choice is most likely, by the two metrics of lm-eval. Nothing is generated, so these numbers are never compared
with the accuracy of replies."""

from collections.abc import Sequence

from agent0.ports.models import Likely


def chosen_by(likely: Sequence[Likely], gold: int) -> dict[str, float]:
    """Score likelihoods of choices: ``acc`` is 1 where the gold choice has the highest log-probability, ``acc_norm``
    where the highest divided by its number of characters.

    Ties go to the first, as in numpy's argmax.
    """
    plain = [choice.logprob for choice in likely]
    normed = [choice.logprob / max(choice.characters, 1) for choice in likely]
    return {"acc": float(plain.index(max(plain)) == gold), "acc_norm": float(normed.index(max(normed)) == gold)}
