"""Part of the rim: the turns of work on a repository in lines for people: what was written, and which calls it made."""

from collections.abc import Iterable, Iterator, Sequence

from agent0.events.base import Event
from agent0.events.tasks import ToolCalled, TurnCompleted
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt import AttemptProgress


def turn_lines(number: int, text: str, calls: Sequence[ToolCalled]) -> Iterator[str]:
    """A line of what a turn says, and one for each of its calls."""
    summary = " ".join(text.partition("<tool_call>")[0].partition("```")[0].split())
    yield f"Turn {number}: {summary[:300]}".rstrip()
    for call in calls:
        subject = next((str(value) for value in call.call.arguments.values()), "")
        yield f"  {call.call.name} {' '.join(subject.split())[:80]}: {call.result.state.value}"


def plan_lines(events: Iterable[Event], artifacts: Artifacts) -> list[str]:
    """The lines of all turns among ``events`` that ended, but for the last of an attempt that is over.

    Raises:
        NotFoundError, LogError: what was written is missing or damaged.
    """
    turns, calls = list[tuple[TurnCompleted, list[ToolCalled]]](), list[ToolCalled]()
    for event in events:
        if isinstance(event, ToolCalled):
            calls.append(event)
        elif isinstance(event, TurnCompleted):
            turns.append((event, calls))
            calls = []
    if not turns:
        return []
    written = AttemptProgress.model_validate_json(artifacts.get(turns[-1][0].progress)).written
    texts = [generation.text for generation in written[-len(turns) :]]
    return [
        line
        for text, (turn, of_turn) in zip(texts, turns, strict=False)
        for line in turn_lines(turn.turn, text, of_turn)
    ]
