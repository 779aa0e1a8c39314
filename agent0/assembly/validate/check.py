"""One thing that is looked at before a run."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``warn``: the tiny profile runs nevertheless."""

    name: str
    state: State
    detail: str
    fix: str = ""
