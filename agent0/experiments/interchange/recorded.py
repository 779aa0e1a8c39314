"""Conversations that other programs led with a student of ours, turn by turn as they were recorded, as OpenEnv's
traces: each way through the turns, from a first question to an answer behind which nothing comes, is an attempt."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent0.events.submissions import TurnAnswered
from agent0.events.values import Trajectory, Turn
from agent0.experiments.interchange import Document
from agent0.experiments.interchange.atif import sampled_spans
from agent0.rollout.parsing import parse_turn


@dataclass(frozen=True)
class RecordedTurn:
    """A turn with what its event may have stored apart: what it was asked with, and its tokens."""

    event: TurnAnswered
    turns: tuple[Turn, ...]
    trajectory: Trajectory | None


def traces(recorded: Sequence[RecordedTurn]) -> Iterator[Document]:
    """Each conversation as one trace, in the order in which their last turns came."""
    earlier, parents = defaultdict[tuple[Turn, ...], list[int]](list), list[int | None]()
    for number, turn in enumerate(recorded):
        parents.append(_parent(turn, earlier, recorded))
        earlier[turn.turns].append(number)
    continued = {*parents}
    for number in range(len(recorded)):
        if number not in continued:
            path = list[RecordedTurn]()
            at: int | None = number
            while at is not None:
                path.append(recorded[at])
                at = parents[at]
            yield {"schema_version": 1, "turns": [_traced(turn) for turn in reversed(path)]}


def _parent(
    turn: RecordedTurn, earlier: dict[tuple[Turn, ...], list[int]], recorded: Sequence[RecordedTurn]
) -> int | None:
    """The turn that ``turn`` goes on from: what was asked then and what was answered is how it begins."""
    for at in range(len(turn.turns) - 1, 0, -1):
        if turn.turns[at].role == "assistant":
            for number in reversed(earlier.get(turn.turns[:at], [])):
                if _is_same(turn.turns[at].content, recorded[number].event.text):
                    return number
    return None


def _is_same(sent: str, written: str) -> bool:
    """Whether a program sent back what was written: its calls, however they are spelled, or its text."""
    calls = [[(call.name, call.arguments) for call in parse_turn(text).calls] for text in (sent, written)]
    return calls[0] == calls[1] and (bool(calls[0]) or sent.strip() == written.strip())


def _traced(turn: RecordedTurn) -> Document:
    event, span = turn.event, next(sampled_spans(turn.trajectory.model_dump() if turn.trajectory else None), None)
    prompt, completion = (span["prompt_token_ids"], span["completion_token_ids"]) if span else ([], [])
    messages = [*turn.turns, Turn(role="assistant", content=event.text)]
    *prompted, answer = [_message(message) for message in messages]
    return {
        "prompt_token_ids": prompt,
        "completion_token_ids": completion,
        "per_token_logps": span["logprobs"] if span else [],
        "loss_mask": [0] * len(prompt) + [1] * len(completion),
        "request": {"model": event.student, "messages": prompted},
        "response": {"choices": [{"message": answer}]},
    }


def _message(turn: Turn) -> Document:
    message: Document = {"role": turn.role, "content": turn.content}
    if turn.role == "assistant":
        calls = [call for call in parse_turn(turn.content).calls if not call.error]
        message["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return message | ({"name": turn.name} if turn.name else {})
