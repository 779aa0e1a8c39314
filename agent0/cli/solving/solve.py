"""Work on the user's repository: copied into the sandbox, shown with the votes on it, written once accepted."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import typer

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.solving.repository_copy import RepositoryCopy, read_repository
from agent0.assembly.solving.solutions import (
    RepositorySolution,
    SolutionRequest,
    carry_solution,
    read_solution,
    submission_of,
)
from agent0.cli import console, flags, lookup
from agent0.cli.batches.batch import StandIns
from agent0.cli.models.partner import partner
from agent0.cli.routing.evaluate import strategy_pairs
from agent0.errors import ConfigError, GateError
from agent0.events.base import Recorded
from agent0.events.values import SOLVING
from agent0.projections.submissions import list_submissions
from agent0.settings import Settings
from agent0.verification.solutions.repository_job import Verb

ROUTED = "router/student"
"""The model of the settings, with those that stand in for it."""
NAMED = 5
"""Files that a line names."""
STOPPING = "Stopping; each turn that ended is stored. Go on: agent0 solve resume {}"
Id = Annotated[str, typer.Argument(metavar="ID", help="Of the work: agent0 solve list.")]
Folder = Annotated[Path, typer.Argument(metavar="PATH", help="A folder with Python files; it is copied.")]
Check = Annotated[str, typer.Option(help="A command line that says whether the code is right.")]
Diff = Annotated[
    str, typer.Option(metavar="BASE..HEAD", help="Look at what changed between two versions that git has.")
]
ModelName = Annotated[
    str,
    typer.Option(
        help="tiny, a name of the catalogue or a server, folder, GGUF file; RUN/CHECKPOINT, RUN; router/student: that "
        "of the settings."
    ),
]
Provider = Annotated[str | None, typer.Option(help="Whose model it is: ollama, openai, transformers…")]
Strategy = Annotated[str, typer.Option(help="Who takes which turn: agent0 router strategies.")]
Budget = Annotated[
    float | None, typer.Option(min=0, metavar="USD", help="What its model calls may cost; at its end it stops.")
]
Less = Annotated[
    int, typer.Option(min=1, max=1000, help="By how much branches and repeated statements together must fall.")
]
Dirty = Annotated[bool, typer.Option("--dirty", help="Take along what is not committed.")]
Needs = Annotated[
    list[str] | None, typer.Option(metavar="PACKAGE", help="A package that the check imports; may be given again.")
]
Timeout = Annotated[float, typer.Option(min=1, max=3600, help="Seconds that the check may take.")]
Seed = Annotated[int, typer.Option(min=0, help="Another one is another attempt.")]
Accept = Annotated[bool, typer.Option("--accept", help="Write the changes without asking where no vote is against.")]


def _work(
    verb: Verb, path: Folder, check: Check = "pytest -q", diff: Diff = "", model: ModelName = "",
    provider: Provider = None, with_: StandIns = None, strategy: Strategy = "", budget: Budget = None, less: Less = 1,
    accept: Accept = False, dirty: Dirty = False, needs: Needs = None, timeout: Timeout = 120.0, seed: Seed = 0,
    profile: console.Profile = None, set_: console.Set = None, plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:  # fmt: skip
    copy = read_repository(path, diff)
    _say_copy(copy, dirty)
    named = {"plugins": flags.plugin_paths(plugin), "router__caps__run": budget}
    pairs = flags.overrides([*(set_ or ()), *strategy_pairs(with_, strategy)], **named)
    settings, adapter, name = partner("" if model == ROUTED else model, provider, profile, pairs)
    run, _, checkpoint = name.partition("/")
    request = SolutionRequest(verb, check, timeout, tuple(needs or ()), seed, less)
    student = (run, checkpoint or "base", adapter)
    begin = submission_of(settings.run, artifact_store(settings), request, copy, student, folder=str(copy.folder))
    _carried(settings, begin, begin.run, accept, as_json)


def _say_copy(copy: RepositoryCopy, dirty: bool) -> None:
    """Say what is left out of a copy.

    Raises:
        ConfigError: something in it is not committed, and nobody said that it may be taken along.
    """
    for name, reason in list(copy.left_out.items())[:NAMED]:
        console.say(f"Left out: {console.one_line(name)} ({reason}).")
    if (more := len(copy.left_out) - NAMED) > 0:
        console.say(f"… and {more} more.")
    if not copy.dirty:
        return
    named = f"{', '.join(copy.dirty[:NAMED])}{' …' if len(copy.dirty) > NAMED else ''}"
    if not dirty:
        why = f"{len(copy.dirty)} files: {named}."
        raise ConfigError(f"{copy.folder} has what is not committed.", why, "Commit it, or take it along: --dirty")
    console.say(f"Taken along, not committed: {named}.")


def _verb(declared: Callable[[], None]) -> Callable[..., None]:
    """The command of a kind of work, named as it is, with the options that all have."""
    (verb,) = (verb for verb in get_args(Verb) if verb == declared.__name__)
    parameters = [*inspect.signature(_work).parameters.values()][1:]
    parameters = [each for each in parameters if each.name != "less" or verb == "refactor"]

    def command(**values: object) -> None:
        _work(verb, **values)  # type: ignore[arg-type]  # as its signature says

    command.__doc__, command.__name__ = declared.__doc__, verb
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@_verb
def fix() -> None:
    """Repair code whose check fails. Votes: the check passes, and fails again without any hunk of the change. Exit code
    0: solved; 1: the check does not serve, or the work was given up; 2: a wrong path, setting or option; 3: a vote is
    against it; 5: a model or the sandbox is away, or a budget used up."""


@_verb
def test() -> None:
    """Write tests. Votes: they pass three times, none of them on code whose functions do nothing, and they reject wrong
    versions of the code (mutations) that the tests before miss. Exit codes as for fix."""


@_verb
def refactor() -> None:
    """Make code simpler. Votes: the check passes; branches and repeated statements became fewer (--less) and the code
    not longer by a tenth; no public name is gone; public functions of changed files give what they gave, where calls
    can be drawn for them: like those in the repository, by annotation, or of any kind. Exit codes as for fix."""


@_verb
def document() -> None:
    """Write docstrings. Votes: nothing else changed; every public name has one of its own that says more than the name
    and describes (:param x:) no parameter that is not there; its doctests run and pass, and so does the check. Whether
    prose is true is not judged. Exit codes as for fix."""


@_verb
def review() -> None:
    """Name defects by file and line. A call that runs this line and raises (no TypeError), or with --diff gives another
    value than in BASE, confirms one; others are told as unconfirmed. Exit code 3 where a defect is confirmed, or it is
    no review; else as for fix."""


def resume(
    id_: Id, accept: Accept = False, profile: console.Profile = None, set_: console.Set = None,
    plugin: console.Plugin = None, as_json: console.Json = False,
) -> None:  # fmt: skip
    """Go on with work that was stopped, behind the last turn that ended; its command again does the same."""
    settings = flags.settings(profile, set_, plugins=plugin)
    _carried(settings, None, id_, accept, as_json)


def apply(id_: Id, as_json: console.Json = False) -> None:
    """Write the changes of work that is done into its repository. What was changed there meanwhile is not written
    over. Exit code 3 where a vote is against them."""
    settings = flags.settings()
    solution = console.run_async(lambda: read_solution(settings, id_))
    _show_written(solution, solution.apply(), as_json)


def list_(limit: console.Limit = 20, as_json: console.Json = False) -> None:
    """Work on repositories, newest first: how it stands, and its ids."""
    with lookup.tables() as db:
        rows = console.limited(
            lambda n: [row for row in list_submissions(db, limit=n) if row["domain"] == SOLVING], limit
        )
    labels = {1: "yes", 0: "no"}
    named = [
        {**row, "id": row["submission"], "work": row["question"], "holds": labels.get(row["correct"])} for row in rows
    ]
    console.table(named, as_json, ("id", "work", "status", "holds", "reason", "student", "submitted"))


def _carried(settings: Settings, begin: Recorded | None, run: str, accept: bool, as_json: bool) -> None:
    console.say(f"Work {run} on a copy, in the sandbox; nothing is written before you accept it.")
    solution = console.run_async(lambda: carry_solution(settings, begin, run, console.say), STOPPING.format(run))
    if not as_json:
        _show(solution)
    writes = solution.solved and not solution.is_review and (accept or _agreed(solution, as_json))
    written = solution.apply() if writes else []
    if as_json:
        console.data({**solution.as_row(), "written": written})
    elif writes:
        _show_written(solution, written, as_json=False)
    _conclude(solution, accepted=writes)


def _agreed(solution: RepositorySolution, as_json: bool) -> bool:
    """Whether a person at a terminal accepts the changes that they were shown."""
    if as_json or not sys.stdin.isatty():
        return False
    return typer.confirm(f"Write this into {console.clean(solution.job.folder)}?", default=False, err=True)


def _show(solution: RepositorySolution) -> None:
    """Print the difference and the votes."""
    if solution.diff:
        console.text(solution.diff.rstrip("\n"))
    labels = {True: "yes", False: "no", None: "not shown"}
    rows = [{"vote": vote.check, "holds": labels[vote.correct], "reason": vote.reason} for vote in solution.votes]
    console.table(rows, False, ("vote", "holds", "reason"))


def _show_written(solution: RepositorySolution, written: list[str], as_json: bool) -> None:
    if as_json:
        console.data({"id": solution.id, "written": written})
    elif written:
        console.text(f"Written into {solution.job.folder}: {', '.join(written)}")
    else:
        console.text(f"{solution.job.folder} has these changes already.")


def _conclude(solution: RepositorySolution, *, accepted: bool) -> None:
    """Say what follows.

    Raises:
        GateError: a vote is against it, or a review confirms a defect.
    """
    if not solution.solved:
        raise solution.against()
    if confirmed := solution.confirmed:
        what = f"{len(confirmed)} of {len(solution.votes) - 1} named defects are confirmed."
        raise GateError(what, f"{confirmed[0].check}: {confirmed[0].reason}")
    if not solution.is_review and not accepted:
        console.say(f"Nothing is written yet. Accept it: agent0 solve apply {solution.id}")
