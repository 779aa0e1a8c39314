"""Strategy: one number decides between the model that is meant and the next one."""

from agent0.routing.strategies import Question, RoutingStep, first, is_sure, shown, strategy


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
