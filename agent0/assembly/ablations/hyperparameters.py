"""Part of the rim: hyperparameter search on the log, trial by trial. Each trial is a training experiment whose name
follows from its settings, so the same command goes on with what is not finished."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from agent0.assembly.log.access import open_log
from agent0.assembly.replay.rescore import run_config
from agent0.assembly.replay.retrain import Retrain, retrain
from agent0.assembly.runtime.progress import duration
from agent0.assembly.validate.replay_requirements import require_replay
from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import amended, leaves, load, profiles
from agent0.errors import Agent0Error, OperationError
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.experiments import ExperimentFinished
from agent0.events.runs import RunStarted
from agent0.experiments.ablation_runs import describe_compute
from agent0.experiments.hyperparameter_search import Space, Trial, Tried, best_by_budget, outcome, trials
from agent0.experiments.receipt_diff import experiment_id
from agent0.infra.log.event_log import Log
from agent0.provenance.fork_history import read_branch
from agent0.settings import RunConfig, Settings

Report = Callable[[str], None]


@dataclass(frozen=True)
class Search:
    """A hyperparameter search: trials of ``space`` on the stored trajectories of ``run``; ``number`` of them drawn
    by ``seed`` (0: all)."""

    run: str
    name: str
    space: Space
    number: int = 0
    seed: int = 0


async def search(settings: Settings, request: Search, report: Report = lambda _: None) -> dict[str, Any]:
    """Train and score the trials that are not finished; return the results of all. A trial that fails is named, and
    the others go on.

    Raises:
        NotFoundError: no such run.
        ConfigError: a value that does not fit, found before anything is trained.
        OperationError: the run trained no student that was scored.
        RequirementsError: something is missing that the trials need.
    """
    planned = trials(request.name, request.space, request.number, request.seed)
    async with open_log(settings, "reader") as log:
        own_config = await run_config(log, request.run)
        plans = [amended(own_config, trial.settings) for trial in planned]
        for plan in plans:
            check_names(plan)
        run_itself = await _run_itself(log, request, own_config)
        done = {trial.name for trial in planned if await _finished(log, trial)}
    if len(done) < len(planned):
        await require_replay(settings, plans)
    report(f"Search {request.name}: {len(planned)} trials on {request.run}, {len(done)} are finished.")
    failed = await _try(settings, request.run, [trial for trial in planned if trial.name not in done], report)
    async with open_log(settings, "reader") as log:
        named = {failure["trial"] for failure in failed}
        tried = [await _tried(log, trial) for trial in planned if trial.name not in named]
        first = await _beginning(log, request.run)
    return {
        "run": request.run,
        "search": request.name,
        "profile": first[0].profile,
        "seed": first[0].seed,
        "effort": describe_compute({"run": own_config}).removeprefix("Asked of every run alike: ").partition(". ")[0],
        "searched": list(request.space),
        "untrained": first[1].accuracy,
        "n": first[1].n,
        "trials": outcome(run_itself, tried),
        "best_by_budget": best_by_budget(run_itself, tried),
        "failed": failed,
        "made_by": _made_by(first[0], own_config),
    }


async def _try(settings: Settings, run: str, left: Sequence[Trial], report: Report) -> list[dict[str, str]]:
    """One after the other: two trainings of one checkpoint at once would share what is half done."""
    failed, began = [], monotonic()
    for number, trial in enumerate(left):
        rate = (monotonic() - began) / number if number else None
        time = f", about {duration(rate * (len(left) - number))} left" if rate else ""
        report(f"trial {number + 1}/{len(left)}: {trial.settings_text}{time}")
        try:
            await retrain(settings, Retrain(run, trial.name, trial.settings))
        except Agent0Error as error:
            failed.append({"trial": trial.name, "words": trial.settings_text, "why": str(error)})
            report(f"{trial.name} failed: {error} The rest goes on.")
    return failed


async def _finished(log: Log, trial: Trial) -> bool:
    async for _ in log.read(experiment_id(trial.name), ["ExperimentFinished"]):
        return True
    return False


async def _run_itself(log: Log, request: Search, config: RunConfig) -> Tried:
    """What the run itself came to under its own recipe."""
    plain = dict(leaves(config.model_dump(mode="json")))
    scored_run = _gathered(request.run, [event async for event in read_branch(log, request.run)])
    if not scored_run.scored:
        why = "There is nothing to compare trials with."
        raise OperationError(f"Run {request.run} scored no student that it trained.", why, "Choose another run.")
    return Tried(request.run, {key: f"{plain[key]}" for key in request.space}, scored_run.trained, scored_run.scored)


async def _tried(log: Log, trial: Trial) -> Tried:
    events = [event async for event in log.read(experiment_id(trial.name))]
    assert any(isinstance(event.event, ExperimentFinished) for event in events)  # noqa: S101 - else it had failed
    outcome_of_trial = _gathered(trial.name, events)
    return Tried(trial.name, trial.settings, outcome_of_trial.trained, outcome_of_trial.scored)


def _gathered(name: str, events: Sequence[Recorded]) -> Tried:
    trained = [e for recorded in events if isinstance(e := recorded.event, CheckpointTrained) and e.role == "student"]
    scored = [e for recorded in events if isinstance(e := recorded.event, CheckpointEvaluated) and _counts(e)]
    return Tried(name, {}, trained, scored)


def _counts(scored: CheckpointEvaluated) -> bool:
    return scored.split == "validation" and not scored.forced_tool and scored.iteration >= 0


async def _beginning(log: Log, run: str) -> tuple[RunStarted, CheckpointEvaluated]:
    """How the run began, and its untrained student's validation score."""
    begun: RunStarted | None = None
    async for recorded in read_branch(log, run, ["RunStarted", "CheckpointEvaluated"]):
        event = recorded.event
        if isinstance(event, RunStarted):
            begun = event
        elif isinstance(event, CheckpointEvaluated) and event.split == "validation" and not event.forced_tool and begun:
            return begun, event
    raise OperationError(f"Run {run} scored nothing.", "Its untrained student has no validation score.")


def _made_by(begun: RunStarted, config: RunConfig) -> list[str]:
    """The command that makes such a run again: its profile, and what differs from that."""
    if begun.profile not in profiles() or begun.parent:
        return []
    usual = dict(leaves(load(begun.profile, env={}).run.model_dump(mode="json")))
    recorded = dict(leaves(config.model_dump(mode="json")))
    pairs = [f"-s run.{key}={_text(value)}" for key, value in recorded.items() if key in usual and usual[key] != value]
    return [" ".join(["agent0 run start --profile", begun.profile, *pairs])]


def _text(value: Any) -> str:
    """As a flag is written."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
