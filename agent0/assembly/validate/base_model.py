"""Part of the rim: whether the adapters that a run would go on with are of the models that its settings name."""

import asyncio
from collections.abc import Collection

from agent0.assembly.runtime.providers import provider_of
from agent0.errors import ConfigError
from agent0.evaluation.checkpoint_registry import kept
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.runs import RunStarted
from agent0.events.values import Artifact, Role
from agent0.infra.log.event_log import Log
from agent0.infra.weights.safetensors_io import digest
from agent0.provenance.fork_history import read_branch
from agent0.run.lifecycle import RunState
from agent0.settings import ActorConfig, RunConfig


async def check_bases(log: Log, state: RunState, config: RunConfig) -> None:
    """A LoRA of one base may have the shapes of another, so digests decide; where either is not known, names.

    Raises:
        ConfigError: ``state`` holds an adapter of another base than ``config`` names for its role.
    """
    bases: dict[Artifact, tuple[Role, str]] = {}
    async for stored in read_branch(log, state.run, ["RunStarted", "CheckpointTrained"]):
        match stored.event:
            case CheckpointTrained(adapter=Artifact() as adapter) as event:
                bases[adapter] = event.role, str(event.environment.get("base", ""))
            case RunStarted(student_adapter=Artifact() as adapter, student_base=base):
                bases[adapter] = "student", base
    for checkpoint in kept(state):
        if checkpoint.adapter is None or checkpoint.adapter not in bases:
            continue
        role, trained_on = bases[checkpoint.adapter]
        before, after = (_actor(plan, role) for plan in (state.config, config))
        actual = await _base(after)
        fits = (
            trained_on == actual
            if trained_on and actual
            else (before.provider, before.model) == (after.provider, after.model)
        )
        if not fits:
            _refuse(state, checkpoint.id, role, after, trained_on, actual)


async def check_trained_on(log: Log, run: str, roles: Collection[Role], plan: RunConfig) -> None:
    """Checkpoints of ``run`` that went on from the base itself name no adapter that would not fit another one.

    Raises:
        ConfigError: the models that ``plan`` names for ``roles`` have other weights than those that ``run`` trained.
    """
    trained_on: dict[Role, str] = {}
    async for stored in read_branch(log, run, ["CheckpointTrained"]):
        event = stored.event
        if isinstance(event, CheckpointTrained) and event.role in roles and event.environment.get("base"):
            trained_on[event.role] = str(event.environment["base"])
    for role, base in trained_on.items():
        actual = await _base(_actor(plan, role))
        if actual and actual != base:
            actor = _actor(plan, role)
            raise ConfigError(
                f"The {role}'s model of run {run} is not here any more: sha256 {base[:12]}….",
                f"{actor.provider} {actor.model}".strip() + f" has weights with sha256 {actual[:12]}….",
                f"Name the weights it was trained on: --set {role}.provider=transformers --set {role}.model=FOLDER",
            )


def _actor(plan: RunConfig, role: Role) -> ActorConfig:
    return plan.student if role == "student" else plan.teacher


async def _base(actor: ActorConfig) -> str:
    """The digest of the weights that ``actor`` names; empty where they are not here."""
    folder_of = provider_of(actor).folder
    folder = folder_of(actor) if folder_of else None
    there = folder is not None and any(folder.glob("*.safetensors"))
    return await asyncio.to_thread(digest, folder) if folder and there else ""


def _refuse(state: RunState, name: str, role: Role, actor: ActorConfig, trained_on: str, actual: str) -> None:
    where = f"provider {actor.provider}" + (f", model {actor.model!r}" if actor.model else "")
    digests = f" (sha256 {trained_on[:12]}…, that has {actual[:12]}…)" if trained_on and actual else ""
    raise ConfigError(
        f"{name}, a checkpoint of {state.run}, does not fit the {role}'s model: {where}.",
        f"Its adapter was trained on other weights{digests}.",
        f"Keep the model (settings {role}.provider and {role}.model), or fork at an event before the first promotion.",
    )
