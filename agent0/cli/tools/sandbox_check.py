"""Whether a backend of the sandbox holds."""

import typer

from agent0.cli import console, flags
from agent0.infra.sandbox import survey


def check(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Put every backend to the whole self-test: each probe with what it saw. Exit 5 where none passes."""
    settings = flags.settings(profile, pairs)
    candidates = console.run_async(lambda: survey(settings.sandbox))
    if as_json:
        rows = [{**vars(candidate), "probes": [vars(probe) for probe in candidate.probes]} for candidate in candidates]
        console.data(
            {"chosen": next((candidate.name for candidate in candidates if candidate.chosen), None), "candidates": rows}
        )
    for candidate in () if as_json else candidates:
        console.text(
            f"{candidate.name}: {'chosen' if candidate.chosen else candidate.why or 'passes, one before it is chosen'}"
        )
        rows = [{"probe": p.name, "holds": "yes" if p.ok else "NO", "saw": p.detail} for p in candidate.probes]
        console.table(rows, False)
        if candidate.fix:
            console.text(f"fix: {candidate.fix}\n")
    if not any(candidate.chosen for candidate in candidates):
        console.say("No backend passes: every tool call is refused.", "red")
        raise typer.Exit(5)
