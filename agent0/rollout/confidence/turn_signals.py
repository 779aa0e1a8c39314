"""Confidence signals of a single turn, as a router sees it: what was written, and the conversation before it.

They have the names and meanings of an attempt's signals (``signals.MEANING``), read off the turn alone.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from agent0.events.values import Turn
from agent0.grading.normal_form import normal_form, same
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.rollout.confidence.signals import signals
from agent0.rollout.parsing import parse_turn
from agent0.turns.observations import plain_output

_FAILED = re.compile(
    r"^Traceback \(most recent call last\):|^\[(?:refused|stopped|the sandbox|it was ended)\b"
    r"|\A(?:\w*Error|There is no tool)\b",
    re.MULTILINE,
)
"""What a tool's output has where its call did not end well."""


def answer_of(text: str) -> str | None:
    """Return the answer that a turn gives; None where it calls a tool or gives none."""
    parsed = parse_turn(text)
    return None if parsed.calls else parsed.answer


def answer_key(text: str) -> str:
    """Return a text that is equal for equal answers: the answer's normal form, else the whole turn, folded."""
    answer = answer_of(text)
    return " ".join(text.split()).casefold() if answer is None else f"= {normal_form(answer)}"


def turn_signals(request: GenerateRequest, written: Generation) -> dict[str, float]:
    """Compute the signals of ``written``, the turn that answers ``request``; what is not known is absent."""
    answer, outputs = answer_of(written.text), _outputs(request.turns)
    good = [text for text in outputs if not _FAILED.search(text)]
    grounded = answer is not None and any(same(answer, plain_output(text)) for text in good)
    values = signals([written], answer, grounded=grounded, calls=len(outputs), calls_ok=len(good))
    return values | ({"margin": fmean(written.margins)} if written.margins else {})


def question_of(turns: Sequence[Turn]) -> str:
    """Return what the conversation began with: the last of the user's turns before the first answer."""
    first = next((index for index, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    return next((turn.content for turn in reversed(turns[:first]) if turn.role == "user"), "")


def _outputs(turns: Sequence[Turn]) -> list[str]:
    """Of the tools that were called; a turn of no tool says what was wrong with a turn."""
    return [turn.content for turn in turns if turn.role == "tool" and turn.name]


class LastTurn:
    """The ``Model`` port on another model, which keeps what was asked last, and the turn with its margins."""

    def __init__(self, inner: Model) -> None:
        self.name, self._inner = inner.name, inner
        self.request, self.written = GenerateRequest(()), Generation("")

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn; errors as the model's."""
        self.request = replace(request, margins=True)
        self.written = await self._inner.generate(self.request)
        self.name = self._inner.name
        return self.written

    async def close(self) -> None:
        """Nothing of its own is open."""
