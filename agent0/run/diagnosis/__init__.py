"""Why a run went badly: the first bad step, its cause by what shows it, and the command that mends it.

Pure: a ``Case`` holds what the tables say of a run, each function of ``causes`` goes from a case to a ``Cause``.

To add a cause, write a function in the file of ``causes`` where it belongs, and give it a rank.
"""

from collections.abc import Callable, Sequence

from agent0.registry import Registry
from agent0.run.diagnosis.case import Case, Cause

__all__ = ["Case", "Cause", "cause", "diagnose", "registered_causes"]

WORLD, INDIRECT = 40, 60
"""Ranks: below the first something is missing outside the run; from the second on a cause is inferred from what became
of tasks and scores, which several causes may explain."""
Look = Callable[[Case], Cause | None]
_causes = Registry[str, tuple[int, Look]]("causes", f"{__name__}.causes", order=lambda name, entry: (entry[0], name))


def cause(rank: int) -> Callable[[Look], Look]:
    """Register a function under its name. Of causes that begin in one iteration the one of lowest ``rank`` comes first:
    what lies deeper has the lower one (a full disk before attempts given up, those before nothing to train on)."""

    def register(look: Look) -> Look:
        _causes.add(look.__name__, (rank, look))
        return look

    return register


def registered_causes() -> dict[str, tuple[int, Look]]:
    """Return every registered cause by its function's name: (rank, function), in order of rank."""
    return _causes.all()


def diagnose(case: Case) -> Sequence[Cause]:
    """Find the causes of what went badly in a run, the root cause first; none where nothing did.

    Those that ended the run, or left it with nothing learned, or that a setting which differs explains by itself, come
    before those that only did harm; then what the run lacked (``WORLD``), then what a setting explains, then what is
    direct evidence or blames a setting that differs, then the rest; then the earlier.
    """
    causes = [(cause, rank) for rank, look in registered_causes().values() if (cause := look(case))]
    return [cause for cause, _ in sorted(causes, key=lambda ranked: _order(*ranked))]


def _order(cause: Cause, rank: int) -> tuple[bool, int, bool, int, int]:
    weak = rank >= INDIRECT and not cause.settings
    tier = 0 if rank < WORLD else 1 if cause.explained else 2 + weak
    return not (cause.fatal or cause.explained), tier, not cause.fatal, cause.iteration, rank
