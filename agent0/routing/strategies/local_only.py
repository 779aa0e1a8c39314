"""Strategy: nothing is ever spent."""

from agent0.routing.strategies import Question, RoutingStep, strategy


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
