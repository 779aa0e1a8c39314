"""Any moment of a run: its state then, a run that begins there, and whether today's code would decide the same."""

from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.cli.runs import positions
from agent0.settings import RunConfig

At = Annotated[str, typer.Option("--at", metavar="WHERE", help=f"{positions.HELP}; 0: the run's end.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting of the run that is another.")
]


def show_at(run: str, at: str, as_json: bool) -> None:
    """Print the whole state of ``run`` as of the event that ``at`` names."""
    from agent0.assembly.replay.forks import describe_state, state_at
    from agent0.assembly.replay.state_snapshots import state_snapshots
    from agent0.assembly.runtime.read_models import sound_log

    name = console.run_id(run)
    seq = positions.sequence(name, at)

    async def work() -> dict[str, Any]:
        async with sound_log(settings := console.settings()) as log:
            return describe_state(await state_at(log, name, seq, state_snapshots(settings, log)))

    state = console.run_async(work)
    if as_json:
        console.data(state)
        return
    arms = [{"arm": key, **arm} for key, arm in state.pop("arms").items()]
    console.record({key: ", ".join(v) if isinstance(v, list) else v for key, v in state.items()}, False)
    if arms:
        console.table(arms, False, title="\nWhat curriculum remembers")


def fork(
    run: console.Run = "LAST",
    at: At = "0",
    pairs: Changes = None,
    plugin: console.Plugin = None,
    name: Annotated[str, typer.Option(help="A name for people; its id is made from it.")] = "",
    detach: Annotated[bool, typer.Option("--detach", "--no-wait", help="Only begin it.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for what the run needs and this machine lacks.")] = False,
    as_json: console.Json = False,
) -> None:
    """Begin a run in the middle of another, under other settings. The past is shared, not copied; what was under way
    is asked for again. Another student model is scored first, and trains on nothing of the former."""
    from agent0.assembly.log.access import open_log
    from agent0.assembly.replay.forks import fork as forked
    from agent0.assembly.replay.forks import pairs_of
    from agent0.cli.runs.foreground import follow_to_end, require

    settings = console.settings(plugins=plugin)
    source, changes = console.run_id(run), pairs_of(pairs)
    seq = positions.sequence(source, at)

    async def work() -> Any:
        async with open_log(settings) as log:
            begin = await forked(settings, log, source, seq, changes, name)
            if detach:
                await log.append([begin])
            return begin

    begin = console.run_async(work)
    if detach:
        console.record({"run": begin.run, "parent": source, "parent_seq": begin.event.parent_seq}, as_json)
        return
    require(settings, RunConfig.recorded(begin.event.config), wait)
    news = f"Run {begin.run}: from {source} at event {begin.event.parent_seq}, data in {settings.home}"
    follow_to_end(settings, begin.run, begin, news, with_handlers=True, as_json=as_json, wait=wait)


def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A run.")],
    right: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    as_json: console.Json = False,
) -> None:
    """What two runs differ in: their settings, where they stand, and where they part."""
    from agent0.assembly.replay.forks import compare_states
    from agent0.assembly.runtime.read_models import sound_log

    names, settings = (console.run_id(left), console.run_id(right)), console.settings()

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
    from agent0.report.columns import named_iteration

    heads = names
    if console.screen() is not None:
        heads = ("A", "B")
        console.text("\n".join(f"{head}  {name}" for head, name in zip(heads, names, strict=True)) + "\n")
    parts = [("setting ", differences["settings"]), ("", differences["state"])]
    pairs = [(f"{kind}{key}", pair) for kind, part in parts for key, pair in part.items()]
    counted = [(what, map(named_iteration, pair) if what == "iteration" else pair) for what, pair in pairs]
    console.table([dict(zip(("what", *heads), (what, *pair), strict=True)) for what, pair in counted], False)


def check(run: console.Run = "LAST", plugin: console.Plugin = None, as_json: console.Json = False) -> None:
    """Ask today's code for every decision of a run again; the first that would be another is named."""
    from agent0.assembly.replay.forks import check_run
    from agent0.assembly.runtime.read_models import sound_log

    settings, name = console.settings(plugins=plugin), console.run_id(run)

    async def work() -> Any:
        async with sound_log(settings) as log:
            return await check_run(log, name)

    checked = console.run_async(work)
    count, difference = checked.decisions, checked.first
    result = {
        "run": name,
        "decisions": count,
        "same": difference is None,
        "first": vars(difference) if difference else None,
    }
    result["redacted"] = checked.redacted
    if as_json:
        console.data(result)
    elif difference is None:
        console.text(f"{count} decisions of {name}: today's code decides each of them alike.")
        if checked.redacted:
            console.text(
                f"Those from event {checked.redacted:,} on are left out: they rest on what was redacted there."
            )
    else:
        console.record(
            {key: value for key, value in vars(difference).items() if key not in ("recorded", "today")}, False
        )
        rows = [{"field": k, "recorded": v, "today": difference.today.get(k)} for k, v in difference.recorded.items()]
        console.table(rows, False, title="\nWhat differs")
        console.say(f"Decision {count} of {name} would be another today.", "yellow")
    if difference is not None:
        raise typer.Exit(1)
