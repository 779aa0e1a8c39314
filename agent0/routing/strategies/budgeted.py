"""Strategy: as ``threshold``, within an allowance for all questions together."""

from agent0.routing.strategies import Question, RoutingStep, strategy
from agent0.routing.strategies.threshold import threshold


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
