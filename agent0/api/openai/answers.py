"""Turns that were written, in the shape of OpenAI's API: whole, or in parts."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent0.api.openai.wire import ChatRequest
from agent0.ports.models import Generation
from agent0.rollout.parsing import parse_turn

Row = dict[str, Any]


def whole(request: ChatRequest, head: Row, generations: Sequence[Generation]) -> Row:
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


def parts(request: ChatRequest, head: Row, generations: Sequence[Generation]) -> Iterator[Row]:
    """The same in parts, a token each where the provider separates tokens. A turn is written whole before its first
    part is sent: nothing has to be taken back."""
    head = {**head, **_answering_models(request, generations), "object": "chat.completion.chunk"}
    ids = {"prompt_token_ids": [*generations[0].prompt_ids]} if request.return_token_ids else {}
    for number, generation in enumerate(generations):
        yield {**head, **ids, "choices": [_delta(number, {"role": "assistant", "content": ""})]}
        ids, message = {}, _message(request, generation)
        for text, token in _pieces(generation) if "tool_calls" not in message else ():
            more: Row = (
                {"logprobs": {"content": [_logprob(generation, token)]}}
                if request.logprobs and token is not None
                else {}
            )
            more |= (
                {"token_ids": [generation.token_ids[token]]} if request.return_token_ids and token is not None else {}
            )
            yield {**head, "choices": [_delta(number, {"content": text}, **more)]}
        if calls := message.get("tool_calls"):
            listed = [{"index": n, **call} for n, call in enumerate(calls)]
            extra: Row = {"token_ids": [*generation.token_ids]} if request.return_token_ids else {}
            extra |= {"logprobs": _logprobs(generation)} if request.logprobs else {}
            yield {**head, "choices": [_delta(number, {"content": message["content"], "tool_calls": listed}, **extra)]}
        yield {**head, "choices": [{**_delta(number, {}), "finish_reason": _finish(generation, message)}]}
    if request.stream_options and request.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage(generations)}


def last_parts(request: ChatRequest, head: Row, generation: Generation) -> Iterator[Row]:
    """What follows the text of a turn that was sent while it was written."""
    head = {**head, **_answering_models(request, [generation])}
    yield {**head, "choices": [{**_delta(0, {}), "finish_reason": generation.finish}]}
    if request.stream_options and request.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage([generation])}


def _answering_models(request: ChatRequest, generations: Sequence[Generation]) -> Row:
    """Which models wrote, where several may: the one that is asked first is no less a choice than those behind it."""
    authors = dict.fromkeys(
        generation.author or (generation.model if request.chooses else "") for generation in generations
    )
    authors.pop("", None)
    return {"served_by": ", ".join(authors)} if authors else {}


def usage(generations: Sequence[Generation]) -> Row:
    """Tokens of all choices; the prompt counts once."""
    prompt = generations[0].usage.prompt_tokens
    completion = sum(generation.usage.completion_tokens for generation in generations)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _choice(request: ChatRequest, number: int, generation: Generation) -> Row:
    message = _message(request, generation)
    logprobs = _logprobs(generation) if request.logprobs else None
    body = {"index": number, "message": message, "finish_reason": _finish(generation, message), "logprobs": logprobs}
    return body | ({"token_ids": [*generation.token_ids]} if request.return_token_ids else {})


def _message(request: ChatRequest, generation: Generation) -> Row:
    """The message; calls are read from the text where tools were offered."""
    calls = [call for call in parse_turn(generation.text).calls if not call.error] if request.specs() else []
    if not calls:
        return {"role": "assistant", "content": generation.text, "refusal": None}
    before = generation.text.partition(calls[0].raw)[0].removesuffix("<tool_call>").strip()
    tool_calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for number, call in enumerate(calls)
    ]
    return {"role": "assistant", "content": before or None, "refusal": None, "tool_calls": tool_calls}


def _finish(generation: Generation, message: Row) -> str:
    return "tool_calls" if "tool_calls" in message else generation.finish


def _delta(number: int, delta: Row, **more: Any) -> Row:
    return {"index": number, "delta": delta, "finish_reason": None, **more}


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


def _logprobs(generation: Generation) -> Row:
    return {
        "content": [_logprob(generation, position) for position in range(len(generation.logprobs))],
        "refusal": None,
    }


def _logprob(generation: Generation, position: int) -> Row:
    """One token: its text as far as it is known, its log-probability, and no others."""
    aligned = len(generation.ends) == len(generation.logprobs)
    text = (
        generation.text[(generation.ends[position - 1] if position else 0) : generation.ends[position]]
        if aligned
        else ""
    )
    return {"token": text, "logprob": generation.logprobs[position], "bytes": [*text.encode()], "top_logprobs": []}
