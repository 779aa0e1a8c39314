"""Part of the rim: executes an ablation study run by run, each in a process and a data folder of its own. What is
finished stays finished: the same command goes on with the rest, whatever was killed."""

import asyncio
import contextlib
import fcntl
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import monotonic

from agent0.assembly.ablations.ablation_run import PLAN, RunPlan, decode_progress, decode_standing, read_result
from agent0.assembly.ablations.base_models import make_bases, seeds_without_base, with_base
from agent0.assembly.ablations.cost import describe_cost, seconds_left
from agent0.assembly.ablations.prompt_variant import check_search
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.assembly.runtime.child_process import child, last_words, size
from agent0.assembly.runtime.progress import duration
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.assembly.validate.questions import with_questions
from agent0.assembly.validate.requirements import require_all
from agent0.assembly.validate.run_config import check_names
from agent0.config.setting_entries import amended
from agent0.errors import Agent0Error, ConfigError, OperationError
from agent0.experiments.ablation_results import (
    RunOutcome,
    comparison_rows,
    cost_rows,
    curves,
    measured,
    run_rows,
    variant_rows,
)
from agent0.experiments.ablation_runs import (
    AblationRun,
    changed_settings,
    chosen_variants,
    describe_compute,
    requested_compute,
    runs_of_study,
    with_searches,
    with_shared_start,
)
from agent0.experiments.ablation_study import AblationStudy, Variant
from agent0.experiments.ladder_rows import ladder_rows, lead_rows, level_rows
from agent0.experiments.study_results import LadderResults, StudyResults
from agent0.infra.log.nats_server import Server
from agent0.infra.log.server_folder import write
from agent0.settings import RunConfig, Settings
from agent0.tasks.curriculum.ladder_height import Standing, on_ladder

SAID = "said.txt"
"""In the folder of an ablation run: what its processes wrote to stderr."""
GRACE_S = 5.0
"""How long its last words may take once it has ended: what it started may hold its stdout a little longer."""
Report = Callable[[str], None]
Climbed = Callable[[AblationRun, int, Standing], None]
"""(run, iteration or -1 for its base, where its student stands)."""


@dataclass
class _StudyProgress:
    """A study under way: seconds that finished runs took, and when each running one will be done."""

    request: StudyRequest
    folder: Path
    ablations: list[AblationRun]
    report: Report
    climbed: Climbed
    done: dict[str, RunOutcome] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    began: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    def folder_of(self, ablation: AblationRun) -> Path:
        return self.folder / ablation.name

    def stand(self) -> str:
        """``3 of 12 runs done, about 4 min left``."""
        left = self.left_s()
        failed = f", {len(self.failed)} failed" if self.failed else ""
        status = f"{len(self.done)} of {len(self.ablations)} runs done{failed}"
        return status if left is None or not left else f"{status}, about {duration(left)} left"

    def left_s(self) -> float | None:
        """Seconds left, estimated from finished and running runs; None until one of them reports."""
        moment = monotonic()
        seconds = [*self.took, *(end - self.began[name] for name, end in self.ends.items() if name in self.began)]
        if not seconds:
            return None
        mean = sum(seconds) / len(seconds)
        ends = (self.ends.get(name, begun + mean) for name, begun in self.began.items())
        running = sum(max(0.0, end - moment) for end in ends)
        waiting = len(self.ablations) - len(self.done) - len(self.failed) - len(self.began)
        return (running + waiting * mean) / max(1, min(self.request.jobs, waiting + len(self.began)))


_role = re.compile(r"(run\.)?(student|teacher)\.")


def variant_configs(
    base: RunConfig, of_study: Mapping[str, str], variants: Sequence[Variant], home: Path
) -> dict[str, RunConfig]:
    """Make the run settings of each variant: variant name -> settings. ``of_study`` has those of all variants; models
    are named in the data folder ``home``.

    Raises:
        ConfigError: a setting that is none, does not fit, or names what there is not; the variant is named.
    """
    plans, shared = {}, amended(base, of_study, home)
    of_roles = {key: text for key, text in of_study.items() if _role.match(key)}  # a variant's model keeps these
    for variant in variants:
        try:
            settings = of_roles | dict(variant.settings)
            typed = {f"run.{key.removeprefix('run.')}" for key in (*of_study, *settings)} & {"run.rewards.set"}
            plans[variant.name] = with_questions(amended(shared, settings, home), typed)
            check_names(plans[variant.name])
        except ConfigError as error:
            raise ConfigError(
                f"The variant {variant.name} is not possible: {error.what}", error.why, error.fix
            ) from error
    return plans


