"""Calls of remote models. Local calls are inside ``TaskProposed`` and ``TaskAttempted``."""

from events.base import Event
from events.values import Usage


class ModelCalled(Event):
    """A remote model was asked: who, how long, how many tokens, with what end."""

    task: str = "-"
    attempt: str = "-"
    provider: str
    model: str
    role: str
    finish: str
    usage: Usage
