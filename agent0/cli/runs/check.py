"""Whether today's code would decide a run the same."""

from typing import Any

import typer

from agent0.assembly.replay.forks import check_run
from agent0.assembly.runtime.read_models import sound_log
from agent0.cli import console, flags, lookup


def check(run: console.Run = "LAST", plugin: console.Plugin = None, as_json: console.Json = False) -> None:
    """Ask today's code for every decision of a run again; the first that would be another is named."""
    settings, name = flags.settings(plugins=plugin), lookup.run_id(run)

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
