"""Part of the rim: checks that everything a run's settings name exists and fits together."""

from typing import TYPE_CHECKING

from agent0.assembly.runtime.mcp_tools import MCP
from agent0.assembly.runtime.providers import (
    embedders,
    provider_of,
)
from agent0.assembly.validate.curriculum import check_curriculum, known
from agent0.assembly.validate.rewards import check_rewards
from agent0.errors import ConfigError
from agent0.settings import RecipeConfig, RunConfig, VerificationConfig
from agent0.tools import tools

if TYPE_CHECKING:
    pass


def check_names(run: RunConfig) -> None:
    """Everything that a run's settings name must exist and fit together.

    Raises:
        ConfigError: the first that does not.
    """
    from agent0.rollout.prompts import styles

    for role, actor, recipe in (
        ("teacher", run.teacher, run.training.teacher),
        ("student", run.student, run.training.student),
    ):
        found = provider_of(actor)
        known(f"run.{role}.prompts", [actor.prompts], styles())
        _check_recipe(role, recipe)
        if recipe.enabled and (found.train is None or found.untrainable(actor)):
            fix = f"Set run.training.{role}.enabled = false, or choose another provider."
            why = found.untrainable(actor)
            raise ConfigError(f"Models of provider {found.name} cannot be trained here.", why, fix)
    known("run.curriculum.embedder", [run.curriculum.embedder], embedders())
    own = [name for name in run.student.tools if not name.startswith(MCP)]  # a world asks the servers for theirs
    known("run.student.tools", own, tools())
    check_rewards(run.rewards, "run.rewards")
    if run.evaluation.forced_tool and not provider_of(run.student).prefill:
        why = f"Provider {run.student.provider} cannot begin a turn with given text."
        raise ConfigError("The forced-tool control cannot be scored.", why, "Set run.evaluation.forced_tool = false.")
    check_curriculum(run)
    _check_verification(run.verification)


def _check_recipe(role: str, recipe: RecipeConfig) -> None:
    """The objective must be one that can use this role's deeds, and nothing may be set that it ignores."""
    from agent0.training.objectives import objectives

    usable = {name: entry for name, entry in objectives().items() if role in entry.roles}
    known(f"run.training.{role}.objective", [recipe.objective], usable)
    if recipe.kl and not usable[recipe.objective].penalty:
        why = f"The objective {recipe.objective} has no such penalty."
        raise ConfigError(f"run.training.{role}.kl has no effect.", why, "Set it to 0, or choose another objective.")


def _check_verification(plan: VerificationConfig) -> None:
    from agent0.rollout.prompts import styles
    from agent0.verification.verifiers import collective

    known("run.verification.unchecked", [plan.unchecked], ["refuse", *collective()])
    if plan.judge.provider:
        provider_of(plan.judge)
        known("run.verification.judge.prompts", [plan.judge.prompts], styles())
