"""Part of the rim: whether the models of a run are there: packages, keys, folders, chat templates, servers."""

from dataclasses import replace
from pathlib import Path

from agent0.assembly.routing.billing import actors_of
from agent0.assembly.runtime.providers import provider_of, require_folder
from agent0.assembly.validate.check import Check
from agent0.errors import Agent0Error, RequirementsError
from agent0.settings import ActorConfig, Settings


async def models(settings: Settings) -> list[Check]:
    """Each model once: its folder or server, and where it is loaded here, its chat template."""
    from infra.models.tiny import BASE
    from infra.models.transformers import check_folder

    check_folder(BASE)
    size = sum(file.stat().st_size for file in BASE.iterdir())
    found = [Check("tiny model", "ok", f"{size / (1 << 20):.1f} MiB, packaged")]
    for role, actor in actors_of(settings).items():
        found += [replace(check, name=f"{role} model") for check in await _model(actor, settings)]
    return found


async def _model(actor: ActorConfig, settings: Settings) -> list[Check]:
    """All that is wrong with it at once: packages and key, its folder with the chat template, and its server."""
    held, found = provider_of(actor), dict[Check, None]()

    async def server() -> str:
        return await held.probe(actor, settings) if held.probe else f"provider {held.name} {actor.model}".strip()

    async def here() -> str:
        if held.check:
            held.check(actor)
        return ""

    async def folder() -> str:
        return _templated(place) if (place := weights_of(actor)) else ""

    said = ""
    for look in (here, folder, server):
        try:
            said = await look()
        except Agent0Error as error:
            found[Check("", "fail", f"{error.what} {error.why}".strip(), error.fix)] = None
        except OSError as error:
            found[Check("", "fail", str(error))] = None
    return [*found] or [Check("", "ok", said)]


def _templated(folder: Path) -> str:
    """Look at the chat template of a model's folder.

    Raises:
        Agent0Error: there is no such folder, no template, or one that does not take what a run says.
    """
    from infra.engine.folder_template import form_of_folder
    from infra.weights.gguf import chat_template

    require_folder(folder)
    if not (template := chat_template(folder)):
        fix = "Take an instruct model: its tokenizer_config.json has a chat_template."
        raise RequirementsError("This model has no chat template.", f"Folder {folder}.", fix)
    form_of_folder(folder, template)
    return ""


def weights_of(actor: ActorConfig) -> Path | None:
    """The folder that ``actor``'s weights or tokenizer are in on this machine; None where it names none."""
    place = provider_of(actor).folder
    path = place(actor) if place else Path()
    return None if path == Path() else path
