"""Part of the rim: what a study will cost, from runs of the same profile that this data folder has finished."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from statistics import median

from agent0.assembly.ablations.ablation_run import RESULT, RunPlan, read_result
from agent0.assembly.runtime.progress import duration
from agent0.assembly.runtime.read_models import reading
from agent0.errors import Agent0Error, NotFoundError
from agent0.experiments.ablation_runs import AblationRun, requested_compute
from agent0.projections.base import Row, select
from agent0.settings import RunConfig, Settings

MOST = 50
"""Finished runs that are looked at, the newest first."""


def seconds_left(settings: Settings, profile: str, left: Sequence[AblationRun], jobs: int) -> float | None:
    """Estimate the wall time of the runs that are ``left``, ``jobs`` at a time: the median time of an attempt in
    finished runs of ``profile``, everything else of a run included. None where none is finished."""
    seconds = [*_of_studies(settings, profile), *_of_runs(settings, profile)][:MOST]
    if not seconds:
        return None
    attempts = sum(requested_compute(ablation.config)["in_all"] for ablation in left)
    return median(seconds) * attempts / max(1, min(jobs, len(left)))


def describe_cost(settings: Settings, profile: str, left: Sequence[AblationRun], jobs: int) -> str:
    """State in words how many runs are left, how many attempts that is, and how long it will take."""
    if not left:
        return "Every run is finished: nothing is generated or trained."
    attempts = sum(requested_compute(ablation.config)["in_all"] for ablation in left)
    seconds = seconds_left(settings, profile, left, jobs)
    how_long = "how long that takes shows with the first of them"
    if seconds is not None:
        how_long = f"about {duration(seconds)}, judged by finished runs of this profile"
    return f"To do: {len(left)} runs, {jobs} at a time, {attempts:,} attempts at most; {how_long}."


def _of_studies(settings: Settings, profile: str) -> Iterator[float]:
    """Seconds for each attempt that was asked for, run by run of earlier studies, the newest first."""
    files = sorted((settings.home / "grids").glob(f"*/*/{RESULT}"), key=lambda file: -file.stat().st_mtime)
    for file in files[:MOST]:
        with contextlib.suppress(NotFoundError):
            plan, result = RunPlan.read(file.parent), read_result(file.parent)
            if plan.profile == profile and result and result.cost.get("wall_s"):
                yield result.cost["wall_s"] / requested_compute(plan.ablation.config)["in_all"]


def _of_runs(settings: Settings, profile: str) -> Iterator[float]:
    query = "SELECT config, wall_s FROM runs WHERE status = 'finished' AND profile = ? ORDER BY started DESC LIMIT ?"
    rows: Sequence[Row] = ()
    with contextlib.suppress(Agent0Error), reading(settings) as db:  # none yet, or being made just now
        rows = select(db, query, (profile, MOST))
    for row in rows:
        compute = requested_compute(RunConfig.recorded(json.loads(row["config"])))
        if row["wall_s"]:
            yield row["wall_s"] / compute["in_all"]
