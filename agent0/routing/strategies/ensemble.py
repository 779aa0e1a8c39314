"""Strategy: every model is asked, and the votes are weighed."""

from agent0.routing.strategies import Question, RoutingStep, strategy
from agent0.routing.vote import weigh


@strategy("ensemble")
def ensemble(question: Question) -> RoutingStep:
    """Ask every model, and give the answer with the most weight: each vote counts by the log-odds of being right."""
    if question.open:
        return RoutingStep(ask=question.open[0].model, reason="every model is asked")
    won = weigh(question.answers, {option.model: option.right for option in question.options})
    return RoutingStep(
        give=won.model, reason=f"{won.votes} of {len(question.answers)} votes, probability {won.probability:.2f}"
    )
