"""Part of the rim: whether the models of a run are there: packages, keys, folders, chat templates, servers."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from agent0.assembly.routing.billing import actors_of
from agent0.assembly.runtime.model_folders import require_folder
from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.room import Check
from agent0.assembly.validate.template_check import calls_of_model
from agent0.errors import Agent0Error, RequirementsError
from agent0.infra.engine.folder_template import form_of_folder
from agent0.infra.models.transformers import BASE, PACKAGED, check_folder
from agent0.infra.weights.gguf import chat_template
from agent0.infra.weights.gguf_header import file_template, is_gguf
from agent0.infra.weights.readable import check_readable
from agent0.settings import ActorConfig, Settings, StudentConfig
from agent0.settings.roles import is_packaged

DAMAGED = "Download or save the model again."


async def models(settings: Settings) -> list[Check]:
    """Each model once: its folder or server, and where it is loaded here, its chat template."""
    check_folder(BASE)
    size = sum(file.stat().st_size for file in BASE.iterdir())
    checks = [Check("tiny model", "ok", f"{size / (1 << 20):.1f} MiB, packaged")]
    for role, actor in actors_of(settings).items():
        checks += [
            replace(check, name=f"{role} model", fix=check.fix.replace("<role>", role))
            for check in await _model(actor, settings, trained=settings.run.training.learning(role) is not None)
        ]
    return checks + await _shared_bases(settings)


async def _shared_bases(settings: Settings) -> list[Check]:
    """Roles whose models share the weights of one base at an Ollama, which has one of them in memory at a time."""
    actors = {role: actor for role, actor in actors_of(settings).items() if actor.provider == "ollama"}
    if not actors:
        return []
    from agent0.infra.models.ollama.facts import look
    from agent0.infra.models.ollama.provider import STUDENT, TEACHER

    bases: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
    for role, actor in actors.items():
        url = settings.models.ollama_address(actor)
        model = actor.model or (STUDENT if isinstance(actor, StudentConfig) else TEACHER)
        base = (await look(url, model)).base or model
        bases.setdefault((url, base), {})[role] = model, actor.num_ctx
    return [_reloading(roles) for roles in bases.values() if len(set(roles.values())) > 1]


def _reloading(roles: Mapping[str, tuple[str, int]]) -> Check:
    """The warning that ``roles`` (role to model and window) make a server load their one base again and again."""
    loads = ", ".join(f"{role}: {model}, num_ctx {size}" for role, (model, size) in roles.items())
    why = f"One base, which the server loads anew at each change between them ({loads})."
    fix = "Give both roles one model and one num_ctx, or serve them from two servers."
    return Check("ollama memory", "warn", why, fix)


async def _model(actor: ActorConfig, settings: Settings, *, trained: bool) -> list[Check]:
    """All that is wrong with it at once: packages and key, its folder with the chat template, and its server. Of one
    that is ``trained``, what that needs is made."""
    provider, folder = provider_of(actor), weights_of(actor)
    looks = [partial(provider.check, actor)] if provider.check else []
    looks += [partial(_templated, folder), partial(_loadable, folder)] if folder else []
    if (file := template_of(actor)) and is_gguf(file):
        looks.append(partial(_templated_file, file))
    failures = dict.fromkeys(check for look in looks if (check := _failed(look)))
    if trained and provider.prepare and not failures and not provider.untrainable(actor):
        failures |= dict.fromkeys(filter(None, [await asyncio.to_thread(_failed, partial(provider.prepare, actor))]))
    report = f"provider {provider.name} {actor.model}".strip()
    try:
        report = await provider.probe(actor, settings) if provider.probe else report
    except (Agent0Error, OSError) as error:
        failures[_failure(error)] = None
    except ModuleNotFoundError:
        if not failures:  # else the check of packages has named it
            raise
    taught = "" if failures else _taught(actor)
    if isinstance(taught, Check):
        return [taught]
    return [*failures] or [Check("", "ok", f"{report}; {taught}" if taught else report)]


def _taught(actor: ActorConfig) -> str | Check:
    """What its chat template makes of calls; nothing where that is not at hand, or the model was taught our form."""
    template = template_of(actor)
    if template is None or not template.exists() or is_packaged(actor.provider, actor.model):
        return ""
    try:
        return calls_of_model(template)
    except Agent0Error as error:
        return _failure(error)


def _failed(look: Callable[[], object]) -> Check | None:
    try:
        look()
    except (Agent0Error, OSError) as error:
        return _failure(error)
    except (ValueError, TypeError, AttributeError, KeyError) as error:  # of a file that is not what its name says
        return Check("", "fail", f"Its files cannot be read: {type(error).__name__}: {error}.", DAMAGED)
    return None


def _failure(error: Agent0Error | OSError) -> Check:
    if isinstance(error, Agent0Error):
        return Check("", "fail", f"{error.what} {error.why}".strip(), error.fix)
    return Check("", "fail", str(error))


def _loadable(folder: Path) -> None:
    if folder.is_dir() and folder not in PACKAGED.values():
        check_readable(folder)


def _templated(folder: Path) -> None:
    """Look at the chat template of a model's folder.

    Raises:
        Agent0Error: there is no such folder, no template, or one that does not take what a run says.
    """
    require_folder(folder)
    if not (template := chat_template(folder)):
        fix = "Take an instruct model: its tokenizer_config.json has a chat_template."
        raise RequirementsError("This model has no chat template.", f"Folder {folder}.", fix)
    form_of_folder(folder, template)


def _templated_file(file: Path) -> None:
    """Raises RequirementsError where a GGUF ``file``, which is there, has no chat template."""
    if file.is_file() and not file_template(file)[0]:
        fix = "Take an instruct model's file: tokenizer.chat_template is in it."
        raise RequirementsError("This model has no chat template.", f"File {file}.", fix)


def weights_of(actor: ActorConfig) -> Path | None:
    """The folder that ``actor``'s weights or tokenizer are in on this machine; None where it names none."""
    folder_of = provider_of(actor).folder
    path = folder_of(actor) if folder_of else Path()
    return None if path == Path() else path


def template_of(actor: ActorConfig) -> Path | None:
    """The folder or GGUF file that has ``actor``'s chat template on this machine; None where it names none."""
    file = Path(actor.model).expanduser()
    return file if actor.provider == "llamacpp" and is_gguf(file) else weights_of(actor)
