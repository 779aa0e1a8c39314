"""Part of the rim: why a provider cannot do what an actor has set: think, render a template with arguments, be trained
on. Each reason is empty where it can."""

from pathlib import Path

from agent0.settings import ActorConfig

LEAST_THINKING = 2048
"""Tokens a turn from which Anthropic's smallest budget of thoughts is half."""


def none(actor: ActorConfig) -> str:
    """Say what a provider that has neither switch cannot do."""
    return no_template(actor) or _no_thoughts(actor)


def no_template(actor: ActorConfig) -> str:
    """Of a provider whose templates take no arguments."""
    named = ", ".join(actor.template_arguments)
    return f"It takes no arguments of a chat template, and template_arguments names {named}." if named else ""


def _no_thoughts(actor: ActorConfig) -> str:
    return f"It has no switch for thinking, and thinking = {actor.thinking}." if actor.thinking else ""


def all_of_them(_: ActorConfig) -> str:
    """Say nothing: a provider that has every switch can do all of it."""
    return ""


def anthropic(actor: ActorConfig) -> str:
    """What Anthropic's API refuses: a budget under 1,024 tokens, and another temperature than 1."""
    if actor.thinking == "minimal":
        return "thinking = minimal is no level of its API: low, medium, high, on or off."
    if actor.thinking == "on" and actor.max_tokens < LEAST_THINKING:
        return f"thinking = on takes half of max_tokens, which is {actor.max_tokens}; it must be {LEAST_THINKING}."
    if actor.thinking not in ("", "off") and actor.temperature != 1:
        return f"Where it thinks, the temperature is 1, and it is set to {actor.temperature:g}."
    return no_template(actor)


def untrainable_by_server(actor: ActorConfig) -> str:
    """Why turns of a server at an address cannot be trained on."""
    folder = Path(actor.tokenizer).expanduser()
    if not actor.tokenizer:
        return "Its prompts go as text and no token ids come back: tokenizer is empty."
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        return f"The folder in tokenizer, {actor.tokenizer}, holds no weights."
    return sampled_otherwise(actor)


def sampled_otherwise(actor: ActorConfig) -> str:
    """Why log-probabilities of a server are not those of what it samples from."""
    if actor.temperature != 1 or actor.top_p != 1:
        return "A server's log-probabilities are those of temperature 1 and top_p 1, and it is to sample otherwise."
    return ""
