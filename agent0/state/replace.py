"""``dataclasses.replace`` in a fraction of its time: a fold replaces fields at every event."""

from typing import TYPE_CHECKING, Any

__all__ = ["changed"]

if TYPE_CHECKING:
    from dataclasses import replace as changed
else:

    def changed(instance: Any, /, **fields: Any) -> Any:
        """``dataclasses.replace`` in a fraction of its time, for dataclasses that check and derive nothing.

        Raises:
            TypeError: a name that is no field.
        """
        if not fields.keys() <= type(instance).__dataclass_fields__.keys():
            unknown = ", ".join(sorted(fields.keys() - type(instance).__dataclass_fields__.keys()))
            raise TypeError(f"{type(instance).__name__} has no field {unknown}")
        new = object.__new__(type(instance))
        vars(new).update(vars(instance), **fields)
        return new
