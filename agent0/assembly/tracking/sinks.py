"""Part of the rim: writes what a run measured in the form that another program reads. Offline: nothing is sent."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from agent0.assembly.api.rows import Rows
from agent0.assembly.tracking.measured import RunSeries
from agent0.assembly.tracking.tensorboard_events import write_events
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, OperationError, RequirementsError

LONGEST = 500
"""Characters of a setting's value that MLflow keeps."""
SILENT = {"MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_ERROR_REPORTING": "false"}
"""Both packages report to their makers how they are used, W&B also when it is offline; only the environment tells them
not to."""


def export(run_measures: RunSeries, kind: str, folder: Path) -> Path:
    """Write ``run_measures`` into ``folder`` as ``kind``, one of ``SINKS``; returns what was written.

    Raises:
        ConfigError: there is no such kind.
        RequirementsError: its package is not installed.
        OperationError: it cannot be written.
    """
    if kind not in SINKS:
        raise ConfigError(f"There is no format {kind!r}.", f"Known: {', '.join(SINKS)}.", nearest(kind, [*SINKS]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _silent():
            return SINKS[kind](run_measures, folder)
    except OSError as error:
        raise OperationError(f"{folder} cannot be written.", f"{error.strerror}.", "Name another place.") from error


@contextmanager
def _silent() -> Iterator[None]:
    """``SILENT`` for as long as something is written."""
    before = {name: os.environ.get(name) for name in SILENT}
    os.environ.update(SILENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _table(ending: str, run_measures: RunSeries, folder: Path) -> Path:
    """RUN.csv by iteration, and where a training had steps RUN-steps.csv by these."""
    if run_measures.trainings:
        Rows(run_measures.training_rows()).write(folder / f"{run_measures.run}-steps.{ending}")
    return Rows(run_measures.rows()).write(folder / f"{run_measures.run}.{ending}")


def _mlflow(run_measures: RunSeries, folder: Path) -> Path:
    """A run in the database ``mlflow.db``, which `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db` shows."""
    mlflow: Any = _package("mlflow", "mlflow")
    if telemetry := getattr(mlflow, "telemetry", None):  # where it was imported before, it is asked anew
        telemetry.set_telemetry_client()
    file = (folder / "mlflow.db").absolute()
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{file}")
    existing = client.get_experiment_by_name("agent0")
    experiment = (
        existing.experiment_id
        if existing
        else client.create_experiment("agent0", (folder / "artifacts").absolute().as_uri())
    )
    measures = (*run_measures.points, *run_measures.trainings)
    milliseconds = [round(1000 * point.time) for point in measures] or [0]
    run = client.create_run(experiment, min(milliseconds), {"agent0.run": run_measures.run}, run_measures.run)
    metric, param = mlflow.entities.Metric, mlflow.entities.Param
    points = [metric(p.series, p.value, at, p.step) for p, at in zip(measures, milliseconds, strict=False)]
    params = [param(key, str(value)[:LONGEST]) for key, value in run_measures.settings.items()]
    for values, name in ((points, "metrics"), (params, "params")):
        for first in range(0, len(values), 100):
            client.log_batch(run.info.run_id, **{name: values[first : first + 100]})
    client.set_terminated(run.info.run_id, end_time=max(milliseconds))
    return file


def _wandb(run_measures: RunSeries, folder: Path) -> Path:
    """An offline run of Weights & Biases; `wandb sync` sends it, where and when its owner wants."""
    wandb: Any = _package("wandb", "wandb")
    settings = wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True,
                              x_save_requirements=False, disable_git=True)  # fmt: skip
    run = wandb.init(
        mode="offline", dir=str(folder), project="agent0", id=run_measures.run, name=run_measures.name,
        config=dict(run_measures.settings), settings=settings,
    )  # fmt: skip
    rows = run_measures.rows()
    for row in rows:
        run.log(_values(row), step=row["step"])
    if run_measures.trainings:  # an axis of their own, behind the iterations
        run.define_metric("training/*", step_metric="training/step")
    last = int(rows[-1]["step"] or 0) if rows else 0
    for row in run_measures.training_rows():
        run.log({"training/step": row["step"], **_values(row)}, step=last + int(row["step"] or 0))
    run_folder = Path(run.dir).parent
    run.finish()
    return run_folder


def _values(row: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name != "step" and value is not None}


SINKS: Mapping[str, Callable[[RunSeries, Path], Path]] = {
    "csv": partial(_table, "csv"),
    "parquet": partial(_table, "parquet"),
    "tensorboard": write_events,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
"""What a run can be exported as."""


def _package(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise RequirementsError(f"{package} is not installed.", fix=f"Install it: pip install {package}") from error
