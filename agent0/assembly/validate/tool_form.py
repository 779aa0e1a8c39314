"""Part of the rim: the form in which a student calls tools is tried before a run or benchmark records anything."""

from agent0.assembly.validate.model_checks import template_of
from agent0.assembly.validate.template_check import teaches_calls
from agent0.config.loading import config_of
from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.ports.models import Models
from agent0.rollout.form_trial import tried_form
from agent0.settings import RunConfig, StudentConfig
from agent0.settings.roles import is_packaged


async def with_tool_form(actor: StudentConfig, models: Models) -> tuple[StudentConfig, str]:
    """Settle ``tool_form`` of a student whose chat template teaches one: returns it with the form that it writes, and a
    notice, empty where nothing was tried.

    Raises:
        DependencyError, TransientError: from the model.
    """
    source = template_of(actor)
    is_settled = actor.tool_form != "auto" or not actor.uses_tools or is_packaged(actor.provider, actor.model)
    if is_settled or source is None or not source.exists() or not teaches_calls(source):
        return actor, ""
    trial = await tried_form(models.open(actor), actor)
    return actor.model_copy(update={"tool_form": trial.form}), str(trial)


async def begun_with_form(begin: Recorded, models: Models) -> tuple[Recorded, str]:
    """Resolve the student's form in ``begin`` where that begins a run, with a notice; errors as for
    ``with_tool_form``."""
    if not isinstance(begin.event, RunStarted):
        return begin, ""
    run = RunConfig.recorded(begin.event.config)
    student, notice = await with_tool_form(run.student, models)
    if not notice:
        return begin, ""
    config, digest = config_of(run.model_copy(update={"student": student}))
    event = begin.event.model_copy(update={"config": config, "config_sha": digest})
    return begin.model_copy(update={"event": event}), notice
