"""Whose words a checkpoint was trained on: of all tokens learned, how many the student wrote as they stand, how many
are of what its base was taught, and how many of anything else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Role, Trajectory

AS_DRAWN, ONCE = "as drawn", "once each"
"""How tokens were counted: as often as a step drew them; or, where a trainer counts none, each of what was
chosen once."""


@dataclass(frozen=True)
class Diet:
    """What one checkpoint was trained on.

    ``own``, ``taught`` and ``other`` are tokens, counted as ``counted`` says. ``answers`` are the attempts or proposals
    that its manifest names, ``wrong`` those of them that no verifier found right, and ``strange`` those that are none
    of its own line's: no such event in the log, or written by another model than a checkpoint of this run.
    """

    checkpoint: str
    role: Role
    own: int
    taught: int
    other: int
    counted: str
    answers: int
    wrong: int
    strange: int


@dataclass(frozen=True)
class DietTotal:
    """What several checkpoints were trained on together; each share is of all ``tokens``, None where there are none."""

    checkpoints: int
    tokens: int
    own: int
    taught: int
    other: int
    wrong: int
    strange: int
    own_share: float | None
    taught_share: float | None
    other_share: float | None


def diet_of(
    trained: CheckpointTrained,
    events: Sequence[str],
    written: Mapping[str, Recorded],
    sampled: Callable[[Recorded], Trajectory | None],
    right: Mapping[str, bool],
    authors: Sequence[str],
) -> Diet:
    """Say what ``trained`` was trained on: ``events`` are the ids that its manifest names.

    ``written`` are attempts and proposals of its run by event id, ``sampled`` gives what the author of one sampled,
    ``right`` is what was verified of attempts by their id, ``authors`` are the checkpoints of its role in this run, the
    base among them.
    """
    own_events = {name: written[name] for name in events if name in written and _author(written[name]) in authors}
    attempts = [recorded.event.attempt for recorded in own_events.values() if isinstance(recorded.event, TaskAttempted)]
    sampled_tokens, taught, other, counted = _tokens(
        trained, [own_events[name] for name in events if name in own_events], sampled
    )
    return Diet(
        trained.checkpoint,
        trained.role,
        sampled_tokens,
        taught,
        other,
        counted,
        answers=len(set(events)),
        wrong=sum(not right.get(attempt, False) for attempt in attempts),
        strange=len(set(events) - set(own_events)),
    )


def _author(stored: Recorded) -> str:
    match stored.event:
        case TaskAttempted() as event:
            return event.student
        case TaskProposed() as event:
            return event.teacher
    return ""


def _tokens(
    trained: CheckpointTrained, chosen: Sequence[Recorded], sampled: Callable[[Recorded], Trajectory | None]
) -> tuple[int, int, int, str]:
    """(own, taught, other, how they were counted)."""
    counts = [int(trained.metrics.get(f"{source}_tokens", 0)) for source in ("own", "taught", "made")]
    if any(counts):
        return counts[0], counts[1], counts[2], AS_DRAWN
    sampled_tokens = sum(sum(path.mask) for path in map(sampled, chosen) if path)
    return sampled_tokens, 0, 0, ONCE


def total(diets: Sequence[Diet]) -> DietTotal:
    """Add the tokens and answers of several checkpoints up."""
    own, taught, other = (sum(getattr(diet, name) for diet in diets) for name in ("own", "taught", "other"))
    tokens = own + taught + other
    wrong, strange = sum(diet.wrong for diet in diets), sum(diet.strange for diet in diets)
    shares = [count / tokens if tokens else None for count in (own, taught, other)]
    return DietTotal(len(diets), tokens, own, taught, other, wrong, strange, *shares)
