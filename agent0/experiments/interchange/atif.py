"""The Agent Trajectory Interchange Format (ATIF 1.x) that Harbor and the agents it drives write: one document an
attempt. It has no place for a reward: ours stands in ``extra``. Its schema: https://www.harborframework.com/docs"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from agent0.events.values import ToolUse, Turn, Usage
from agent0.experiments.interchange import (
    OWN,
    STATES_UNKNOWN,
    Content,
    Document,
    Foreign,
    ForeignAttempt,
    ForeignCall,
    TokenId,
    call_id,
    called_text,
    linked_turns,
    note_of,
    noted_parts,
    noted_task,
    shaped,
    text_of,
    tool_use,
    unread_fields,
    written_note,
)
from agent0.ports.models import Generation
from agent0.rollout.trajectories import assemble

NAME, VERSION = "ATIF", "ATIF-v1.8"
"""What is written; any 1.x is read."""
_ROLES: Mapping[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "user": "user",
    "agent": "assistant",
}
_SOURCES = {role: source for source, role in _ROLES.items()}


class _AtifCall(Foreign):
    tool_call_id: str
    function_name: str
    arguments: Document


class _AtifResult(Foreign):
    source_call_id: str | None = None
    content: Content = None
    extra: Document | None = None


class _AtifObservation(Foreign):
    results: list[_AtifResult]


class _AtifMetrics(Foreign):
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)
    prompt_token_ids: list[TokenId] | None = None
    completion_token_ids: list[TokenId] | None = None
    logprobs: list[float] | None = None
    extra: Document | None = None


class _AtifStep(Foreign):
    step_id: int = Field(ge=1)
    source: Literal["system", "user", "agent"]
    message: Content
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_AtifCall] | None = None
    observation: _AtifObservation | None = None
    metrics: _AtifMetrics | None = None


class _AtifAgent(Foreign):
    name: str
    version: str
    model_name: str | None = None


class _AtifDocument(Foreign):
    schema_version: str = Field(pattern=r"^ATIF-v1\.\d{1,3}$")
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: _AtifAgent
    steps: list[_AtifStep] = Field(min_length=1)
    final_metrics: Document | None = None
    extra: Document | None = None


def read(row: Mapping[str, Any], location: str) -> Iterator[ForeignAttempt]:
    """Read a document as one attempt.

    Raises:
        RowError: it is none.
    """
    document = shaped(_AtifDocument, row, location, NAME)
    extra = document.extra or {}
    note, losses = note_of(extra.get(OWN), location, NAME), list[str]()
    transcript, calls = _conversation(document.steps, losses, whole=bool(note.attempt))
    generations = [_generation(step) for step in document.steps if step.source == "agent"]
    trajectory, problem = assemble(generations)
    question = next((turn.content for turn in transcript if turn.role == "user"), "")
    losses += [f"extra.{name}"[:80] for name in extra if name != OWN] + unread_fields(document)
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
        model=note.model or document.agent.model_name or document.agent.name,
        usage=_usage(document.steps),
        task=noted_task(note, location, NAME),
        losses=tuple(dict.fromkeys(losses)),
    )


def _conversation(
    steps: Sequence[_AtifStep], losses: list[str], *, whole: bool
) -> tuple[tuple[Turn, ...], tuple[ToolUse, ...]]:
    """Turns, with what tools answered behind the step that called them, and the calls. ``whole``: texts hold their
    calls."""
    transcript, uses, turn = list[Turn](), list[ToolUse](), -1
    for step in steps:
        text, calls = text_of(step.message, losses), _calls(step, losses)
        if step.source == "agent":
            turn += 1
            text = text if whole else called_text(text, calls)
        transcript.append(Turn(role=_ROLES[step.source], content=text, thinking=step.reasoning_content or ""))
        uses += [tool_use(call, max(turn, 0)) for call in calls]
        names = [call.function_name for call in step.tool_calls or []]
        for index, result in enumerate(step.observation.results if step.observation else []):
            name = names[index] if index < len(names) else ""
            transcript.append(Turn(role="tool", name=name, content=text_of(result.content, losses)))
    return tuple(transcript), tuple(uses)


def _calls(step: _AtifStep, losses: list[str]) -> list[ForeignCall]:
    """The calls of a step with their results: those that name them, else those at their place."""
    results = step.observation.results if step.observation else []
    named = {result.source_call_id: result for result in results if result.source_call_id}
    calls = []
    for index, call in enumerate(step.tool_calls or []):
        result = named.get(call.tool_call_id) or (results[index] if not named and index < len(results) else None)
        state = str((result.extra or {}).get("state", "")) if result else ""
        losses += [] if state else [STATES_UNKNOWN]
        output = text_of(result.content, []) if result else None
        calls.append(ForeignCall(call.function_name, call.arguments, output, state))
    return calls


def _generation(step: _AtifStep) -> Generation:
    metrics = step.metrics or _AtifMetrics()
    ids, logprobs = metrics.completion_token_ids or [], metrics.logprobs or []
    return Generation("", tuple(ids), tuple(logprobs), tuple(metrics.prompt_token_ids or []))


def _usage(steps: Sequence[_AtifStep]) -> Usage:
    metrics = [step.metrics for step in steps if step.metrics]
    prompt, completion = (
        sum(getattr(each, name) or 0 for each in metrics) for name in ("prompt_tokens", "completion_tokens")
    )
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as one document; ``row`` is one of ``projections.trajectories``."""
    steps = _steps(row)
    yield {
        "schema_version": VERSION,
        "session_id": row["run"],
        "trajectory_id": f"{row['run']}/{row['attempt']}",
        "agent": {"name": OWN, "version": row["code_rev"] or "unknown", "model_name": row["model"] or row["student"]},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": row["prompt_tokens"] or 0,
            "total_completion_tokens": row["completion_tokens"] or 0,
            "total_steps": len(steps),
        },
        "extra": {OWN: written_note(row, tokens=False)},
    }


