"""Turns that were written, in the shape of OpenAI's API: whole, or in parts."""

import json
import secrets
from collections.abc import Iterator, Sequence

from agent0.api.openai.wire import ChatRequest
from agent0.chat_format import OPEN
from agent0.ports.models import Generation
from agent0.rollout.parsing import parse_turn

Json = dict[str, object]


def whole(request: ChatRequest, head: Json, generations: Sequence[Generation]) -> Json:
    """The response to a request that wants no stream."""
    choices = [_choice(request, number, generation) for number, generation in enumerate(generations)]
    body = {
        **head,
        **_answering_models(request, generations),
        "object": "chat.completion",
        "choices": choices,
        "usage": usage(generations),
    }
    return body | ({"prompt_token_ids": [*generations[0].prompt_ids]} if request.return_token_ids else {})


def parts(request: ChatRequest, head: Json, generations: Sequence[Generation]) -> Iterator[Json]:
    """The same in parts, a token each where the provider separates tokens. A turn is written whole before its first
    part is sent: nothing has to be taken back."""
    head = {**head, **_answering_models(request, generations), "object": "chat.completion.chunk"}
    ids = {"prompt_token_ids": [*generations[0].prompt_ids]} if request.return_token_ids else {}
    for number, generation in enumerate(generations):
        yield {**head, **ids, "choices": [delta({"role": "assistant", "content": ""}, number)]}
        ids, (content, calls) = {}, written(request, generation)
        for text, token in _pieces(generation) if not calls else ():
            more: Json = {}
            if request.logprobs and token is not None:
                more["logprobs"] = {"content": [_logprob(generation, token)]}
            if request.return_token_ids and token is not None:
                more["token_ids"] = [generation.token_ids[token]]
            yield {**head, "choices": [delta({"content": text}, number) | more]}
        if calls:
            listed = [{"index": n, **call} for n, call in enumerate(calls)]
            extra: Json = {"token_ids": [*generation.token_ids]} if request.return_token_ids else {}
            extra |= {"logprobs": sampled_logprobs(generation)} if request.logprobs else {}
            yield {**head, "choices": [delta({"content": content, "tool_calls": listed}, number) | extra]}
        yield {**head, "choices": [delta({}, number) | {"finish_reason": "tool_calls" if calls else generation.finish}]}
    if request.stream_options and request.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage(generations)}


def last_parts(request: ChatRequest, head: Json, generation: Generation) -> Iterator[Json]:
    """What follows the text of a turn that was sent while it was written."""
    head = {**head, **_answering_models(request, [generation])}
    yield {**head, "choices": [delta({}) | {"finish_reason": generation.finish}]}
    if request.stream_options and request.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage([generation])}


def _answering_models(request: ChatRequest, generations: Sequence[Generation]) -> Json:
    """Which models wrote, where several may: the one that is asked first is no less a choice than those behind it."""
    authors = dict.fromkeys(
        generation.author or (generation.model if request.chooses else "") for generation in generations
    )
    authors.pop("", None)
    return {"served_by": ", ".join(authors)} if authors else {}


def usage(generations: Sequence[Generation]) -> Json:
    """Tokens of all choices; the prompt counts once."""
    prompt = generations[0].usage.prompt_tokens
    completion = sum(generation.usage.completion_tokens for generation in generations)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _choice(request: ChatRequest, number: int, generation: Generation) -> Json:
    content, calls = written(request, generation)
    message: Json = {"role": "assistant", "content": content, "refusal": None}
    message |= {"tool_calls": calls} if calls else {}
    finish = "tool_calls" if calls else generation.finish
    logprobs = sampled_logprobs(generation) if request.logprobs else None
    body: Json = {"index": number, "message": message, "finish_reason": finish, "logprobs": logprobs}
    return body | ({"token_ids": [*generation.token_ids]} if request.return_token_ids else {})


def written(request: ChatRequest, generation: Generation) -> tuple[str | None, list[Json]]:
    """The content of a message, and its tool calls, which are read from the text where tools were offered. Who sends
    both back asks for what the model wrote, token by token, where it writes calls as its template does."""
    calls = [call for call in parse_turn(generation.text).calls if not call.error] if request.specs() else []
    if not calls:
        return generation.text, []
    before = generation.text.partition(calls[0].raw)[0]
    before = before.rstrip().removesuffix(OPEN) if before.rstrip().endswith(OPEN) else before
    tool_calls: list[Json] = [
        {
            "id": f"call_{secrets.token_hex(8)}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in calls
    ]
    return before or None, tool_calls


def delta(delta: Json, number: int = 0) -> Json:
    """What a part adds to the choice of this number."""
    return {"index": number, "delta": delta, "finish_reason": None}


def _pieces(generation: Generation) -> Iterator[tuple[str, int | None]]:
    """The text of each token with its place; the whole text where the provider does not tell tokens apart."""
    if len(generation.ends) != len(generation.token_ids) or not generation.ends:
        yield generation.text, None
        return
    start = 0
    for position, end in enumerate(generation.ends):
        yield generation.text[start:end], position
        start = end
    if generation.text[start:]:
        yield generation.text[start:], None


def sampled_logprobs(generation: Generation) -> Json:
    """The log-probabilities of a turn, token by token."""
    return {
        "content": [_logprob(generation, position) for position in range(len(generation.logprobs))],
        "refusal": None,
    }


def _logprob(generation: Generation, position: int) -> Json:
    """One token: its text as far as it is known, its log-probability, and no others."""
    aligned = len(generation.ends) == len(generation.logprobs)
    text = (
        generation.text[(generation.ends[position - 1] if position else 0) : generation.ends[position]]
        if aligned
        else ""
    )
    return {"token": text, "logprob": generation.logprobs[position], "bytes": [*text.encode()], "top_logprobs": []}
