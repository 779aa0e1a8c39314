"""Part of the rim: a run that begins where only a cold sandbox works is made smaller before anything is recorded."""

from agent0.assembly.runtime.app import App
from agent0.config.loading import config_of
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.experiments.smaller_run import difference, shrunk
from agent0.settings import RunConfig

_LACKING = "`agent0 sandbox check` says what a warm sandbox lacks."


def fitted(app: App, begin: Recorded) -> tuple[Recorded, str]:
    """Make ``begin`` small enough for a machine without a warm sandbox, but for what a person typed. Returns it and a
    notice, empty where nothing changed."""
    backend = getattr(app.ports.get("sandbox"), "backend", "")
    if not isinstance(begin.event, RunStarted) or not backend.endswith("-cold"):
        return begin, ""
    asked_config = RunConfig.recorded(begin.event.config)
    smaller = shrunk(asked_config, app.settings.typed)
    config, digest = config_of(smaller)
    chosen = app.settings.sandbox.backend == backend
    notice = (
        f"{f'sandbox.backend is {backend}' if chosen else f'Only {backend} works here'}: every tool call starts a "
        "process of its own, and imports what it needs. "
    )
    notice += "With auto a warm sandbox is tried first." if chosen else _LACKING
    if changed := difference(asked_config, smaller):
        notice += f" This run is made smaller: {changed}."
    event = begin.event.model_copy(update={"config": config, "config_sha": digest})
    return begin.model_copy(update={"event": event}), notice
