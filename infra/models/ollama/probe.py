"""What an Ollama server is asked before a run."""

from ollama import AsyncClient, ResponseError

from agent0.errors import OperationError, RefusedError
from agent0.infra.models.llama_server import authorities
from agent0.infra.models.ollama.errors import ELSEWHERE, FAILURES, elsewhere, named, refusal
from agent0.infra.models.ollama.facts import ASK_S
from agent0.infra.models.ollama.provider import STUDENT, Ollama
from agent0.infra.models.tool_text import ATTEMPT
from agent0.settings import ActorConfig

LOAD_S = 120.0
"""Seconds in which a model must be loaded and write a word, before a run."""


async def probe(url: str, model: str) -> str:
    """One line on ``model`` as the server at ``url`` has it; nothing is generated.

    Raises:
        DependencyError, TransientError: as ``Ollama.generate``; or what answers is no Ollama.
        OperationError: the model writes no text.
    """
    client = AsyncClient(url, timeout=ASK_S, verify=authorities(), follow_redirects=False)
    try:
        facts = await client.show(model)
    except FAILURES as error:
        if isinstance(error, ResponseError) and error.status_code in ELSEWHERE and (other := await elsewhere(url)):
            raise other from error
        raise await named(refusal(error, url, model), url, model) from error
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    if facts.capabilities and "completion" not in facts.capabilities:
        why = f"It can: {', '.join(facts.capabilities)}."
        raise OperationError(f"The model {model} of Ollama writes no text.", why, f"Run `ollama pull {STUDENT}`.")
    details = facts.details
    size = f"{details.parameter_size} {details.quantization_level}" if details else "size unknown"
    return f"{model} ({size}); {', '.join(facts.capabilities or ()) or 'capabilities unknown'}"


async def try_chat(actor: ActorConfig, url: str, free: bool = True) -> str:
    """Have the model of ``actor`` write one token after the result of a tool call, as a run sends it: a server may
    refuse every chat of a model that it shows. The model is loaded for it, which ``LOAD_S`` are given for.

    Returns a line on its context window, where that is not what was asked for.

    Raises:
        OperationError: its template does not take such a conversation.
        DependencyError, TransientError: as ``Ollama.generate``.
    """
    model = Ollama(actor.model_copy(update={"timeout_s": min(actor.timeout_s, LOAD_S)}), url, free)
    try:
        await model.generate(ATTEMPT)
        return model.window_note
    except RefusedError:
        raise
    except OperationError as error:
        name = model.name.removeprefix("ollama/")
        what = f"The model {name} of Ollama does not take a conversation with the result of a tool call."
        fix = f"See its template: ollama show --template {name}. Or take another: ollama pull {STUDENT}"
        raise OperationError(what, error.why, fix) from None
    finally:
        await model.close()
