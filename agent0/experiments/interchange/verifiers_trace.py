"""Traces of verifiers (version 1) as rows: a graph of messages, each with its tokens, and rewards with names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from agent0.events.values import RewardPart, Trajectory
from agent0.experiments.interchange import (
    Document,
    ExportNote,
    Foreign,
    ForeignAttempt,
    TokenId,
    shaped,
    unread_fields,
)
from agent0.experiments.interchange.messages import ChatMessage, conversation

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


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a trace as one attempt: the path that ends in its last message.

    Raises:
        RowError: it is none.
    """
    trace, losses = shaped(_VerifiersTrace, row, location, NAME), list[str]()
    path = _path(trace.nodes)
    if left := len(trace.nodes) - len(path):
        losses.append(f"{left} messages of other branches")
    transcript, calls = conversation([node.message for node in path], losses, location, NAME, ExportNote())
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
        calls=calls,
        total=sum(each.score * each.weight for each in scored.values()) if scored else None,
        parts=parts,
        trajectory=trajectory,
        problem=problem,
        losses=tuple(dict.fromkeys([*losses, *unread_fields(trace)])),
    )


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
