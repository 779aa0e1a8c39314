"""Going back: the work folder as it was after an earlier call."""

from typing import Annotated

from pydantic import Field

from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import VALUES, Example
from agent0.tools.paths import mistaken, printable
from agent0.tools.snapshots import difference, inventory
from agent0.tools.workspace import Workspace

_SHOWN = 20


@tool(
    pure=False,
    states=VALUES,
    examples=[
        Example(
            {"call": 1},
            "The work folder is as it was after call 1. changed: a.txt",
            after=(
                ("write_file", {"path": "a.txt", "content": "good\n"}),
                ("write_file", {"path": "a.txt", "content": "worse\n"}),
            ),
        ),
        Example({"call": 0}, "The work folder is as it was at the start. Nothing changed."),
    ],
)
async def rollback(
    work: Workspace, call: Annotated[int, Field(ge=0), "number of one of your calls, counted from 1; 0: the start"]
) -> ToolResult:
    """Put your work folder back to what it was after one of your earlier calls. Every call you made counts, failed ones
    too; what came later is undone, and can be brought back the same way. Example: {"call": 2} or {"call": 0}
    """
    snapshots = [done.files for done in work.journal if not done.inner]
    if call > len(snapshots):
        return mistaken(f"call: you made {len(snapshots)} calls so far; it is one of 0 to {len(snapshots)}.")
    before, work.files = work.files, dict(snapshots[call - 1] if call else work.start or {})
    changes = difference(inventory(before), inventory(work.files))
    shown = [f"{change.kind}: {printable(change.path)}" for change in changes[:_SHOWN]]
    shown += [f"and {len(changes) - _SHOWN} more"] if len(changes) > _SHOWN else []
    where = f"after call {call}" if call else "at the start"
    output = f"The work folder is as it was {where}. {'; '.join(shown) or 'Nothing changed.'}"
    return ToolResult(state=ToolState.OK, output=output)
