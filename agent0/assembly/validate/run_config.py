"""Part of the rim: checks that everything a run's settings name exists and fits together."""

from agent0.assembly.runtime.mcp_tools import MCP
from agent0.assembly.runtime.plugins import check_plugins
from agent0.assembly.runtime.providers import (
    embedders,
    provider_of,
)
from agent0.assembly.validate.curriculum import check_curriculum
from agent0.assembly.validate.rewards import check_rewards
from agent0.config.setting_entries import require_known
from agent0.errors import ConfigError
from agent0.infra.training.course_replay import FILE
from agent0.rollout.prompts import styles
from agent0.rollout.prompts.own_text import is_text, student_text
from agent0.settings import ActorConfig, RecipeConfig, RunConfig, VerificationConfig
from agent0.tasks.curriculum.ladder_height import on_ladder
from agent0.tools import tools
from agent0.training.gate import gates
from agent0.training.objectives import objectives
from agent0.verification.verifiers import collective

LIKELIHOOD = ("steps", "fresh", "taught", "settle", "fresh_per_task")
"""Settings of a recipe that only likelihood training reads."""


def check_names(run: RunConfig) -> None:
    """Everything that a run's settings name must exist and fit together.

    Raises:
        ConfigError: the first that does not.
    """
    check_plugins(run.plugins, "the run")
    teacher = [("teacher", run.teacher, run.training.teacher)] if run.has_teacher else []
    for role, actor, recipe in (*teacher, ("student", run.student, run.training.student)):
        provider = provider_of(actor)
        _check_prompts(role, actor.prompts)
        _check_recipe(role, recipe)
        _check_window(role, recipe)
        _check_taught(actor, recipe)
        if recipe.enabled and (provider.train is None or provider.untrainable(actor)):
            fix = f"Set run.training.{role}.enabled = false, or choose another provider."
            why = provider.untrainable(actor)
            raise ConfigError(f"Models of provider {provider.name} cannot be trained here.", why, fix)
        if recipe.enabled and recipe.rank == 0 and not provider.whole:
            why = "An adapter that holds all weights cannot be loaded beside its base."
            raise ConfigError(
                f"run.training.{role}.rank = 0 does not fit provider {provider.name}.", why, "Set it to 16."
            )
    if run.has_teacher and run.teacher.explore and not provider_of(run.teacher).bias:
        why = f"Provider {run.teacher.provider} cannot change the logits of single tokens."
        raise ConfigError("run.teacher.explore has no effect.", why, "Set it to 0.")
    require_known("run.curriculum.embedder", [run.curriculum.embedder], embedders())
    tool_names = [name for name in run.student.tools if not name.startswith(MCP)]  # a world asks the servers for theirs
    require_known("run.student.tools", tool_names, tools())
    check_rewards(run.rewards, "run.rewards")
    if run.evaluation.forced_tool and not provider_of(run.student).prefill:
        why = f"Provider {run.student.provider} cannot begin a turn with given text."
        raise ConfigError("The forced-tool control cannot be scored.", why, "Set run.evaluation.forced_tool = false.")
    check_curriculum(run)
    _check_refill(run)
    _check_steps_off_policy(run)
    check_gain(run)
    _check_verification(run.verification)


def _check_prompts(role: str, style: str) -> None:
    """A style there is, or a student's prompt itself."""
    if role == "student" and is_text(style):
        student_text(style, "run.student.prompts")
    else:
        require_known(f"run.{role}.prompts", [style], styles())


def _check_recipe(role: str, recipe: RecipeConfig) -> None:
    """The objective must be one that can use this role's deeds, and nothing may be set that it ignores."""
    require_known(f"run.training.{role}.gate", [recipe.gate], gates())
    usable = {name: entry for name, entry in objectives().items() if role in entry.roles}
    require_known(f"run.training.{role}.objective", [recipe.objective], usable)
    likelihoods = {name: entry for name, entry in usable.items() if entry.likelihood}
    require_known(f"run.training.{role}.first", [recipe.first] if recipe.first else [], likelihoods)
    if recipe.kl and not usable[recipe.objective].penalty:
        why = f"The objective {recipe.objective} has no such penalty."
        raise ConfigError(f"run.training.{role}.kl has no effect.", why, "Set it to 0, or choose another objective.")
    if recipe.correction != "none" and not usable[recipe.objective].ratio:
        why = f"The objective {recipe.objective} has no ratio that would be corrected."
        fix = "Set it to none, or choose a policy gradient."
        raise ConfigError(f"run.training.{role}.correction has no effect.", why, fix)
    if recipe.kl_to == "base" and not recipe.kl:
        why = f"Nothing is measured from the base: run.training.{role}.kl is 0."
        raise ConfigError(f"run.training.{role}.kl_to has no effect.", why, "Set kl = 0.001, or leave it out.")
    _check_likelihood(role, recipe)


