"""Traces of verifiers (version 1) as rows: a graph of messages, each with its tokens, and rewards with names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from agent0.events.values import RewardPart, Trajectory
from agent0.experiments.interchange import (
    OWN,
    Document,
    Foreign,
    ForeignAttempt,
    TokenId,
    note_of,
    noted_parts,
    noted_task,
    shaped,
    unread_fields,
    written_note,
)
from agent0.experiments.interchange.atif import sampled_spans
from agent0.experiments.interchange.messages import ChatMessage, conversation, written

NAME = "verifiers-trace"


class _TraceNode(Foreign):
    message: ChatMessage
    parent: int | None = None
    sampled: bool = False
    token_ids: list[TokenId] = Field(default_factory=list)
    mask: list[bool] = Field(default_factory=list)
    logprobs: list[float] = Field(default_factory=list)


class _NamedReward(Foreign):
    score: float
    weight: float = 1.0


class _TraceTask(Foreign):
    data: Document
    type: str = ""
    key: str | None = None
    hash: str | None = None


class _VerifiersTrace(Foreign):
    version: Literal[1]
    task: _TraceTask
    nodes: list[_TraceNode]
    rewards: dict[str, _NamedReward | None]
    info: Document = Field(default_factory=dict)


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a trace as one attempt: the path that ends in its last message.

    Raises:
        RowError: it is none.
    """
    trace, losses = shaped(_VerifiersTrace, row, location, NAME), list[str]()
    note = note_of(trace.info.get(OWN), location, NAME)
    path = _path(trace.nodes)
    if left := len(trace.nodes) - len(path):
        losses.append(f"{left} messages of other branches")
    transcript, calls = conversation([node.message for node in path], losses, location, NAME, note)
    question = next((turn.content for turn in transcript if turn.role == "user"), "")
    scored = {name: reward for name, reward in trace.rewards.items() if reward is not None}
    parts = tuple(RewardPart(name=name[:80], value=each.score, weight=each.weight) for name, each in scored.items())
    trajectory, problem = _trajectory(path)
    answer = trace.task.data.get("answer")
    yield ForeignAttempt(
        location,
        question,
        transcript,
        expected=answer if isinstance(answer, str) else "",
        group=trace.task.key or trace.task.hash or question,
        answer=note.answer,
        calls=calls,
        total=_total(scored.values()) if note.task is None else note.reward,
        parts=noted_parts(note) or parts,
        correct=note.correct,
        trajectory=trajectory,
        problem=problem,
        model=note.model,
        task=noted_task(note, location, NAME),
        losses=tuple(dict.fromkeys([*losses, *_unread_info(trace), *unread_fields(trace)])),
    )


def _unread_info(trace: _VerifiersTrace) -> list[str]:
    return [f"info.{name}"[:80] for name in trace.info if name != OWN]


def _total(rewards: Iterable[_NamedReward]) -> float | None:
    worths = [reward.score * reward.weight for reward in rewards]
    return sum(worths) if worths else None


def _path(nodes: Sequence[_TraceNode]) -> list[_TraceNode]:
    """The messages up to the last one; a parent that does not stand before its child begins the path."""
    path, at = list[_TraceNode](), len(nodes) - 1
    while at >= 0:
        path.append(nodes[at])
        parent = nodes[at].parent
        at = parent if parent is not None and 0 <= parent < at else -1
    return path[::-1]


def _trajectory(path: Sequence[_TraceNode]) -> tuple[Trajectory | None, str]:
    """The tokens of a path, or why there are none."""
    ids, mask, logprobs = list[int](), list[int](), list[float]()
    for node in path:
        sampled_logprobs = iter(node.logprobs)
        if len(node.mask) != len(node.token_ids) or sum(node.mask) != len(node.logprobs):
            return None, "a message's ids, marks and log-probabilities do not fit"
        ids += node.token_ids
        mask += [int(sampled) for sampled in node.mask]
        logprobs += [next(sampled_logprobs) if sampled else 0.0 for sampled in node.mask]
    if not any(mask):
        return None, "the file has no token ids"
    return Trajectory(token_ids=tuple(ids), mask=tuple(mask), logprobs=tuple(logprobs)), ""


def _message(message: Document) -> Document:
    """A message as traces have it: calls hold their name themselves, and every output names a call."""
    if message["role"] == "tool":
        return {"tool_call_id": "", **message}
    if "tool_calls" not in message:
        return message
    calls = [{"id": call["id"], "type": "function", **call["function"]} for call in message["tool_calls"]]
    return message | {"tool_calls": calls}


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as a trace that is one path; ``row`` is one of ``projections.trajectories``. What was
    read before a turn stands with that turn, masked."""
    messages, spans = written(row), [*sampled_spans(row["trajectory"])]
    answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    sampled, at = dict(zip(answers[-len(spans) :], spans, strict=False)), 0
    nodes = list[Document]()
    for number, message in enumerate(messages):
        node: Document = {"parent": number - 1 if number else None, "message": _message(message)}
        if span := sampled.get(number):
            prompt, completion = span["prompt_token_ids"][at:], span["completion_token_ids"]
            at += len(prompt) + len(completion)
            node |= {"token_ids": [*prompt, *completion], "mask": [False] * len(prompt) + [True] * len(completion)}
            node |= {"sampled": True, "logprobs": span["logprobs"]}
        nodes.append(node)
    parts = {part["name"]: part for part in row["reward_parts"] if part["value"] is not None}
    yield {
        "version": 1,
        "id": f"{row['run']}/{row['attempt']}",
        "task": {
            "type": row["family"],
            "key": row["canonical"],
            "data": {"prompt": row["question"], "answer": row["expected"]},
        },
        "agent": {"config": {"model": row["model"] or row["student"]}, "name": OWN},
        "nodes": nodes,
        "rewards": {name: {"score": part["value"], "weight": part["weight"]} for name, part in parts.items()},
        "info": {OWN: written_note(row, tokens=False)},
    }
