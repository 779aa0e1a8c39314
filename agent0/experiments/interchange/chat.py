"""Conversations as rows: OpenAI's chat JSONL (``messages``) and TRL's prompt-completion rows, with a reward or a label
where the file has one. https://huggingface.co/docs/trl/dataset_formats"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from agent0.evaluation.benchmarks.rows import RowError
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
    require_whole,
    shaped,
    unread_fields,
    written_note,
)
from agent0.experiments.interchange.messages import ChatMessage, conversation, split, written

CHAT, TRL = "openai-chat", "trl"


class _Labelled(Foreign):
    reward: float | None = None
    label: bool | None = None
    answer: str | None = None
    model: str | None = None
    metadata: Document | str | None = None


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
    extra, losses = _metadata(row, location, format), list[str]()
    note = note_of(extra.get(OWN), location, format)
    transcript, calls = conversation(messages, losses, location, format, note)
    question = next((turn.content for turn in transcript if turn.role == "user"), "")
    losses += [f"metadata.{name}"[:80] for name in extra if name != OWN]
    losses += [] if note.attempt else unread_fields(row)
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


def _metadata(row: _Labelled, location: str, format: str) -> Document:
    """What a row says besides; a table has it as the text of a JSON object."""
    if not isinstance(row.metadata, str):
        return row.metadata or {}
    try:
        metadata: object = json.loads(row.metadata)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        why = "Field 'metadata': its text is no JSON object."
        raise RowError(location, "metadata", f"no row of {format}.", why, "Mend or leave out this row.")
    require_whole(metadata, location, format)
    return metadata


def write_chat(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one row; ``row`` is one of ``projections.trajectories``."""
    yield {"messages": written(row), "metadata": {OWN: written_note(row)}}


def write_columns(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as a row of a table that ``read_chat`` reads: each column has one type in all rows."""
    tokens = row["trajectory"] or {}
    yield {
        **{name: row[name] for name in ("run", "task", "attempt", "iteration", "student", "reward")},
        "messages": written(row),
        "label": row["correct"],
        "answer": row["expected"],
        "model": row["model"],
        **{name: tokens.get(name) for name in ("token_ids", "mask", "logprobs")},
        "metadata": json.dumps({OWN: written_note(row)}, ensure_ascii=False),
    }


def write_prompts(rows: Iterable[Mapping[str, Any]]) -> Iterator[Document]:
    """Write the task of exported attempts as TRL's prompt-only rows, each task once, with its answer where one is
    computed: a column that reward functions get."""
    for _, attempts in groupby(rows, key=itemgetter("task")):
        row = next(attempts)
        yield {"prompt": split(written(row))[0], "answer": row["expected"]}
