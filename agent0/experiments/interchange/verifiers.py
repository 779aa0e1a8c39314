"""Rollouts of verifiers (Prime Intellect) as rows: ``results.jsonl`` of an evaluation, with prompt, completion, answer,
reward and what each reward function gave. https://docs.primeintellect.ai/verifiers"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent0.events.values import RewardPart
from agent0.experiments.interchange import (
    OWN,
    Document,
    Foreign,
    ForeignAttempt,
    note_of,
    noted_parts,
    noted_task,
    noted_trajectory,
    shaped,
    unread_fields,
    written_note,
)
from agent0.experiments.interchange.chat import as_messages
from agent0.experiments.interchange.messages import ChatMessage, conversation, split, written

NAME = "verifiers"


class _VerifiersRow(Foreign):
    prompt: str | list[ChatMessage]
    completion: str | list[ChatMessage]
    reward: float | None = None
    answer: str | None = None
    example_id: int | str | None = None
    task: str | None = None
    info: Document | None = None
    metrics: dict[str, float | None] | None = None
    tool_calls: list[Document] | None = None
    model: str | None = None


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a row as one attempt; numbers in columns of their own, and in ``metrics``, are parts of its reward.

    Raises:
        RowError: it is none.
    """
    rollout = shaped(_VerifiersRow, row, location, NAME)
    info, losses = rollout.info or {}, list[str]()
    note = note_of(info.get(OWN), location, NAME)
    prompt, completion = as_messages(rollout.prompt, "user"), as_messages(rollout.completion, "assistant")
    transcript, calls = conversation([*prompt, *completion], losses, location, NAME, note)
    columns = {name: value for name, value in (rollout.model_extra or {}).items() if _is_number(value)}
    metrics = {**columns, **{name: value for name, value in (rollout.metrics or {}).items() if value is not None}}
    question = next((turn.content for turn in reversed(transcript[: len(prompt)]) if turn.role == "user"), "")
    losses += [f"info.{name}"[:80] for name in info if name != OWN]
    losses += [name for name in unread_fields(rollout) if name not in metrics]
    yield ForeignAttempt(
        location,
        question,
        transcript,
        expected=rollout.answer or "",
        group=f"{rollout.task or ''} {rollout.example_id}" if rollout.example_id is not None else question,
        answer=note.answer,
        calls=calls,
        total=rollout.reward,
        parts=noted_parts(note) or _parts(rollout.reward, metrics),
        correct=note.correct,
        trajectory=noted_trajectory(note),
        model=rollout.model or note.model,
        task=noted_task(note, location, NAME),
        losses=tuple(dict.fromkeys(losses)),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _parts(total: float | None, metrics: Mapping[str, float]) -> tuple[RewardPart, ...]:
    """The total under its own name; what its functions gave counts beside it: their weights are not in the file."""
    if total is None:
        return ()
    beside = (RewardPart(name=name[:80], value=value, weight=0.0) for name, value in metrics.items())
    return (RewardPart(name="reward", value=total), *beside)


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one row; ``row`` is one of ``projections.trajectories``."""
    prompt, completion = split(written(row))
    metrics = {part["name"]: part["value"] for part in row["reward_parts"] if part["value"] is not None}
    yield {
        "example_id": row["canonical"],
        "task": row["family"],
        "prompt": prompt,
        "completion": completion,
        "answer": row["expected"],
        "reward": row["reward"],
        "metrics": metrics,
        "info": {OWN: written_note(row)},
    }