async def plan_study(settings: Settings, request: StudyRequest) -> dict[str, object]:
    """What ``run_study`` would execute, and what that costs; nothing is begun.

    Raises:
        ConfigError: as ``run_study``.
    """
    folder, plans, ablations = await _planned(settings, request)
    left = _unfinished(folder, ablations)
    return {
        "study": request.name,
        "folder": str(folder),
        "runs": len(ablations),
        "done": len(ablations) - len(left),
        "attempts": sum(requested_compute(ablation.config)["in_all"] for ablation in left),
        "seconds": seconds_left(settings, request.profile, left, request.jobs),
        "effort": describe_compute(plans),
        "cost": describe_cost(settings, request.profile, left, request.jobs),
    }


def _unfinished(folder: Path, ablations: Sequence[AblationRun]) -> list[AblationRun]:
    return [ablation for ablation in ablations if read_result(folder / ablation.name) is None]


async def run_study(
    settings: Settings, request: StudyRequest, report: Report = lambda _: None, climbed: Climbed = lambda *_: None
) -> StudyResults:
    """Execute the runs that are not finished; return the results of all finished ones. A run that fails is named in
    ``failed``, and the others go on. On a ladder ``climbed`` hears where the student of a run stands.

    Raises:
        ConfigError: variants, seeds or a name that cannot be.
        OperationError: another process executes this study, or a run of it was begun under other settings.
        RequirementsError: something is missing that its runs need.
    """
    folder, plans, ablations = await _planned(settings, request)
    left = _unfinished(folder, ablations)
    if left:
        await require_all(settings, plans.values())
    cost = describe_cost(settings, request.profile, left, request.jobs)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked_study(request.name, folder):
        course = _course(request.study, ablations)
        seeds = seeds_without_base(ablations, course)
        bases = await make_bases(folder, course, seeds, request.jobs, report) if course else {}
        work = _StudyProgress(
            request, folder, [with_base(ablation, course, bases) for ablation in ablations], report, climbed
        )
        for ablation in work.ablations:
            _prepare(work, ablation)
        report(f"Study {request.name}: {describe_compute(plans)} {cost} In {folder}. {work.stand()}.")
        await _execute_all(work)
        results = _results(work, plans)
        write(folder / "grid.json", json.dumps(results, indent=1))
    return results


def _course(study: AblationStudy, ablations: Sequence[AblationRun]) -> str:
    """What the bases of the study's seeds are taught: the course of its packaged student; empty where it has none."""
    students = [ablation.config.student for ablation in ablations if ablation.config.student.provider == "tiny"]
    return students[0].model if study.own_bases and students else ""


async def _planned(settings: Settings, request: StudyRequest) -> tuple[Path, dict[str, RunConfig], list[AblationRun]]:
    """Return the folder, the settings of each variant, and all ablation runs. Every mistake shows before a run
    begins."""
    variants = chosen_variants(request.study, request.only)
    typed_keys = {key.removeprefix("run.") for key in request.typed}
    for variant in variants:
        if both := sorted(typed_keys & {key.removeprefix("run.") for key in variant.settings} | typed_keys & {"seed"}):
            why = "Seeds are named by --seeds." if both == ["seed"] else f"The variant {variant.name} sets it."
            raise ConfigError(f"run.{both[0]} has no effect.", why, "Leave it out of --set.")
    of_study = request.study.settings.items()
    study_settings = {key: text for key, text in of_study if key.removeprefix("run.") not in typed_keys}
    base = (await with_policy(settings)).run
    plans = variant_configs(base, study_settings, variants, settings.home)
    ablations = runs_of_study(request.name, plans, request.seeds)
    if request.study.shared_start:
        ablations = with_shared_start(ablations)
    ablations = with_searches(ablations, variants)
    for ablation in ablations:
        check_search(ablation)
    return settings.home / "grids" / request.name, plans, ablations


