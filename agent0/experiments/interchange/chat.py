"""Conversations as rows: OpenAI's chat JSONL (``messages``) and TRL's prompt-completion rows, with a reward or a label
where the file has one. https://huggingface.co/docs/trl/dataset_formats"""

from collections.abc import Iterator, Mapping, Sequence
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
from agent0.experiments.interchange.messages import ChatMessage, conversation, written

CHAT, TRL = "openai-chat", "trl"


class _Labelled(Foreign):
    reward: float | None = None
    label: bool | None = None
    answer: str | None = None
    model: str | None = None
    metadata: Document | None = None


class _ChatRow(_Labelled):
    messages: list[ChatMessage]


class _TrlRow(_Labelled):
    prompt: str | list[ChatMessage]
    completion: str | list[ChatMessage]


def read_chat(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a row of messages as one attempt at what the first user's message asks.

    Raises:
        RowError: it is none.
    """
    read = shaped(_ChatRow, row, location, CHAT)
    yield _attempt(read, read.messages, location, CHAT)


def read_trl(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a row of prompt and completion as one attempt.

    Raises:
        RowError: it is none.
    """
    read = shaped(_TrlRow, row, location, TRL)
    messages = [*as_messages(read.prompt, "user"), *as_messages(read.completion, "assistant")]
    yield _attempt(read, messages, location, TRL)


def as_messages(content: str | Sequence[ChatMessage], role: str) -> list[ChatMessage]:
    """The messages of a side of a row; a text, as completion models have it, is one of ``role``."""
    if isinstance(content, str):
        return [ChatMessage.model_validate({"role": role, "content": content})]
    return list(content)


def _attempt(row: _Labelled, messages: Sequence[ChatMessage], location: str, format: str) -> ForeignAttempt:
    extra, losses = row.metadata or {}, list[str]()
    note = note_of(extra.get(OWN), location, format)
    transcript, calls = conversation(messages, losses, location, format, note)
    question = next((turn.content for turn in transcript if turn.role == "user"), "")
    losses += [f"metadata.{name}"[:80] for name in extra if name != OWN] + unread_fields(row)
    total = row.reward if note.task is None else note.reward
    parts = () if total is None else (RewardPart(name="reward", value=total),)
    return ForeignAttempt(
        location,
        question,
        transcript,
        expected=row.answer or "",
        group=question,
        answer=note.answer,
        calls=calls,
        total=total,
        parts=noted_parts(note) or parts,
        correct=row.label if note.task is None else note.correct,
        trajectory=noted_trajectory(note),
        model=row.model or note.model,
        task=noted_task(note, location, format),
        losses=tuple(dict.fromkeys(losses)),
    )


def write_chat(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one row; ``row`` is one of ``projections.trajectories``."""
    yield {"messages": written(row), "metadata": {OWN: written_note(row)}}
