"""Strategy: two models, compared on different questions."""

from agent0.routing.strategies import Question, RoutingStep, strategy


@strategy("ab", "share", streams=True)
def ab(question: Question) -> RoutingStep:
    """Ask the second model about a share of the questions, drawn by question, and the first about the others."""
    if question.answers:
        return RoutingStep(give=question.answers[-1].model, reason="it was drawn")
    second = question.draw < question.rules.share and len(question.options) > 1
    return RoutingStep(ask=question.options[int(second)].model, reason=f"drawn for {'B' if second else 'A'}")
