"""Part of the rim: for each model of the settings, the form of calls that its chat template teaches, and which of ten
conversations are read back."""

from agent0.assembly.routing.billing import actors_of
from agent0.assembly.validate.model_checks import template_of
from agent0.assembly.validate.template_check import CONVERSATIONS, report_of_model, teaches_calls
from agent0.errors import Agent0Error
from agent0.ports.models import Models
from agent0.rollout.form_trial import tried_form
from agent0.settings import ActorConfig, Settings, StudentConfig
from agent0.settings.roles import is_packaged


def call_forms(settings: Settings) -> list[dict[str, object]]:
    """Return a row for each model: ``form`` ("": none is taught, or none is known, which ``note`` explains) and its
    ``conversations``, each with what became of its calls ("": read back)."""
    return [
        {"role": role, "provider": actor.provider, "model": actor.model, **_calls_of(actor)}
        for role, actor in actors_of(settings).items()
    ]


def _calls_of(actor: ActorConfig) -> dict[str, object]:
    template = template_of(actor)
    if is_packaged(actor.provider, actor.model):
        return _unknown("It comes with Agent0 and was taught calls between <tool_call> marks.")
    if template is None or not template.exists():
        return _unknown(
            "Its chat template is not on this machine: calls go as text, in the form of run.student.tool_form."
        )
    try:
        report = report_of_model(template)
    except Agent0Error as error:
        return _unknown(f"{error.what} {error.why}".strip())
    if report is None:
        return _unknown("It has no chat template.")
    if not report.form:
        return _unknown("Its chat template writes no calls; they go as text.")
    rows = [{"conversation": name, "problem": report.lost.get(name, "")} for name in CONVERSATIONS]
    return {"form": report.form, "note": "", "read": report.tried - len(report.lost), "conversations": rows}


def _unknown(note: str) -> dict[str, object]:
    return {"form": "", "note": note, "read": 0, "conversations": []}


async def with_tool_form(actor: StudentConfig, models: Models) -> tuple[StudentConfig, str]:
    """Settle ``tool_form`` of a student whose chat template teaches a form of calls.

    Returns it with the form that it writes, and a notice, empty where nothing was tried.

    Raises:
        DependencyError, TransientError: from the model.
    """
    source = template_of(actor)
    is_settled = actor.tool_form != "auto" or not actor.uses_tools or is_packaged(actor.provider, actor.model)
    if is_settled or source is None or not source.exists() or not teaches_calls(source):
        return actor, ""
    trial = await tried_form(models.open(actor), actor)
    return actor.model_copy(update={"tool_form": trial.form}), str(trial)
