"""Versions of the rules that a run's results depend on: it keeps those that ``RunStarted`` recorded.

To add a second version of a rule, leave the first function as it is, name both where the rule is applied (``chosen``)
and raise its number in ``VERSIONS``: new runs are under the second, recorded ones stay under the first.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from agent0.errors import LogError

R = TypeVar("R")

VERSIONS: Mapping[str, int] = {"promotion": 1, "rewards": 1, "splits": 1, "verification": 1}
"""Rule -> number of its newest version, which new runs are under."""


def recorded_versions(rules: Mapping[str, int]) -> Mapping[str, int]:
    """Read the numbers that a run recorded, where it names none the first.

    Raises:
        LogError: one is of a rule or version that this Agent0 does not have.
    """
    for name, number in rules.items():
        if not 1 <= number <= VERSIONS.get(name, 0):
            why = f"Version {number} of its rule {name[:80]!r} is not known here."
            raise LogError("This run was begun by a newer Agent0.", why, "Use the version of Agent0 that wrote it.")
    return dict.fromkeys(VERSIONS, 1) | dict(rules)


def chosen(rule: str, versions: Sequence[R], rules: Mapping[str, int]) -> R:
    """Choose the version of ``rule`` that a run with ``rules`` is under; ``versions`` are all, the first one first."""
    return versions[rules[rule] - 1]
