"""``agent0 run diet``: whose words a run's checkpoints were trained on."""

from dataclasses import asdict

from agent0.assembly.models.diet import diets
from agent0.assembly.runtime.read_models import sound_log
from agent0.cli import console
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.runs import show_run
from agent0.training.diet import Diet, total


def diet(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Of all tokens that a run trained on: how many the student wrote as they stand, how many are of what its base was
    taught, and how many of anything else, for every checkpoint."""
    with console.tables() as db:
        row = show_run(db, run)
    name, provider = row["run"], row["config"]["student"]["provider"]
    entries = console.run_async(lambda: _read(name))
    rows, summed = [asdict(entry) for entry in entries], total(entries)
    if as_json:
        console.data({"run": name, "checkpoints": rows, "total": summed})
        return
    console.table(rows, as_json)
    if not summed["tokens"]:
        console.say(f"Run {name} has trained nothing.")
        return
    written, taught, other = (f"{100 * summed[f'{source}_share']:.1f} %" for source in ("own", "taught", "other"))
    console.say(
        f"Of {summed['tokens']:,} tokens learned, {written} were written by the model in training as they stand, "
        f"{taught} are of what its base was taught, {other} of anything else."
    )
    if provider == "scripted":
        console.say("Its model is scripted: it writes from the solutions of the families themselves.")
    if summed["strange"]:
        console.say(f"{summed['strange']} of the named answers are not of this run's own checkpoints.")


async def _read(run: str) -> list[Diet]:
    settings = console.settings()
    async with sound_log(settings) as log:
        return await diets(log, FileArtifacts(settings.home), run)
