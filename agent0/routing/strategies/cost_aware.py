"""Strategy: money is spent where the expected gain is worth it."""

from agent0.routing.strategies import Option, Question, RoutingStep, belief, first, strategy, surest


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
