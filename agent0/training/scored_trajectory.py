"""A rewarded trajectory as a value, and what kind of solution it is."""

from dataclasses import dataclass

from events.values import Trajectory


@dataclass(frozen=True)
class Deed:
    """One rewarded trajectory: of a student's attempt (``group`` is its task) or a teacher's proposal.

    ``success``: a verifier, or a person after it, found it right. ``tools`` are the names of the calls in order;
    ``signature`` says more exactly how the task was solved, empty where nobody knows.
    """

    event_id: str
    group: str
    author: str
    trajectory: Trajectory | None
    reward: float | None
    solve_rate: float | None
    success: bool = False
    family: str = ""
    level: int = 0
    tools: tuple[str, ...] = ()
    signature: str = ""


def pattern(deed: Deed) -> str:
    """The kind of solution: family, level, and the signature, or else the sequence of tools."""
    return f"{deed.family}/{deed.level}/{deed.signature or '>'.join(deed.tools)}"
