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

    async def require(self, run: str, asked: str) -> None:
        """Raises ModelChangedError where the model ``asked`` for was refused in ``run``: nothing is sent."""
        held = await self._last(run, asked)
        if held and held.refused:
            raise _changed(asked, held.served, held.refused)

    async def follow(self, run: str, asked: str, vendor: str, served: Served) -> tuple[int, str]:
        """Note what ``vendor`` served for ``asked``; returns its segment, and what was served before where that is
        another model.

        Raises:
            ModelChangedError: it is something else, and changes are refused.
        """
        now = name_of(served.host or vendor, served.model, served.quantization)
        held = await self._last(run, asked)
        if held is None or held.served == now:
            self._held[run, asked] = held or Pinned(now, 0)
            return (held.segment if held else 0), ""
        if self._on_change == "refuse":
            self._held[run, asked] = Pinned(held.served, held.segment, refused=now)
            raise _changed(asked, held.served, now)
        self._held[run, asked] = Pinned(now, held.segment + 1)
        return held.segment + 1, held.served

    async def _last(self, run: str, asked: str) -> Pinned | None:
        if (run, asked) not in self._held:
            for name, pinned in (await self._logged(run)).items():
                self._held.setdefault((run, name), pinned)
            self._held.setdefault((run, asked), None)
        return self._held[run, asked]

    async def _logged(self, run: str) -> dict[str, Pinned]:
        """What the log has of ``run``, by the model asked for."""
        found: dict[str, Pinned] = {}
        try:
            async with aclosing(self._log.read(run, (ModelCalled.__name__,))) as calls:  # type: ignore[type-var]
                async for recorded in calls:
                    event = recorded.event
                    if isinstance(event, ModelCalled) and event.finish != "error" and event.cache != "hit":
                        name = name_of(event.host or event.provider, event.model, event.quantization)
                        found[f"{event.provider}/{event.asked}"] = Pinned(name, event.segment)
        except NotFoundError:  # in an archive: it begins anew
            pass
        return found


def name_of(host: str, model: str, quantization: str) -> str:
    """What was served, as it is compared and shown."""
    return f"{host}/{model}" + (f" ({quantization})" if quantization else "")


def _changed(asked: str, before: str, now: str) -> ModelChangedError:
    why = f"{asked} was {before} in this run, and is {now} now."
    fix = "Set router.pin = segment to go on with it; each change is then recorded."
    return ModelChangedError("The model that this run began with", why, fix)
