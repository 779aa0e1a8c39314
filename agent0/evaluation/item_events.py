"""Between the items of an evaluation and events: each item as an event, and all of them as the checkpoint's score."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields

from agent0.evaluation.checkpoint_score import ScoredItem, score
from agent0.evaluation.item_rollout import ItemAttempt
from agent0.events.checkpoints import CheckpointEvaluated, EvaluationItemScored, EvaluationRequested
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt_events import conversation_fields
from agent0.rollout.claim_check import INLINE
from agent0.settings import RunConfig

REASON = 1000
"""Characters of a verdict's texts that an event has."""
_SAME = tuple(field.name for field in fields(ScoredItem) if field.name not in ("task", "truncated"))
"""Fields that an item and its event have under one name; the item's ``task`` is the event's ``item``, and what is
``truncated`` is its ``end``."""


def item_scored(evaluation: str, number: int, attempt: ItemAttempt, artifacts: Artifacts) -> EvaluationItemScored:
    """Make the event of item ``number``. An item over 64 KB is stored as an artifact, and its long texts stay out; so
    is a conversation."""
    item, verdict = attempt.item, attempt.verdict
    row = _line(item).encode()
    fields = conversation_fields(attempt.result, artifacts) | {name: getattr(item, name) for name in _SAME}
    if len(row) > INLINE:
        fields |= {"question": "", "answer": None, "tried": (), "row": artifacts.put(row, "application/json")}
    fields |= {"reason": verdict.reason[:REASON], "expected": verdict.expected[:REASON]}
    return EvaluationItemScored(evaluation=evaluation, number=number, item=item.task, **fields)


def items_of(events: Iterable[EvaluationItemScored], artifacts: Artifacts) -> list[ScoredItem]:
    """Read the items back from their events, in set order.

    Raises:
        NotFoundError, LogError: a stored one is missing or damaged.
    """
    return [_read(event, artifacts) for event in sorted(events, key=lambda event: event.number)]


def _read(event: EvaluationItemScored, artifacts: Artifacts) -> ScoredItem:
    if event.row is None:
        same = {name: getattr(event, name) for name in _SAME}
        return ScoredItem(task=event.item, truncated=event.end == "length", **same)
    stored = ScoredItem(**json.loads(artifacts.get(event.row)))
    return ScoredItem(**{**vars(stored), "tried": tuple(stored.tried)})


def checkpoint_evaluated(
    request: EvaluationRequested, items: Sequence[ScoredItem], artifacts: Artifacts, config: RunConfig
) -> CheckpointEvaluated:
    """Score the checkpoint on all of its items, which are stored as an artifact: JSON lines in set order."""
    lines = "\n".join(map(_line, items))
    stored = artifacts.put(lines.encode(), "application/jsonl")
    return score(request, items, stored, config.evaluation.checked, config.rewards)


def _line(item: ScoredItem) -> str:
    return json.dumps(item.row(), sort_keys=True)
