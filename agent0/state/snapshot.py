"""A run's state as text that is kept beside the log: read back it is the same state, or it is not written."""

import json
from functools import cache

from pydantic import TypeAdapter
from pydantic_core import from_json

from agent0.settings import RunConfig
from agent0.state.run_state import RunState


def to_text(state: RunState) -> str:
    """JSON of ``state`` without its settings, which ``RunStarted`` holds, but for the addresses of its servers.

    Raises:
        ValueError: it would not come back as it is, as where an event holds 1 and a state's field a float.
    """
    text = _text(state)
    again = from_text(text, state.config)
    if _text(again) != text or again.digest != state.digest:
        raise ValueError(f"the state of {state.run} at event {state.seq} cannot be written as text")
    return text


def from_text(text: str, config: RunConfig) -> RunState:
    """The state that ``to_text`` wrote, of a run with ``config``.

    Raises:
        ValueError: it is none.
    """
    raw = from_json(text)
    if not isinstance(raw, dict):
        raise ValueError("a state is a JSON object")
    servers = raw.pop("servers", {})
    return _adapter().validate_python(raw | {"config": config.served_by(servers)})


@cache
def _adapter() -> TypeAdapter[RunState]:
    return TypeAdapter(RunState)


def _text(state: RunState) -> str:
    plain: dict[str, object] = _adapter().dump_python(state, mode="json", exclude={"config"})
    sets = {"pending": sorted(state.pending), "failures": sorted(state.failures)}
    if state.learning and isinstance(learning := plain["learning"], dict):
        learning["pending"] = sorted(state.learning.pending)
    return json.dumps(plain | sets | {"servers": state.config.servers}, separators=(",", ":"))
