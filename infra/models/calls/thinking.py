"""How thinking is switched, in each kind of server's own words."""

from dataclasses import replace

from agent0.ports.models import GenerateRequest
from agent0.settings import ActorConfig

TEMPLATED = ("llama.cpp", "sglang", "vllm")
"""Servers that render a chat template with arguments of the request."""


def template_arguments(actor: ActorConfig) -> dict[str, object]:
    """The arguments of a chat template: what ``actor`` names, and ``enable_thinking`` (Qwen3, GLM, Nemotron) with
    ``reasoning_effort`` (gpt-oss) as its thinking is set."""
    switched: dict[str, object] = {"enable_thinking": actor.thinking != "off"} if actor.thinking else {}
    return switched | level_of(actor) | dict(actor.template_arguments)


def level_of(actor: ActorConfig) -> dict[str, object]:
    """Make the field ``reasoning_effort`` of a request, where a level is set."""
    return {"reasoning_effort": actor.thinking} if actor.thinking not in ("", "off", "on") else {}


def heeding(request: GenerateRequest, thinks: bool) -> GenerateRequest:
    """``request`` as it goes to a model that ``thinks``: without stop texts, which would end its thoughts, too."""
    if not thinks or not request.sampling.stop:
        return request
    return replace(request, sampling=replace(request.sampling, stop=()))


def chat_fields(actor: ActorConfig, kind: str) -> dict[str, object]:
    """Fields of a chat request in OpenAI's form to a server of this ``kind``: arguments of the template where it
    renders one, else ``reasoning_effort`` alone."""
    named = template_arguments(actor)
    if kind in TEMPLATED:
        return ({"chat_template_kwargs": named} if named else {}) | level_of(actor)
    arguments = dict(actor.template_arguments)
    fields: dict[str, object] = {"chat_template_kwargs": arguments} if arguments else {}
    effort = {"off": "none", "on": "medium"}.get(actor.thinking, actor.thinking)
    return fields | ({"reasoning_effort": effort} if effort else {})
