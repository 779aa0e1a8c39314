"""The training trace of OpenEnv (version 1): what a policy sampled turn by turn, as token ids with log-probabilities
and a mask over prompt and completion, with the request that asked for each turn and the response. It has no reward."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from agent0.evaluation.benchmarks.rows import RowError
from agent0.events.values import Trajectory
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
from agent0.ports.models import Generation
from agent0.rollout.trajectories import assemble

NAME = "openenv"


class _TracedRequest(Foreign):
    messages: list[ChatMessage] = Field(default_factory=list)
    model: str = ""


class _TracedChoice(Foreign):
    message: ChatMessage


class _TracedResponse(Foreign):
    choices: list[_TracedChoice] = Field(default_factory=list)


class _TracedTurn(Foreign):
    node_id: str = ""
    prompt_token_ids: list[TokenId]
    completion_token_ids: list[TokenId]
    per_token_logps: list[float]
    loss_mask: list[Literal[0, 1]]
    request: _TracedRequest | None = None
    response: _TracedResponse | None = None
    metadata: Document | None = None

    @model_validator(mode="after")
    def require_one_length(self) -> "_TracedTurn":
        """Require a mark for each token, and a log-probability for each that was sampled."""
        tokens = len(self.prompt_token_ids) + len(self.completion_token_ids)
        if len(self.loss_mask) != tokens or len(self.per_token_logps) != len(self.completion_token_ids):
            raise ValueError("ids, loss_mask and per_token_logps differ in length")
        return self


class _TrainingTrace(Foreign):
    schema_version: Literal[1]
    turns: list[_TracedTurn] = Field(min_length=1)


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a trace as one attempt: the messages of its last request and what was answered.

    Raises:
        RowError: it is none, or no turn says what was asked.
    """
    trace, losses = shaped(_TrainingTrace, row, location, NAME), list[str]()
    metadata = trace.turns[0].metadata or {}
    note = note_of(metadata.get(OWN), location, NAME)
    messages = _messages(trace.turns[-1])
    if not messages:
        field = f"turns.{len(trace.turns) - 1}.request.messages"
        why = f"Field {field!r}: it is empty, and the ids alone do not say what was asked."
        raise RowError(location, field, f"no row of {NAME}.", why, "Write the traces with their requests.")
    transcript, calls = conversation(messages, losses, location, NAME, note)
    trajectory, problem = _trajectory(trace.turns)
    question = next((turn.content for turn in transcript if turn.role == "user"), "")
    losses += [f"metadata.{name}"[:80] for name in metadata if name != OWN] + unread_fields(trace)
    yield ForeignAttempt(
        location,
        question,
        transcript,
        group=question,
        answer=note.answer,
        calls=calls,
        total=note.reward,
        parts=noted_parts(note),
        correct=note.correct,
        trajectory=trajectory,
        problem=problem,
        model=note.model or (trace.turns[-1].request or _TracedRequest()).model,
        task=noted_task(note, location, NAME),
        losses=tuple(dict.fromkeys(losses)),
    )


def _trajectory(turns: Sequence[_TracedTurn]) -> tuple[Trajectory | None, str]:
    """The tokens of a trace, or why there are none; what its masks leave out is masked."""
    generations = [
        Generation("", tuple(turn.completion_token_ids), tuple(turn.per_token_logps), tuple(turn.prompt_token_ids))
        for turn in turns
    ]
    trajectory, problem = assemble(generations)
    if trajectory is None:
        return None, problem
    mask, logprobs = [*trajectory.mask], [*trajectory.logprobs]
    for turn in turns:
        for at in range(len(turn.prompt_token_ids), len(turn.loss_mask)):
            if not turn.loss_mask[at]:
                mask[at], logprobs[at] = 0, 0.0
    return Trajectory(token_ids=trajectory.token_ids, mask=tuple(mask), logprobs=tuple(logprobs)), ""


def _messages(turn: _TracedTurn) -> Sequence[ChatMessage]:
    answers = turn.response.choices if turn.response else []
    return [*(turn.request.messages if turn.request else []), *(choice.message for choice in answers[:1])]


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one trace; nothing where it has no token ids. ``row`` is one of
    ``projections.trajectories``."""
    messages, model = written(row), {"model": row["model"] or row["student"]}
    answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    spans = [*sampled_spans(row["trajectory"])]
    turns = [
        {
            "node_id": f"{row['run']}/{row['attempt']}/{number}",
            "prompt_token_ids": span["prompt_token_ids"],
            "completion_token_ids": span["completion_token_ids"],
            "per_token_logps": span["logprobs"],
            "loss_mask": span["extra"]["loss_mask"],
            "request": model | {"messages": messages[:at]},
            "response": model | {"choices": [{"index": 0, "message": messages[at]}]},
            "metadata": {} if number else {OWN: written_note(row, tokens=False)},
        }
        for number, (span, at) in enumerate(zip(spans, answers[-len(spans) :], strict=False))
    ]
    if turns:
        yield {"schema_version": 1, "turns": turns}
