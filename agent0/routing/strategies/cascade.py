"""Strategy: from the cheapest model up, until one is sure (FrugalGPT, arXiv 2305.05176, section 3)."""

from agent0.routing.strategies import Question, RoutingStep, is_sure, shown, strategy, surest


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
