"""Strategy: two models, compared on the same questions."""

from agent0.routing.strategies import Question, RoutingStep, first, strategy


@strategy("shadow", streams=True)
def shadow(question: Question) -> RoutingStep:
    """Give the first model's answer, and ask every other one for comparison only."""
    if not question.answers:
        return first(question)
    if question.open:
        return RoutingStep(ask=question.open[0].model, reason="for comparison", aside=True)
    return RoutingStep(give=question.answers[0].model, reason="the others were asked for comparison")
