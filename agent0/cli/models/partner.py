"""Whom a person asks outside of any run: a model of any provider, or the student of a run."""

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.students import adapter_of, present_student
from agent0.cli import flags, lookup
from agent0.cli.models.named_model import model_flags
from agent0.config.catalogue import catalogue_model
from agent0.config.setting_entries import amended
from agent0.errors import NotFoundError
from agent0.events.values import Artifact
from agent0.projections.runs import show_run
from agent0.settings import RunConfig, Settings


def partner(
    model: str, provider: str | None, profile: str | None, values: dict[str, str]
) -> tuple[Settings, Artifact | None, str]:
    """Settings with the student that is asked, its adapter, and RUN/CHECKPOINT; empty where it is a model.

    Raises:
        NotFoundError: there is no such model or checkpoint.
    """
    named = flags.overrides(None, **model_flags(model or None, provider, "student"))
    if not model or _is_model(model, named):
        return flags.settings_of(profile, {**named, **values}), None, ""
    try:
        return _checkpoint(model, profile, values)
    except NotFoundError as error:
        why = "It is no model of the catalogue, no file or folder, and no checkpoint: " + error.what
        fix = "See: agent0 model list --available; agent0 model list. A server's model: --provider ollama"
        raise NotFoundError(f"There is no model or checkpoint {model[:80]!r}.", why, fix) from None


def _is_model(model: str, named: dict[str, str]) -> bool:
    """Whether a name is that of a model: of a given provider, packaged, a path, or in the catalogue."""
    return "run.student.provider" in named or catalogue_model(model) is not None


def _checkpoint(model: str, profile: str | None, values: dict[str, str]) -> tuple[Settings, Artifact | None, str]:
    """The student of a run with the settings that were recorded, changed by ``values``, its adapter and its name."""
    changes = {key: value for key, value in values.items() if key.startswith("run.")}
    settings = flags.settings_of(profile, {key: value for key, value in values.items() if key not in changes})
    with lookup.tables(settings) as db:
        run, checkpoint = present_student(db, model)
        row = show_run(db, run)
    plan = amended(RunConfig.recorded(row["config"]), changes, settings.home)
    name = f"{run}/{checkpoint['checkpoint']}"
    adapter = adapter_of(artifact_store(settings), name, checkpoint)
    return settings.model_copy(update={"run": plan, "profile": row["profile"]}), adapter, name
