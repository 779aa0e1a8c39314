"""Strategies: which model is asked next, and whose answer is given. The files here register them.

A strategy is a pure function that is called again after every answer, so the same function routes live calls, shows
what it would do, and replays recorded answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent0.registry import Registry


@dataclass(frozen=True)
class Option:
    """A model that may be asked. ``cost`` is the most that the call may cost in nano-dollars, None where nobody knows,
    0 for one that runs here; ``right`` is how often it is right, as measured on verified tasks, None where nobody has.
    """

    model: str
    cost: int | None = 0
    right: float | None = None


@dataclass(frozen=True)
class Answer:
    """What a model answered. ``key`` is equal for equal answers; ``confidence`` is the probability that it is right,
    None where the model gives nothing to tell it from; ``cost`` in nano-dollars. ``calls``: it calls a tool, and cost
    nothing; whether to ask elsewhere is decided by the answer that follows."""

    model: str
    key: str
    confidence: float | None = None
    cost: int | None = 0
    calls: bool = False


@dataclass(frozen=True)
class Rules:
    """Numbers that strategies read: ``threshold`` of confidence from which an answer is given; ``worth`` of a right
    answer in nano-dollars; ``share`` of questions in the B half; ``allowance`` in nano-dollars, None: any amount."""

    threshold: float = 0.7
    worth: int = 0
    share: float = 0.5
    allowance: int | None = None


@dataclass(frozen=True)
class Question:
    """One question on its way. ``options`` come in the order in which the settings name them, the model that is meant
    first; ``answers`` in the order in which they came; ``spent`` is what earlier questions cost in nano-dollars;
    ``draw`` in [0, 1) is the question's own number."""

    options: tuple[Option, ...]
    answers: tuple[Answer, ...] = ()
    rules: Rules = Rules()
    spent: int = 0
    draw: float = 0.0

    @property
    def open(self) -> tuple[Option, ...]:
        """The options that were not asked yet."""
        models = {answer.model for answer in self.answers}
        return tuple(option for option in self.options if option.model not in models)

    def without(self, model: str) -> "Question":
        """The question where ``model`` cannot be asked."""
        return replace(self, options=tuple(option for option in self.options if option.model != model))

    def answered(self, answer: Answer) -> "Question":
        """The question with one more answer."""
        return replace(self, answers=(*self.answers, answer))


@dataclass(frozen=True)
class RoutingStep:
    """What to do next: ask the model ``ask``, or where that is empty give the answer of ``give``; with neither, nothing
    can be asked. ``aside``: it is asked for comparison only, and may fail. ``reason`` is for people."""

    ask: str = ""
    give: str = ""
    reason: str = ""
    aside: bool = False


Strategy = Callable[[Question], RoutingStep]


@dataclass(frozen=True)
class StrategyEntry:
    """A registered strategy: what it does in a line, and which rules it reads. ``streams``: the first answer that it
    gets, but for those it asks for aside, is the one it gives, so that it may be heard while it is written."""

    name: str
    decide: Strategy
    what: str
    reads: tuple[str, ...]
    streams: bool = False


_strategies = Registry[str, StrategyEntry]("strategies", __name__)


def strategy(name: str, *reads: str, streams: bool = False) -> Callable[[Strategy], Strategy]:
    """Register a strategy under ``name``; its docstring says what it does, ``reads`` names the rules it reads, and
    ``streams`` is that of ``StrategyEntry``."""
    return _strategies.adding(
        name, lambda fn: StrategyEntry(name, fn, (fn.__doc__ or "").partition("\n")[0], reads, streams)
    )


def strategies() -> dict[str, StrategyEntry]:
    """Return every registered strategy by name, in the order of names."""
    return _strategies.all()


def first(question: Question) -> RoutingStep:
    """Ask the model that is meant, before any other one."""
    return RoutingStep(ask=question.options[0].model, reason="it is asked first")


def belief(answer: Answer, question: Question) -> float | None:
    """Return how probably an answer is right: its confidence, else how often its model is; None: neither is known. A
    call of a tool is no answer yet, so nothing is gained by another one: 1."""
    if answer.calls:
        return 1.0
    if answer.confidence is not None:
        return answer.confidence
    return next((option.right for option in question.options if option.model == answer.model), None)


def surest(question: Question) -> Answer:
    """The answer that is most probably right. Of two that are equally so, or of which one is unknown, it is the later:
    whoever asked another model did so to have its answer."""
    best, best_belief = question.answers[0], belief(question.answers[0], question)
    for answer in question.answers[1:]:
        probability = belief(answer, question)
        if best_belief is None or probability is None or probability >= best_belief:
            best, best_belief = answer, probability
    return best


def is_sure(answer: Answer, rules: Rules) -> bool:
    """Whether the confidence reaches the threshold; one that is not known does not. A call of a tool is kept."""
    return answer.calls or (answer.confidence is not None and answer.confidence >= rules.threshold)


def shown(confidence: float | None) -> str:
    """Format a confidence for people, also where it is unknown."""
    return "unknown" if confidence is None else f"{confidence:.2f}"