def _check_likelihood(role: str, recipe: RecipeConfig) -> None:
    """Settings of expert iteration are for a student's ``sft``; shares of a minibatch are for steps that have them."""
    set_here = {name for name in LIKELIHOOD if getattr(recipe, name) != RecipeConfig.model_fields[name].default}
    if "steps" in set_here and not objectives()[recipe.objective].likelihood:
        why = "Only objectives of likelihood (sft, awr) read it."
        raise ConfigError(f"run.training.{role}.steps has no effect.", why, "Choose one of these, or leave it out.")
    gradient = role == "student" and objectives()[recipe.objective].ratio
    if "fresh_per_task" in set_here and recipe.objective != "sft" and not gradient:
        why = "Only sft and a student's policy gradients read it."
        raise ConfigError(f"run.training.{role}.fresh_per_task has no effect.", why, "Choose one, or leave it out.")
    if gradient and recipe.fresh_per_task == 1:
        why = "A policy gradient compares attempts at a task with one another."
        raise ConfigError("run.training.student.fresh_per_task does not fit.", why, "Set 2 or more, or 0 for all.")
    if (shares := set_here & {"fresh", "taught", "settle"}) and not recipe.steps:
        why = "Only minibatches of fixed shares have such a part: run.training.student.steps is 0."
        raise ConfigError(f"run.training.{role}.{min(shares)} has no effect.", why, "Set steps, or leave it out.")
    if recipe.steps and recipe.fresh + recipe.taught > 1:
        why = f"fresh = {recipe.fresh} and taught = {recipe.taught} are more than a minibatch."
        raise ConfigError(f"run.training.{role}.taught does not fit.", why, "Lower one of them.")


def _check_refill(run: RunConfig) -> None:
    """Tasks are asked for in place of others where the student learns from contrast, and attempts can have any."""
    recipe = run.training.student
    contrast = run.attempts > 1 and recipe.enabled and objectives()[recipe.objective].contrast
    if run.refill > 1 and (run.most_tasks == run.tasks or not contrast):
        why = f"That is {run.most_tasks} of {run.tasks} tasks." if contrast else "Nothing learns from contrast."
        fix = (
            "Set it to 1 (for a retraining: --set refill=1); or to more, with several attempts a task and an objective "
            "such as grpo."
        )
        raise ConfigError(f"run.refill = {run.refill:g} has no effect.", why, fix)


def _check_steps_off_policy(run: RunConfig) -> None:
    """Proposals that judge a teacher must be its own."""
    plan = run.training
    if plan.steps_off_policy and run.has_teacher and plan.learning("teacher") and run.evaluation.teacher_gate != "open":
        why = "A teacher is judged by the proposals of the next iteration, and those are written while it trains."
        fix = "Set run.evaluation.teacher_gate = open, or run.training.schedule = student."
        raise ConfigError("run.training.steps_off_policy = 1 does not fit.", why, fix)


def _check_window(role: str, recipe: RecipeConfig) -> None:
    """What earlier checkpoints wrote is of use to some objectives only."""
    if recipe.window > recipe.every and not objectives()[recipe.objective].off_policy:
        why = f"{recipe.objective} learns from what its parent wrote, which is no more than `every` iterations."
        raise ConfigError(f"run.training.{role}.window does not fit.", why, f"Set it to {recipe.every}, or use awr.")
    if role == "student" and recipe.baseline != "iteration":
        why = "A student's attempts are compared inside their task."
        raise ConfigError("run.training.student.baseline has no effect.", why, "Leave it out.")


def _check_taught(actor: ActorConfig, recipe: RecipeConfig) -> None:
    """What the base was taught must be there to be replayed, where the base itself is here."""
    folder_of = provider_of(actor).folder
    folder = folder_of(actor) if folder_of else None
    if (recipe.taught or recipe.settle) and folder and folder.is_dir() and not (folder / FILE).is_file():
        fix = "Set run.training.student.taught and settle to 0, or name a base of `agent0 tiny build --course climb`."
        raise ConfigError("What the base was taught cannot be replayed.", f"There is no {folder / FILE}.", fix)


def _check_verification(plan: VerificationConfig) -> None:
    require_known("run.verification.unchecked", [plan.unchecked], ["refuse", *collective()])
    if plan.judge.provider:
        provider_of(plan.judge)
        require_known("run.verification.judge.prompts", [plan.judge.prompts], styles())


WEIGHT = "run.rewards.weights.student_gain"


def check_gain(run: RunConfig) -> None:
    """What is rewarded must be measured, and what is measured must be a student's short training on a ladder.

    Raises:
        ConfigError: it is not.
    """
    plan, recipe = run.rewards.gain, run.training.student
    if not plan.subsets:
        if run.rewards.weights.get("student_gain"):
            raise ConfigError(f"{WEIGHT} has no effect.", "No gain is measured.", "Set run.rewards.gain.subsets = 4.")
        return
    fix = "Set it to 0, or start from profile climb-teacher."
    if not run.has_teacher:
        why = "All tasks are rows of a file, and no teacher earns anything."
        raise ConfigError("run.rewards.gain.subsets has no effect.", why, "Set it to 0.")
    if plan.subsets == 1:
        raise ConfigError("run.rewards.gain.subsets = 1 does not fit.", "There is nothing to compare it with.", fix)
    if not (recipe.enabled and recipe.steps):
        why = "Short trainings are of a student that learns in steps (run.training.student.steps)."
        raise ConfigError("run.rewards.gain does not fit.", why, fix)
    if not on_ladder(run):
        why = "Gains are measured on tasks beyond a frontier, and not every family is a ladder."
        raise ConfigError("run.rewards.gain does not fit.", why, fix)
