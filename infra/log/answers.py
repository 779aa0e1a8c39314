"""What the server answers to an append: the sequence, or why it refuses."""

from typing import Any

from agent0.errors import DependencyError, LogError

_DUPLICATE = 10201
_NOT_NEWEST = frozenset({10071, 10164})
_AGAIN = frozenset({10008, 10158, 10176, 10210})
"""No leader just now; the same is just being stored; a batch that a lost connection or leader tore in two; too many
batches at once. The next try may do, or find it stored."""
_FULL = frozenset({10023, 10047, 10077, 10028, 10002})
"""Out of disk, of reserved storage or of the stream's own max_bytes: appending is refused, history is kept."""


class DuplicateError(Exception):
    """Some id of a batch is already stored, or another event of its subject came first."""


class AgainError(Exception):
    """The server refuses an append for this moment."""


def stored_at(answer: dict[str, Any]) -> int:
    """The sequence in a publish acknowledgement.

    Raises:
        DependencyError: no space. LogError: any other refusal.
    """
    if error := answer.get("error"):
        code, said = error.get("err_code"), error.get("description", "")
        if code == _DUPLICATE or code in _NOT_NEWEST:
            raise DuplicateError
        if code in _AGAIN:
            raise AgainError(said)
        if code in _FULL or error.get("code") == 503:
            fix = "Free disk space or raise nats.max_bytes, then run `agent0 log init`; nothing is lost."
            raise DependencyError("log", f"It refuses to store: {said}.", fix)
        raise LogError("The log refused an append.", f"{said} ({code}).", "Run `agent0 doctor`.")
    return int(answer["seq"])
