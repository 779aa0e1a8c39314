"""Pinning: which model a vendor served in a run, as the log has it, and what happens where that changes."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from agent0.errors import ModelChangedError, NotFoundError
from agent0.events.models import ModelCalled
from agent0.infra.log.event_log import Log
from agent0.ports.models import Served

OnChange = Literal["segment", "refuse"]


@dataclass(frozen=True)
class Pinned:
    """What was served at last, and the number of the segment of the run that it belongs to. ``refused``: nothing more
    is asked."""

    served: str
    segment: int
    refused: str = ""


class Pins:
    """The models that runs have had so far. A change begins a new segment, or is refused."""

    def __init__(self, log: Log, on_change: OnChange) -> None:
        self._log, self._on_change = log, on_change
        self._held: dict[tuple[str, str], Pinned | None] = {}

    async def require(self, run: str, model: str) -> None:
        """Raises ModelChangedError where the model ``model`` for was refused in ``run``: nothing is sent."""
        pinned = await self._last(run, model)
        if pinned and pinned.refused:
            raise _changed(model, pinned.served, pinned.refused)

    async def follow(self, run: str, model: str, vendor: str, served: Served) -> tuple[int, str]:
        """Note what ``vendor`` served for ``model``; returns its segment, and what was served before where that is
        another model.

        Raises:
            ModelChangedError: it is something else, and changes are refused.
        """
        name = name_of(served.host or vendor, served.model, served.quantization)
        pinned = await self._last(run, model)
        if pinned is None or pinned.served == name:
            self._held[run, model] = pinned or Pinned(name, 0)
            return (pinned.segment if pinned else 0), ""
        if self._on_change == "refuse":
            self._held[run, model] = Pinned(pinned.served, pinned.segment, refused=name)
            raise _changed(model, pinned.served, name)
        self._held[run, model] = Pinned(name, pinned.segment + 1)
        return pinned.segment + 1, pinned.served

    async def _last(self, run: str, model: str) -> Pinned | None:
        if (run, model) not in self._held:
            for name, pinned in (await self._logged(run)).items():
                self._held.setdefault((run, name), pinned)
            self._held.setdefault((run, model), None)
        return self._held[run, model]

    async def _logged(self, run: str) -> dict[str, Pinned]:
        """What the log has of ``run``, by the model asked for."""
        pins: dict[str, Pinned] = {}
        try:
            async with aclosing(self._log.read(run, (ModelCalled.__name__,))) as calls:  # type: ignore[type-var]
                async for recorded in calls:
                    event = recorded.event
                    if isinstance(event, ModelCalled) and event.finish != "error" and event.cache != "hit":
                        name = name_of(event.host or event.provider, event.model, event.quantization)
                        pins[f"{event.provider}/{event.requested_model}"] = Pinned(name, event.segment)
        except NotFoundError:  # in an archive: it begins anew
            pass
        return pins


def name_of(host: str, model: str, quantization: str) -> str:
    """What was served, as it is compared and shown."""
    return f"{host}/{model}" + (f" ({quantization})" if quantization else "")


def _changed(model: str, before: str, after: str) -> ModelChangedError:
    why = f"{model} was {before} in this run, and is {after} now."
    fix = "Set router.pin = segment to go on with it; each change is then recorded."
    return ModelChangedError("The model that this run began with", why, fix)
