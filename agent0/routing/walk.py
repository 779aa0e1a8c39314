"""A strategy walked through recorded answers, from the first question to the last: nothing is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.routing.strategies import Answer, Option, Question, RoutingStep, Rules, Strategy

MOST_STEPS = 64
"""No strategy asks more often than that: a mistake in one ends here."""


@dataclass(frozen=True)
class Routed:
    """How one question went.

    ``chosen`` is the model whose answer is given; empty where the strategy asked for one that nobody recorded, which is
    then ``missing``. ``cost`` is what its answers cost, in nano-dollars."""

    chosen: str
    answers: tuple[Answer, ...]
    steps: tuple[RoutingStep, ...]
    cost: int
    missing: str = ""

    @property
    def key(self) -> str:
        """The answer that is given; empty where none is known."""
        return next((answer.key for answer in self.answers if answer.model == self.chosen), "")


@dataclass(frozen=True)
class RecordedQuestion:
    """A question as a run recorded it: who could be asked, and the answers of those who were."""

    options: tuple[Option, ...]
    answers: Mapping[str, Answer]
    draw: float = 0.0


def walk(decide: Strategy, recorded: RecordedQuestion, rules: Rules, spent: int = 0) -> Routed:
    """Walk ``decide`` through one recorded question, up to its answer or one that is missing."""
    question = Question(recorded.options, (), rules, spent, recorded.draw)
    steps: list[RoutingStep] = []
    while len(steps) < MOST_STEPS:
        step = decide(question)
        steps.append(step)
        cost = sum(answer.cost or 0 for answer in question.answers)
        if not step.ask:
            return Routed(step.give, question.answers, tuple(steps), cost)
        answer = recorded.answers.get(step.ask)
        if answer is not None:
            question = question.answered(answer)
        elif step.aside:
            question = question.without(step.ask)
        else:
            return Routed("", question.answers, tuple(steps), cost, missing=step.ask)
    raise ValueError(f"no answer after {MOST_STEPS} steps")


def walk_all(decide: Strategy, questions: Sequence[RecordedQuestion], rules: Rules) -> list[Routed]:
    """Walk ``decide`` through all ``questions`` in order; each knows what the ones before it cost."""
    out: list[Routed] = []
    spent = 0
    for recorded in questions:
        out.append(walk(decide, recorded, rules, spent))
        spent += out[-1].cost
    return out
