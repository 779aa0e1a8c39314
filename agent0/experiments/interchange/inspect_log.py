"""Logs of Inspect (UK AISI) as JSON: one document with samples, each with messages, a target and scores by scorer; its
archives (``.eval``) are read as one. https://inspect.aisi.org.uk/eval-logs.html"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from agent0.events.values import RewardPart
from agent0.experiments.interchange import (
    OWN,
    Document,
    Foreign,
    ForeignAttempt,
    LinkedTurn,
    call_id,
    linked_turns,
    note_of,
    noted_parts,
    noted_task,
    noted_trajectory,
    shaped,
    unread_fields,
    written_note,
)
from agent0.experiments.interchange.chat import as_messages
from agent0.experiments.interchange.messages import ChatMessage, conversation

NAME = "inspect"
_MARKS: Mapping[object, float] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's words for correct, incorrect, partially correct and no answer, as the numbers that it makes of them."""


_UNREAD = ("attachments", "events", "events_data", "output", "store", "timelines")
"""Fields of a sample that say again, event by event, what its messages say, with images and whole requests."""


class _InspectScore(Foreign):
    value: str | int | float | bool | list[Any] | Document
    answer: str | None = None
    explanation: str | None = None


class _InspectSample(Foreign):
    id: int | str
    epoch: int = 1
    input: str | list[ChatMessage]
    target: str | list[str] = ""
    messages: list[ChatMessage] = Field(min_length=1)
    scores: dict[str, _InspectScore] | None = None
    metadata: Document | None = None


class _InspectTask(Foreign):
    task: str = ""
    model: str = ""


class _InspectLog(Foreign):
    version: Literal[1, 2]
    status: str
    eval: _InspectTask
    samples: list[Document] = Field(default_factory=list)


def without_unread(row: Mapping[str, Any]) -> Document:
    """The log without what no event keeps: each such field that is not empty is named, so that it counts as a loss."""
    samples = row.get("samples")
    if not isinstance(samples, list):
        return dict(row)
    return {**row, "samples": [_trimmed(sample) if isinstance(sample, dict) else sample for sample in samples]}


def _trimmed(sample: Document) -> Document:
    return sample | {name: name if sample[name] else None for name in _UNREAD if name in sample}


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read each sample of a log as one attempt; those of one id are attempts at one task.

    Raises:
        RowError: it is no log, or a sample is none.
    """
    log = shaped(_InspectLog, row, location, NAME)
    for number, document in enumerate(log.samples, 1):
        where = f"{location}, sample {number}"
        yield _attempt(shaped(_InspectSample, document, where, NAME), log.eval, where)


def _attempt(sample: _InspectSample, task: _InspectTask, location: str) -> ForeignAttempt:
    metadata, losses = sample.metadata or {}, list[str]()
    note = note_of(metadata.get(OWN), location, NAME)
    transcript, calls = conversation(sample.messages, losses, location, NAME, note)
    prompt = as_messages(sample.input, "user")
    texts = [message.content for message in prompt if message.role == "user" and isinstance(message.content, str)]
    question = texts[-1] if texts else next((turn.content for turn in transcript if turn.role == "user"), "")
    parts = _parts(sample.scores or {}, losses)
    total = parts[0].value if parts else None
    answers = [score.answer for score in (sample.scores or {}).values() if score.answer is not None]
    losses += [f"metadata.{name}"[:80] for name in metadata if name != OWN] + unread_fields(sample)
    return ForeignAttempt(
        location,
        question,
        transcript,
        expected=sample.target if isinstance(sample.target, str) else (sample.target or [""])[0],
        group=f"{task.task} {sample.id}",
        answer=note.answer if note.task is not None else next(iter(answers), None),
        calls=calls,
        total=total if note.task is None else note.reward,
        parts=noted_parts(note) or parts,
        correct=note.correct,
        trajectory=noted_trajectory(note),
        model=task.model or note.model,
        task=noted_task(note, location, NAME),
        losses=tuple(dict.fromkeys(losses)),
    )


def _parts(scores: Mapping[str, _InspectScore], losses: list[str]) -> tuple[RewardPart, ...]:
    """Each scorer's number; the first is the reward, the others count beside it."""
    parts = list[RewardPart]()
    for name, score in scores.items():
        number = _MARKS.get(score.value) if isinstance(score.value, str) else score.value
        if isinstance(number, int | float):
            parts.append(RewardPart(name=name[:80], value=float(number), weight=0.0 if parts else 1.0))
        else:
            losses.append(f"scores.{name}.value"[:80])
        losses += ["scores.explanation"] * bool(score.explanation)
    return tuple(parts)


def write(rows: Iterable[Mapping[str, Any]]) -> Iterator[Document]:
    """Write exported attempts as one log, each as a sample; ``rows`` are of ``projections.trajectories``."""
    samples, first = list[Document](), dict[str, Any]()
    for row in rows:
        first = first or dict(row)
        samples.append(_sample(row))
    if samples:
        model = first["model"] or first["student"]
        task = {"task": first["run"], "created": first["time"], "model": f"{OWN}/{model}", "dataset": {}, "config": {}}
        yield {"version": 2, "status": "success", "eval": task, "samples": samples}


def _sample(row: Mapping[str, Any]) -> Document:
    scores: Document = {}
    if row["reward"] is not None:
        scores["reward"] = {"value": row["reward"], "answer": row["answer"]}
    if row["correct"] is not None:
        scores["correct"] = {"value": "C" if row["correct"] else "I", "answer": row["answer"]}
    return {
        "id": row["task"],
        "epoch": int(str(row["attempt"]).rpartition("-a")[2]) + 1,
        "input": row["question"],
        "target": row["expected"],
        "messages": [_message(linked) for linked in linked_turns(row)],
        "scores": scores,
        "metadata": {OWN: written_note(row)},
    }


def _message(linked: LinkedTurn) -> Document:
    turn = linked.turn
    message: Document = {"role": turn["role"], "content": turn["content"]}
    if turn.get("thinking"):
        thought = {"type": "reasoning", "reasoning": turn["thinking"]}
        message["content"] = [thought, {"type": "text", "text": turn["content"]}]
    if linked.calls:
        message["tool_calls"] = [
            {
                "id": call_id(call),
                "type": "function",
                "function": call["tool"] or "unknown",
                "arguments": call["arguments"] or {},
            }
            for call in linked.calls
        ]
    if turn["role"] == "tool":
        message |= {"function": turn["name"]} if turn.get("name") else {}
        message |= {"tool_call_id": call_id(linked.answered)} if linked.answered else {}
    return message
