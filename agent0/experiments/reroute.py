"""A run's routed questions under another strategy, from their recorded answers: no model is asked.

What nobody asked stays unknown: such a question counts in no share, and its cost has a range.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.events.models import CallRouted
from agent0.routing.strategies import Answer, Option, Rules, StrategyEntry
from agent0.routing.walk import RecordedQuestion, Routed, walk_all
from agent0.stats.intervals import wilson

Costs = Mapping[tuple[str, str], int]
"""(route, model) -> what its answer costs under other prices, in nano-dollars."""


@dataclass(frozen=True)
class Rerouted:
    """What a run's questions would have come to.

    ``decided`` of ``questions`` are decided by recorded answers alone; ``unknown``: how often each model would have
    been asked without a recorded answer. ``cost`` is the range of what all would have cost in nano-dollars, None
    above where a price is missing; ``cost_then`` what they did cost, at the same prices. ``same`` known questions
    would have had the recorded answer, ``same95`` is the share's 95 % interval (Wilson).
    """

    questions: int
    decided: int
    unknown: Mapping[str, int]
    cost: tuple[int, int | None]
    cost_then: int
    same: int
    same95: tuple[float, float]
    calls: Mapping[str, int]
    """How often each model's recorded answer would have been asked for."""


def recorded_of(event: CallRouted, costs: Costs) -> RecordedQuestion:
    """The question of ``event`` with its recorded answers; a model that could not be asked then has none."""
    options = tuple(Option(option.model, option.cost, option.right) for option in event.options)
    answers = {
        answer.model: Answer(
            answer.model,
            answer.key,
            answer.confidence,
            costs.get((event.route, answer.model), answer.cost),
            answer.calls,
        )
        for answer in event.answers
    }
    return RecordedQuestion(options, answers, event.draw)


def reroute(events: Sequence[CallRouted], entry: StrategyEntry, rules: Rules, costs: Costs | None = None) -> Rerouted:
    """Walk the strategy ``entry`` through the questions of ``events``, in order."""
    questions = [recorded_of(event, costs or {}) for event in events]
    routed = walk_all(entry.decide, questions, rules)
    decided = [(event, walked) for event, walked in zip(events, routed, strict=True) if not walked.missing]
    same = sum(walked.key == _key_then(event) for event, walked in decided)
    missing = [walked.missing for walked in routed if walked.missing]
    models = [answer.model for walked in routed for answer in walked.answers]
    return Rerouted(
        questions=len(events),
        decided=len(decided),
        unknown={model: missing.count(model) for model in dict.fromkeys(missing)},
        cost=_range(questions, routed),
        cost_then=sum(answer.cost or 0 for question in questions for answer in question.answers.values()),
        same=same,
        same95=wilson(same, len(decided)),
        calls={model: models.count(model) for model in dict.fromkeys(models)},
    )


def _key_then(event: CallRouted) -> str:
    return next((answer.key for answer in event.answers if answer.model == event.chosen), "")


def _range(questions: Sequence[RecordedQuestion], routed: Sequence[Routed]) -> tuple[int, int | None]:
    """What all cost at least, and at most: an answer that nobody recorded may cost up to the most of its model, and the
    models behind it as well."""
    least = sum(walked.cost for walked in routed)
    most: int | None = least
    for question, walked in zip(questions, routed, strict=True):
        if not walked.missing:
            continue
        answered = {answer.model for answer in walked.answers}
        open_costs = [option.cost for option in question.options if option.model not in answered]
        priced = [cost for cost in open_costs if cost is not None]
        most = None if most is None or len(priced) < len(open_costs) else most + sum(priced)
    return least, most
