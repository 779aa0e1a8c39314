"""Alarms of models that cost money: one begins where a model fails again and again, and ends once it has answered."""

import re
from collections.abc import Iterator

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.models import ModelCalled


def model_alarms(event: ModelCalled) -> Iterator[AlarmRaised | AlarmResolved]:
    """Raise or resolve the alarms of a call. A failure by itself raises none, and only an answer resolves one."""
    model = f"{event.provider}/{event.requested_model or event.model}"
    token = re.sub(r"[^A-Za-z0-9_-]", "-", model)
    alarm = f"model-failing-{token}"
    if event.former:
        text = f"{model} was {event.former}, and is {event.model} now: segment {event.segment}"
        yield AlarmRaised(alarm=f"model-changed-{event.segment}", severity="warning", message=text)
    if event.health == "miscounts":
        text = f"{model} counts tokens that cannot be: such calls are charged with all that was reserved for them."
        yield AlarmRaised(alarm=f"model-miscounts-{token}", severity="warning", message=text, facts={"model": model})
    if event.health == "failing":
        text = f"{model} failed again and again, at last with {event.error}: it is left alone for a while."
        facts = {"model": model, "role": event.role, "error": event.error}
        yield AlarmRaised(alarm=alarm, severity="warning", message=text, facts=facts)
    elif event.health == "well":
        yield AlarmResolved(alarm=alarm, message=f"{model} answers again.")
