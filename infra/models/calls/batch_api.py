"""What a vendor's batch API does, whichever vendor's: requests go in under ids of ours, and answers come out."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol

from agent0.errors import RefusedError, ServerBusyError
from agent0.infra.models.calls.slots import BusyError
from agent0.ports.models import GenerateRequest, Generation


@dataclass(frozen=True)
class Failure:
    """A request of a batch that was not answered, and is not charged."""

    kind: str
    why: str = ""


class BatchRefusedError(RefusedError):
    """A vendor refused a batch as a whole: no request of it is answered or charged."""


class BatchApi(Protocol):
    """A vendor's batches. Errors are those of a single call of the vendor."""

    async def submit(self, requests: Mapping[str, GenerateRequest]) -> str:
        """Hand in ``requests`` by id; returns the vendor's id of the batch."""
        ...

    async def ended(self, batch: str) -> bool:
        """Whether nothing of ``batch`` will be answered any more that is not answered yet."""
        ...

    def results(self, batch: str) -> AsyncGenerator[tuple[str, Generation | Failure]]:
        """What came of each request, by id, in any order; one that is not among them was not answered.

        Raises:
            BatchRefusedError: the vendor refused the batch as a whole.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def busy_as_away(error: Exception, root: str) -> Exception:
    """``error``, or where the server at ``root`` is busy the error by which it is asked again."""
    if not isinstance(error, BusyError):
        return error
    return ServerBusyError(f"The server at {root}", str(error)[:300], "", error.after_s)
