"""Strategy: nothing is ever spent."""

from agent0.routing.strategies import Question, Step, strategy


@strategy("local_only", streams=True)
def local_only(question: Question) -> Step:
    """Ask the first model that costs nothing, and give its answer."""
    if question.answers:
        return Step(give=question.answers[-1].model, reason="it costs nothing")
    free = next((option for option in question.options if option.cost == 0), None)
    return Step(ask=free.model, reason="it costs nothing") if free else Step(reason="every model costs money")
