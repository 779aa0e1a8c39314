"""The checkpoints of a run, trained again from what is stored."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import TouchedCheckpoint, touched
from agent0.assembly.replay.compare_runs import gather
from agent0.assembly.replay.forks import pairs_of, roles_of
from agent0.assembly.replay.retrain import Retrain
from agent0.assembly.replay.retrain import retrain as train_again
from agent0.assembly.runtime.read_models import reading_log
from agent0.cli import console, flags, lookup
from agent0.cli.experiments.experiment import Name
from agent0.errors import ConfigError
from agent0.events.values import Role
from agent0.experiments.compare_runs import same_checkpoint
from agent0.report.score_answers import retrain_answer
from agent0.settings import Settings

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="An experiment, or a run.")]
Roles = Annotated[str, typer.Option(help="student, teacher, or student,teacher.")]
Purge = Annotated[list[str] | None, typer.Option("--purge", metavar="TASK", help="A task to leave out.")]
Imported = Annotated[
    str, typer.Option(metavar="PROFILE", help="Train on imported attempts, with the model and recipe of this profile.")
]
Evaluate = Annotated[bool, typer.Option(help="Score each new student on the validation tasks.")]


def retrain(
    source: Source,
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    roles: Roles = "student",
    purge: Purge = None,
    evaluate: Evaluate = True,
    imported: Imported = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Train a run's checkpoints again from what is stored: with the rewards of an experiment, another recipe
    (--set training.student.lr=…), or without some tasks. Nothing is generated again."""
    settings = flags.settings(imported or None, plugins=plugin)
    options = Retrain(source, name, pairs_of(pairs), tuple(purge or ()), roles_of(roles), evaluate, bool(imported))
    _retrain(settings, options, full, as_json)


def purge_task(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task to train without.")],
    run: console.Run = "LAST",
    name: Name = "",
    roles: Roles = "student",
    evaluate: Evaluate = True,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Train a run's checkpoints again as if one of its tasks had never been. Checkpoints of a role that --roles does
    not name stay; those that saw the task are listed."""
    options = Retrain(run, name or f"without-{task}", {}, (task,), roles_of(roles), evaluate)
    _retrain(flags.settings(), options, full, as_json)


def _retrain(settings: Settings, options: Retrain, full: bool, as_json: bool) -> None:
    if not options.name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    request, purged = replace(options, source=lookup.of_newest(options.source)), options.purged
    results = console.run_async(lambda: train_again(settings, request, (lambda _: None) if as_json else console.say))
    stay = [name for task in purged for name in _staying(settings, results["run"], task, request.roles)]
    scored = options.evaluate and not options.imported and "student" in request.roles
    held_out = _beside_its_own(settings, results["run"], results["experiment"]) if scored else None
    whole = {**results, "stay": stay, "held_out": held_out}
    answer = retrain_answer(whole, purged)
    if as_json:
        console.data({**whole, "answer": answer})
        return
    console.print_lines(answer)
    if full:
        console.table(results["checkpoints"], False)
    if stay:
        others = "student,teacher"
        console.say(f"These saw what was left out, and stay (--roles {others}): {', '.join(stay)}", "yellow")


def _beside_its_own(settings: Settings, run: str, experiment: str) -> dict[str, object] | None:
    """The last student, retrained, compared with the run's own, where both answered the same validation tasks."""
    original, again = console.run_async(lambda: gather(settings, [run, experiment]))
    return same_checkpoint(original, again)


def _staying(settings: Settings, run: str, task: str, roles: Sequence[Role]) -> list[str]:
    """Checkpoints of the run's other roles whose training saw ``task``."""

    async def work() -> list[TouchedCheckpoint]:
        async with reading_log(settings) as log:
            return await touched(log, artifact_store(settings), run, task)

    rows = console.run_async(work)
    return [f"{row['run']}/{row['checkpoint']}" for row in rows if row["run"] == run and row["role"] not in roles]
