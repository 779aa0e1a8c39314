"""Strategy: two models, compared on the same questions."""

from agent0.routing.strategies import Question, Step, first, strategy


@strategy("shadow", streams=True)
def shadow(question: Question) -> Step:
    """Give the first model's answer, and ask every other one for comparison only."""
    if not question.answers:
        return first(question)
    if question.open:
        return Step(ask=question.open[0].model, reason="for comparison", aside=True)
    return Step(give=question.answers[0].model, reason="the others were asked for comparison")
