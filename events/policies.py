"""Changes of the tool policy over time. They belong to no run: their run token is ``RUN``."""

from typing import Literal

from agent0.events.base import Event

RUN = "policy"
"""Stands where a run's id would: a change holds for runs that are started after it."""

PolicyKind = Literal["executable", "module", "host", "method", "sql", "path"]


class PolicyChanged(Event):
    """A user allowed or denied something to the tools of a profile's runs (``agent0 sandbox allow|deny``)."""

    profile: str
    kind: PolicyKind
    name: str
    allowed: bool
    reason: str = ""