def _steps(row: Mapping[str, Any]) -> list[Document]:
    """Turns as steps; what tools answered stands with the step that called them."""
    spans, steps = sampled_spans(row["trajectory"]), list[Document]()
    for linked in linked_turns(row):
        turn = linked.turn
        if turn["role"] == "tool" and steps:
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            call = linked.answered
            link = {"source_call_id": call_id(call), "extra": {"state": call["state"]}} if call else {}
            results.append({**link, "content": turn["content"]})
            continue
        step: Document = {"step_id": len(steps) + 1, "source": _SOURCES.get(turn["role"], "user")}
        step |= {"message": turn["content"]}
        if turn.get("thinking"):
            step["reasoning_content"] = turn["thinking"]
        if linked.calls:
            step["tool_calls"] = [_call(call) for call in linked.calls]
        if span := next(spans, None) if linked.sampled else None:
            step["metrics"] = span
        steps.append(step)
    return steps


def _call(call: Mapping[str, Any]) -> Document:
    arguments = call["arguments"] or {}
    return {"tool_call_id": call_id(call), "function_name": call["tool"] or "unknown", "arguments": arguments}


def sampled_spans(trajectory: Mapping[str, Any] | None) -> Iterator[Document]:
    """The runs of sampled tokens of a trajectory as a step's metrics: the ids before them, theirs, and their
    log-probabilities."""
    ids, at = (trajectory or {}).get("token_ids") or [], 0
    mask, logprobs = (trajectory or {}).get("mask") or [], (trajectory or {}).get("logprobs") or []
    for sampled, group in groupby(mask):
        end = at + len(list(group))
        if sampled:
            yield {
                "prompt_tokens": at,
                "completion_tokens": end - at,
                "prompt_token_ids": list(ids[:at]),
                "completion_token_ids": list(ids[at:end]),
                "logprobs": list(logprobs[at:end]),
                "extra": {"loss_mask": [0] * at + [1] * (end - at)},
            }
        at = end
