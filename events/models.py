"""Calls of remote models. Local calls are inside ``TaskProposed`` and ``TaskAttempted``."""

from events.base import Event
from events.values import Usage


class ModelCalled(Event):
    """A remote model was called: which one, how long it took, how many tokens, and how it ended."""

    task: str = "-"
    attempt: str = "-"
    provider: str
    model: str
    role: str
    finish: str
    usage: Usage
