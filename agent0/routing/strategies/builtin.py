"""The built-in strategies, and the vote that one of them takes."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.routing.strategies import (
    Answer,
    Option,
    Question,
    RoutingStep,
    belief,
    first,
    is_sure,
    shown,
    strategy,
    surest,
)
from agent0.stats.calibrators import log_odds


@strategy("threshold", "threshold")
def threshold(question: Question) -> RoutingStep:
    """Give the first model's answer where its confidence reaches the threshold, else ask the second and give its."""
    if not question.answers:
        return first(question)
    last, rules = question.answers[-1], question.rules
    reason = f"confidence {shown(question.answers[0].confidence)}, threshold {rules.threshold:.2f}"
    reason = "it calls a tool" if last.calls else reason
    if len(question.answers) > 1 or not question.open or is_sure(last, rules):
        return RoutingStep(give=last.model, reason=reason)
    return RoutingStep(ask=question.open[0].model, reason=reason)


@strategy("budgeted", "threshold", "allowance")
def budgeted(question: Question) -> RoutingStep:
    """As threshold, as long as the most that the call may cost fits into what is left of the allowance."""
    step = threshold(question)
    if not step.ask or not question.answers or question.rules.allowance is None:
        return step
    cost = next(option.cost for option in question.options if option.model == step.ask)
    spent = question.spent + sum(answer.cost or 0 for answer in question.answers)
    if cost is not None and spent + cost <= question.rules.allowance:
        return step
    return RoutingStep(
        give=question.answers[-1].model, reason=f"{step.reason}; {step.ask} does not fit into the allowance"
    )


@strategy("cascade", "threshold")
def cascade(question: Question) -> RoutingStep:
    """Ask one model after the other, the cheapest first, until a confidence reaches the threshold; else the surest."""
    rules = question.rules
    if question.answers and is_sure(last := question.answers[-1], rules):
        reason = f"confidence {shown(last.confidence)} reaches {rules.threshold:.2f}"
        return RoutingStep(give=last.model, reason="it calls a tool" if last.calls else reason)
    if question.open:
        cheapest = min(question.open, key=lambda option: (option.cost is None, option.cost or 0))
        return RoutingStep(ask=cheapest.model, reason="the cheapest that was not asked")
    return RoutingStep(give=surest(question).model, reason="none is sure; it is the surest")


@strategy("cost_aware", "worth")
def cost_aware(question: Question) -> RoutingStep:
    """Ask the model with the highest expected gain a cent, as long as that gain is worth more than the call."""
    if not question.answers:
        return first(question)
    best = surest(question)
    probability = belief(best, question) or 0.0
    gains = {option.model: (option.right - probability) for option in question.open if option.right is not None}
    worth = [option for option in question.open if _pays(option, gains.get(option.model, 0.0), question.rules.worth)]
    if not worth:
        return RoutingStep(give=best.model, reason=f"no call is worth more than {probability:.2f} as it is")
    chosen = max(worth, key=lambda option: gains[option.model] / max(1, option.cost or 0))
    return RoutingStep(ask=chosen.model, reason=f"expected gain {gains[chosen.model]:.2f}")


def _pays(option: Option, gain: float, worth: int) -> bool:
    """Whether ``gain`` in probability is worth more than the most that the call may cost. An unknown price never is."""
    return gain > 0 and option.cost is not None and gain * worth > option.cost


@strategy("local_only", streams=True)
def local_only(question: Question) -> RoutingStep:
    """Ask the first model that costs nothing, and give its answer."""
    if question.answers:
        return RoutingStep(give=question.answers[-1].model, reason="it costs nothing")
    free = next((option for option in question.options if option.cost == 0), None)
    return (
        RoutingStep(ask=free.model, reason="it costs nothing")
        if free
        else RoutingStep(reason="every model costs money")
    )


@strategy("ab", "share", streams=True)
def ab(question: Question) -> RoutingStep:
    """Ask the second model about a share of the questions, drawn by question, and the first about the others."""
    if question.answers:
        return RoutingStep(give=question.answers[-1].model, reason="it was drawn")
    second = question.draw < question.rules.share and len(question.options) > 1
    return RoutingStep(ask=question.options[int(second)].model, reason=f"drawn for {'B' if second else 'A'}")


@strategy("shadow", streams=True)
def shadow(question: Question) -> RoutingStep:
    """Give the first model's answer, and ask every other one for comparison only."""
    if not question.answers:
        return first(question)
    if question.open:
        return RoutingStep(ask=question.open[0].model, reason="for comparison", aside=True)
    return RoutingStep(give=question.answers[0].model, reason="the others were asked for comparison")


@strategy("ensemble")
def ensemble(question: Question) -> RoutingStep:
    """Ask every model, and give the answer with the most weight: each vote counts by the log-odds of being right."""
    if question.open:
        return RoutingStep(ask=question.open[0].model, reason="every model is asked")
    won = weigh(question.answers, {option.model: option.right for option in question.options})
    return RoutingStep(
        give=won.model, reason=f"{won.votes} of {len(question.answers)} votes, probability {won.probability:.2f}"
    )


@dataclass(frozen=True)
class Won:
    """The winning answer: the model that it is taken from, how many gave it, and its share of all weight."""

    model: str
    votes: int
    probability: float


def weigh(answers: Sequence[Answer], right: Mapping[str, float | None]) -> Won:
    """Find the answer with the most weight; of equals the one that came first.

    A vote weighs the log-odds of its confidence, where that is unknown of how often its model is right (``right``), and
    next to nothing where that is unknown as well: it then breaks ties only. ``probability`` is the softmax over the
    answers that were given.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for answer in answers:
        probability = answer.confidence if answer.confidence is not None else right.get(answer.model)
        weights[answer.key] += log_odds(probability) if probability is not None else 1e-6
    best = max(weights, key=lambda key: weights[key])
    holders = [answer for answer in answers if answer.key == best]
    total = sum(math.exp(weight - weights[best]) for weight in weights.values())
    return Won(holders[0].model, len(holders), 1 / total)