@contextmanager
def _locked_study(name: str, folder: Path) -> Iterator[None]:
    with (folder / "grid.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"Another process executes it, in {folder}."
            raise OperationError(f"Study {name} is under way.", why, "Wait for it, or choose another --name.") from None
        yield


def _prepare(work: _StudyProgress, ablation: AblationRun) -> None:
    """Make the folder of an ablation run with its plan. One that was begun otherwise is refused."""
    folder = work.folder_of(ablation)
    if (folder / PLAN).exists():
        begun = RunPlan.read(folder)
        changed = changed_settings(begun.ablation.config, ablation.config)
        if changed := changed or ["search"] * (begun.ablation.search != ablation.search):
            why = f"It was begun with other settings: {', '.join(changed[:3])}."
            fix = "Choose another --name, or move that folder away."
            raise OperationError(f"Run {ablation.name} of study {work.request.name} has other settings.", why, fix)
    else:
        folder.mkdir(mode=0o700, exist_ok=True)
        rest = {
            k: v for k, v in work.request.typed.items() if not k.startswith("run.") and k not in ("home", "profile")
        }
        RunPlan(ablation, work.request.profile, rest).write(folder)
    if outcome := read_result(folder):
        scores = [score for score in outcome.scores if score.split == "validation" and not score.forced_tool]
        for score in sorted(scores, key=lambda score: score.iteration):
            work.climbed(ablation, score.iteration, Standing(score.by_level))
        work.done[ablation.name] = outcome
        work.took.append(outcome.cost["wall_s"])


async def _execute_all(work: _StudyProgress) -> None:
    """Several at once, but one after the other those that share a data folder: the one they are forks of is first."""
    waiting = asyncio.Queue[list[AblationRun]]()
    left = [ablation for ablation in work.ablations if ablation.name not in work.done]
    for _, sharing in groupby(left, key=lambda ablation: ablation.origin_folder or ablation.name):
        waiting.put_nowait(list(sharing))
    async with asyncio.TaskGroup() as group:
        for _ in range(min(work.request.jobs, waiting.qsize())):
            group.create_task(_take_next(work, waiting))


async def _take_next(work: _StudyProgress, waiting: asyncio.Queue[list[AblationRun]]) -> None:
    """One after the other, until none is left."""
    with contextlib.suppress(asyncio.QueueEmpty):
        while True:
            for ablation in waiting.get_nowait():
                await _execute_and_note(work, ablation)


async def _execute_and_note(work: _StudyProgress, ablation: AblationRun) -> None:
    work.began[ablation.name] = monotonic()
    why = await _execute_one(work, ablation)
    began = work.began.pop(ablation.name)
    work.ends.pop(ablation.name, None)
    if outcome := read_result(work.folder_of(ablation)):
        work.done[ablation.name] = outcome
        work.took.append(monotonic() - began)
        work.report(f"{ablation.name} is done. {work.stand()}.")
    else:
        work.failed[ablation.name] = why
        work.report(f"{ablation.name} failed: {why} The rest goes on. {work.stand()}.")


async def _execute_one(work: _StudyProgress, ablation: AblationRun) -> str:
    """What was wrong; empty where nothing was."""
    folder = work.folder_of(ablation)
    output_file = folder / SAID
    before = size(output_file)
    async with child("agent0.cli.experiments.worker_ablation_run", str(folder), output=output_file) as process:
        following = asyncio.create_task(_follow_output(work, ablation, process))
        try:
            code = await process.wait()
            await asyncio.wait([following], timeout=GRACE_S)
        finally:
            following.cancel()
    if not code:
        return ""
    await _stop_log_server(folder)
    return last_words(output_file, before, code)


async def _follow_output(work: _StudyProgress, ablation: AblationRun, process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe
    async for line in process.stdout:
        if stands := decode_standing(line):
            work.climbed(ablation, *stands)
            continue
        text, left = decode_progress(line)
        if left is not None:
            work.ends[ablation.name] = monotonic() + left
        if text:
            work.report(f"{ablation.name}  {text}  ({work.stand()})")


async def _stop_log_server(folder: Path) -> None:
    """A process that was killed left its log's server behind."""
    settings = RunPlan.read(folder).settings_in(folder)
    server = Server(settings.nats, settings.home / "nats")
    if not server.pid:
        return
    with contextlib.suppress(Agent0Error):
        await server.start()
        await server.stop()


def _ladder(outcomes: Sequence[RunOutcome], plans: Mapping[str, RunConfig]) -> LadderResults:
    """What a study on a ladder reports beside its measures; empty where a variant is on none."""
    if not all(on_ladder(plan) for plan in plans.values()):
        return {}
    mastered = next(iter(plans.values())).curriculum.mastered
    rows = ladder_rows(outcomes, mastered)
    levels = level_rows(outcomes)
    return {"mastered": mastered, "ladder": rows, "ladder_leads": lead_rows(rows), "ladder_levels": levels}


def _results(work: _StudyProgress, plans: Mapping[str, RunConfig]) -> StudyResults:
    """Collect the results of the study from what finished runs wrote."""
    study, request = work.request.study, work.request
    outcomes = [work.done[ablation.name] for ablation in work.ablations if ablation.name in work.done]
    outcomes.sort(key=lambda outcome: list(plans).index(outcome.arm))
    variants = chosen_variants(study, request.only)
    return {
        "grid": request.name,
        "question": study.question,
        "command": list(request.command),
        "profile": request.profile,
        "seeds": list(request.seeds),
        "own_bases": study.own_bases,
        "given": dict(request.typed),
        "effort": describe_compute(plans),
        "about": {variant.name: variant.about for variant in variants},
        "settings": {
            variant.name: {**variant.settings, **({"search": variant.search} if variant.search else {})}
            for variant in variants
        },
        "folder": str(work.folder),
        "complete": len(outcomes) == len(work.ablations),
        "failed": [{"cell": name, "why": why} for name, why in work.failed.items()],
        "measures": measured(outcomes),
        "arms": variant_rows(outcomes),
        "against": comparison_rows(outcomes),
        "curves": curves(outcomes),
        "cost": cost_rows(outcomes),
        "cells": run_rows(outcomes),
        **_ladder(outcomes, plans),
    }
