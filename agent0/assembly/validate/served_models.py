"""Part of the rim: what a run begins with at servers of OpenAI's API: model, context, and whether it trains."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from agent0.assembly.routing.actor_limits import sampled_otherwise
from agent0.assembly.routing.server_probes import described, server_profile
from agent0.assembly.validate.room import longest
from agent0.errors import Agent0Error, RequirementsError
from agent0.settings import ActorConfig, RunConfig, Settings, StudentConfig

if TYPE_CHECKING:
    from agent0.infra.models.openai.provider import Profile

LEAST = 64
"""Tokens a turn below which nothing sensible is written."""
LARGER = (
    "Start the server with a larger context (llama-server -c 8192; vllm serve --max-model-len 8192; "
    "OLLAMA_CONTEXT_LENGTH=8192 ollama serve), or lower run.student.max_turns."
)


def undecided(settings: Settings) -> tuple[str, ...]:
    """Roles at a server without a setting for their training or the folder of their weights."""
    return tuple(
        role
        for role, actor in _served(settings.run).items()
        if not actor.tokenizer and f"run.training.{role}.enabled" not in settings.own
    )


def untrained(run: RunConfig, roles: Collection[str]) -> RunConfig:
    """Return ``run`` with the training of each of its ``roles`` switched off."""
    plan = {role: getattr(run.training, role).model_copy(update={"enabled": False}) for role in roles}
    return run.model_copy(update={"training": run.training.model_copy(update=plan)})


async def with_servers(settings: Settings, roles: Collection[str]) -> tuple[RunConfig, list[str]]:
    """Ask the servers of OpenAI's API that a run of ``settings`` names, once each.

    Returns the run with their models by name, no more tokens a turn than fit their context, and a training of the
    student, where it is one of the undecided ``roles`` and the server takes adapters of weights that are here; and a
    line for a person on each server and on that training.

    Raises:
        RequirementsError: a context in which no conversation of the run has room.
        DependencyError, TransientError, OperationError, AuthError: from the server.
    """
    run, lines = settings.run, dict[str, list[str]]()
    asked = dict[tuple[str, ...], "Profile | None"]()
    student: Profile | None = None
    for role, actor in _served(run).items():
        server = (actor.base_url, actor.model, actor.tokenizer, actor.key_env, actor.thinking)
        profile = asked[server] = asked[server] if server in asked else await server_profile(actor, settings, 0)
        student = profile if role == "student" else student
        if profile is None:
            continue
        key, tokens = f"run.{role}.max_tokens", _tokens(role, actor, profile.context)
        chosen = actor.max_tokens if key in settings.typed else tokens
        run = run.model_copy(update={role: actor.model_copy(update={"model": profile.model, "max_tokens": chosen})})
        lines.setdefault(described(profile, actor), []).append(role)
        if tokens != chosen:
            lines[f"With {key}={chosen} conversations may get longer than that context; {tokens} would fit."] = []
        elif tokens != actor.max_tokens:
            lines[f"{key} is {tokens}, not {actor.max_tokens}: more does not fit that context."] = []
    said = [f"{' and '.join(of).capitalize()}: {line}." if of else line for line, of in lines.items()]
    if "student" in roles and student:
        run, line = await _with_training(settings.model_copy(update={"run": run}), student)
        said.append(line)
    return run, said


async def _with_training(settings: Settings, profile: "Profile") -> tuple[RunConfig, str]:
    """The run with its student's training, where that can be; and a line on it."""
    run, student, recipe = settings.run, settings.run.student, settings.run.training.student
    folder = Path(profile.files).expanduser().absolute() if profile.files else Path()
    why = _obstacle(profile, student, folder)
    if not why:
        student = student.model_copy(update={"tokenizer": str(folder)})
        try:
            await server_profile(student, settings, recipe.rank or 1)
        except Agent0Error as error:
            why = f"{error.what.rstrip('.')}. {error.why} {error.fix}".strip()
    if why:
        return run, f"The student is not trained. {why}"
    training = run.training.model_copy(update={"student": recipe.model_copy(update={"enabled": True})})
    line = f"The student is trained on {folder}; the server is given each new adapter (rank {recipe.rank})."
    return run.model_copy(update={"student": student, "training": training}), line


def _obstacle(profile: "Profile", student: ActorConfig, folder: Path) -> str:
    """Why the weights in ``folder`` cannot be trained for the server; empty where it can be tried."""
    if profile.kind == "llama.cpp":
        command = f"agent0 run start --profile llamacpp --model {profile.files}"
        own = f"{command} starts a server itself, again with each adapter." if Path(profile.files).is_file() else ""
        return f"llama.cpp takes adapters only when it starts. {own}".strip()
    if folder == Path() or not any(folder.glob("*.safetensors")):
        fix = "To train, name their folder: --set run.student.tokenizer=FOLDER --set run.training.student.enabled=true"
        return f"The weights of the server's model are not here. {fix}"
    return sampled_otherwise(student)


def _served(run: RunConfig) -> dict[str, ActorConfig]:
    """The roles that servers at an address play."""
    roles: dict[str, ActorConfig] = {"student": run.student} | ({"teacher": run.teacher} if run.has_teacher else {})
    return {role: actor for role, actor in roles.items() if actor.provider == "openai"}


def _tokens(role: str, actor: ActorConfig, context: int) -> int:
    """The tokens a turn of ``actor`` with which its longest conversation fits ``context`` (0: not known).

    Raises:
        RequirementsError: they are too few.
    """
    turns = actor.max_turns if isinstance(actor, StudentConfig) else 1
    whole, written = longest(actor)
    tokens = (context - (whole - written)) // turns
    if not context or tokens >= actor.max_tokens:
        return actor.max_tokens
    if tokens < LEAST:
        why = f"A call may have {context:,} tokens; {turns} turns of the {role} need {whole:,}."
        raise RequirementsError("The server's context is too small.", why, LARGER)
    return tokens
