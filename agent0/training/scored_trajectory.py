"""A trajectory with its reward and verdict, and the kind of solution it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent0.events.values import Trajectory, Turn


@dataclass(frozen=True)
class ScoredTrajectory:
    """One trajectory with its reward: of a student's attempt (``group`` is its task) or a teacher's proposal.

    ``success``: a verifier, or a reviewer after it, found it right; ``answered``: it gave an answer, of an attempt
    ``answer``; ``cut_off``: it met the limit of tokens before it did. ``tools`` are the names of the calls in order;
    ``signature`` says more exactly how the task was solved, empty where unknown; ``problem`` why there is no
    trajectory; ``iteration`` is that in which it was written; ``doubt`` why its task's own answer may be wrong. Of an
    attempt that other models wrote in part or whole: how many turns, by model (``authors``), and all ``turns``.
    """

    event_id: str
    group: str
    author: str
    trajectory: Trajectory | None
    reward: float | None
    solve_rate: float | None
    success: bool = False
    answered: bool = False
    answer: str | None = None
    cut_off: bool = False
    family: str = ""
    level: int = 0
    tools: tuple[str, ...] = ()
    signature: str = ""
    problem: str = ""
    iteration: int = 0
    doubt: str = ""
    authors: Mapping[str, int] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()


def solution_pattern(scored: ScoredTrajectory) -> str:
    """The kind of solution as text: family, level, and the signature or else the sequence of tools."""
    return f"{scored.family}/{scored.level}/{scored.signature or '>'.join(scored.tools)}"
