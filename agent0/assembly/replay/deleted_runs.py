"""Part of the rim: a run that was deleted has its events, and nothing that they name."""

from typing import TYPE_CHECKING

from agent0.errors import OperationError
from agent0.events.runs import RunDeleted

if TYPE_CHECKING:
    from agent0.infra.log.event_log import Log


async def require_kept(log: "Log", run: str) -> None:
    """Require that ``run`` was not deleted.

    Raises:
        OperationError: it was.
    """
    async for deleted in log.read(run, [RunDeleted.__name__]):
        why = f"Its checkpoints and transcripts were thrown away at {deleted.time:%Y-%m-%d %H:%M}."
        raise OperationError(f"Run {run} is deleted.", why, "Its events stay: agent0 events tail --run " + run)
