"""Any moment of a run: its state then, and what two runs differ in."""

from typing import Annotated, Any

import typer

from agent0.assembly.replay.past_states import compare_states, describe_state, state_at
from agent0.assembly.replay.state_snapshots import state_snapshots
from agent0.assembly.runtime.read_models import sound_log
from agent0.cli import console, flags, lookup
from agent0.cli.layout import named_iteration
from agent0.cli.runs import positions


def show_at(run: str, at: str, as_json: bool) -> None:
    """Print the whole state of ``run`` as of the event that ``at`` names."""
    name = lookup.run_id(run)
    seq = positions.sequence(name, at)

    async def work() -> dict[str, Any]:
        async with sound_log(settings := flags.settings()) as log:
            return describe_state(await state_at(log, name, seq, state_snapshots(settings, log)))

    state = console.run_async(work)
    if as_json:
        console.data(state)
        return
    arms = [{"arm": key, **arm} for key, arm in state.pop("arms").items()]
    console.record({key: ", ".join(v) if isinstance(v, list) else v for key, v in state.items()}, False)
    if arms:
        console.table(arms, False, title="\nWhat curriculum remembers")


def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A run.")],
    right: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    as_json: console.Json = False,
) -> None:
    """What two runs differ in: their settings, where they stand, and where they part."""
    names, settings = (lookup.run_id(left), lookup.run_id(right)), flags.settings()

    async def work() -> dict[str, Any]:
        async with sound_log(settings) as log:
            return await compare_states(settings, log, *names)

    differences = console.run_async(work)
    if as_json:
        console.data(differences)
        return
    _show_difference(differences, names)
    if differences["common_until"]:
        console.text(f"They share everything up to event {differences['common_until']}.")


def _show_difference(differences: dict[str, Any], names: tuple[str, str]) -> None:
    """A line for each difference. On a terminal, where two ids leave no room, the runs are A and B."""
    heads = names
    if console.screen() is not None:
        heads = ("A", "B")
        console.text("\n".join(f"{head}  {name}" for head, name in zip(heads, names, strict=True)) + "\n")
    parts = [("setting ", differences["settings"]), ("", differences["state"])]
    pairs = [(f"{kind}{key}", pair) for kind, part in parts for key, pair in part.items()]
    counted = [(what, map(named_iteration, pair) if what == "iteration" else pair) for what, pair in pairs]
    console.table([dict(zip(("what", *heads), (what, *pair), strict=True)) for what, pair in counted], False)
