"""A model that knows the reference reply to every question it may be asked: it checks the plumbing around it."""

from collections.abc import Mapping, Sequence

from agent0.events.values import Usage
from agent0.ports.models import GenerateRequest, Generation


class Replay:
    """Plays ``agent0.ports.models.Model``. Says nothing where the question is not one of ``references``."""

    name = "scripted"

    def __init__(self, references: Mapping[str, str]) -> None:
        self._references = references

    async def generate(self, request: GenerateRequest) -> Generation:
        """The reference of the question that the last user turn ends with."""
        prompt = next((turn.content for turn in reversed(request.turns) if turn.role == "user"), "")
        reply = self._references.get(prompt) or next(
            (reply for question, reply in self._references.items() if prompt.endswith(question)), ""
        )
        return Generation(reply, usage=Usage(completion_tokens=len(reply.split())), model=self.name)

    async def close(self) -> None:
        """Nothing is open."""


class ReplayedTurns:
    """Plays ``agent0.ports.models.Model`` for one attempt: says ``turns`` one after another, the last one again."""

    name = Replay.name

    def __init__(self, turns: Sequence[str]) -> None:
        self._turns = list(turns)

    async def generate(self, request: GenerateRequest) -> Generation:
        """The next turn, whatever was asked."""
        reply = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        return Generation(reply, usage=Usage(completion_tokens=len(reply.split())), model=self.name)

    async def close(self) -> None:
        """Nothing is open."""
