"""Which choice is likeliest, by the two ways of lm-eval. Nothing here was generated, so these numbers are never
compared with the accuracy of replies."""

from collections.abc import Sequence

from agent0.ports.models import Likely


def chosen_by(likely: Sequence[Likely], gold: int) -> dict[str, float]:
    """``acc``: 1 where the gold choice has the highest log-probability; ``acc_norm``: the highest divided by its number
    of characters. Of equal ones the first counts, as numpy's argmax has it."""
    plain = [one.logprob for one in likely]
    normed = [one.logprob / max(one.characters, 1) for one in likely]
    return {"acc": float(plain.index(max(plain)) == gold), "acc_norm": float(normed.index(max(normed)) == gold)}
