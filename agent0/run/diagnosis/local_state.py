"""What a machine knows of the runs that it carries, beside their events."""

from collections.abc import Mapping
from typing import Any, TypedDict


class LocalState(TypedDict, total=False):
    """What this machine says of runs now, where somebody asked it: bytes of disk that are free and that a run needs at
    least, why the ``log`` cannot be reached and bytes that it may still store, seconds since the run's last event,
    whether any process uses the log, what a running run waits for (``first_word``: of a model server), where in a
    user's file it stands, the limits of the sandbox, and paths of plugins by sha256."""

    disk_free: int | None
    disk_least: int
    log: str
    log_left: int
    idle_s: float
    carried: bool | None
    waits: str
    first_word: str
    user_code: Mapping[str, Any] | None
    sandbox: Mapping[str, float]
    plugins: Mapping[str, str]
