"""The conclusion of a paired test, in words that a reader of statistics knows."""

from agent0.stats.paired_tests import FELL, IMPROVED, UNSHOWN

_WORDS = {IMPROVED: "improved", FELL: "decreased", UNSHOWN: "not significant"}


def conclusion(verdict: str, adjusted_p: float | None = None, detectable: float | None = None) -> str:
    """Name the conclusion of a paired test: improved, decreased or not significant.

    ``verdict`` is what ``agent0.stats.paired_tests.claimed`` returned; any other text is returned as it is. Where the
    difference is not significant, the p after Holm's correction and the smallest detectable effect (a share, shown in
    points) follow, as far as they are given.
    """
    if verdict != UNSHOWN:
        return _WORDS.get(verdict, verdict)
    numbers = [] if adjusted_p is None else [f"adjusted p {adjusted_p:.2g}"]
    if detectable is not None:
        numbers.append(f"smallest detectable effect {100 * detectable:.1f} points")
    return f"{_WORDS[verdict]} ({', '.join(numbers)})" if numbers else _WORDS[verdict]
