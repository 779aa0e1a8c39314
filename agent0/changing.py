"""A frozen value with some fields changed: what a fold does at every event, so it must cost next to nothing."""

from typing import TYPE_CHECKING, Any

__all__ = ["changed"]

if TYPE_CHECKING:
    from dataclasses import replace as changed
else:

    def changed(held: Any, /, **fields: Any) -> Any:
        """``dataclasses.replace`` in a sixth of its time, for dataclasses that check and derive nothing when they are
        made. Field names are checked by mypy only."""
        new = object.__new__(type(held))
        vars(new).update(vars(held), **fields)
        return new
