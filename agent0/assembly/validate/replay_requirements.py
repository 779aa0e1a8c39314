"""Part of the rim: what training and evaluating from the log need of this machine; a part of what a run needs."""

from collections.abc import Collection, Iterable, Mapping

from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.requirements import OPENED, REQUIREMENTS, Look, examine, lacking
from agent0.assembly.validate.room import Check
from agent0.events.values import Role
from agent0.settings import ActorConfig, RunConfig, Settings
from agent0.settings.roles import JudgeConfig

STUDENT: tuple[Role, ...] = ("student",)


async def require_replay(
    settings: Settings,
    plans: Iterable[RunConfig],
    roles: Collection[Role] = STUDENT,
    *,
    evaluate: bool = True,
    opened: bool = False,
) -> None:
    """Look at everything that training the ``roles`` of ``plans`` from the log needs, at once; where ``evaluate``, at
    what scoring their students needs, too: their servers answer, and there is a sandbox.

    As for a run, sandbox and MCP servers are looked at where something else is missing or opening them has failed
    (``opened``).

    Raises:
        RequirementsError: something is missing; it names all of it, each with what mends it.
    """
    needs = {
        str((plan_settings.student, plan_settings.teacher)): plan_settings
        for plan_settings in (_needed(plan, roles, evaluate) for plan in plans)
    }
    cheap = {name: look for name, look in REQUIREMENTS.items() if name not in OPENED}
    missing = [check for plan in needs.values() for check in await _failed(settings, plan, cheap)]
    if evaluate and (missing or opened):
        rest = {name: REQUIREMENTS[name] for name in OPENED if name in REQUIREMENTS}
        missing += await _failed(settings, next(iter(needs.values())), rest)
    if missing:
        raise lacking(dict.fromkeys(missing))


async def _failed(settings: Settings, plan: RunConfig, looks: Mapping[str, Look]) -> list[Check]:
    """What of ``looks`` is missing for a run of ``plan``."""
    plan_settings = settings.model_copy(update={"run": plan})
    return [check async for check in examine(plan_settings, looks) if check.state == "fail"]


def _needed(plan: RunConfig, roles: Collection[Role], evaluate: bool) -> RunConfig:
    """``plan`` without what only a whole run uses: other roles, a judge, an embedder, benchmarks; and without servers
    where nothing is generated."""
    scored: Role = "student"
    actors = {
        role: actor if evaluate and role == scored else _folder_of(actor)
        for role, actor in (("student", plan.student), ("teacher", plan.teacher))
        if role in roles or (evaluate and role == scored)
    }
    any_of = next(iter(actors.values()))
    return plan.model_copy(
        update={
            "student": actors.get("student", any_of),
            "teacher": actors.get("teacher", any_of),
            "verification": plan.verification.model_copy(update={"judge": JudgeConfig()}),
            "curriculum": plan.curriculum.model_copy(update={"embedder": "ngram"}),
            "evaluation": plan.evaluation.model_copy(update={"benchmarks": ()}),
        }
    )


def _folder_of(actor: ActorConfig) -> ActorConfig:
    """``actor`` as the weights that it is trained on, where a server generates with them."""
    provider = provider_of(actor)
    if provider.probe is None or provider.folder is None:
        return actor
    return actor.model_copy(update={"provider": "transformers", "model": str(provider.folder(actor))})
