"""Turns that were written, in the shape of OpenAI's API: whole, or in parts."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent0.api.openai.wire import ChatRequest
from agent0.ports.models import Generation
from agent0.rollout.parsing import parse_turn

Row = dict[str, Any]


def whole(asked: ChatRequest, head: Row, written: Sequence[Generation]) -> Row:
    """The response to a request that wants no stream."""
    choices = [_choice(asked, number, one) for number, one in enumerate(written)]
    found = {
        **head,
        **_served(asked, written),
        "object": "chat.completion",
        "choices": choices,
        "usage": usage(written),
    }
    return found | ({"prompt_token_ids": [*written[0].prompt_ids]} if asked.return_token_ids else {})


def parts(asked: ChatRequest, head: Row, written: Sequence[Generation]) -> Iterator[Row]:
    """The same in parts, a token each where the provider separates tokens. A turn is written whole before its first
    part is sent: nothing has to be taken back."""
    head = {**head, **_served(asked, written), "object": "chat.completion.chunk"}
    ids = {"prompt_token_ids": [*written[0].prompt_ids]} if asked.return_token_ids else {}
    for number, one in enumerate(written):
        yield {**head, **ids, "choices": [_delta(number, {"role": "assistant", "content": ""})]}
        ids, message = {}, _message(asked, one)
        for text, token in _pieces(one) if "tool_calls" not in message else ():
            more: Row = (
                {"logprobs": {"content": [_logprob(one, token)]}} if asked.logprobs and token is not None else {}
            )
            more |= {"token_ids": [one.token_ids[token]]} if asked.return_token_ids and token is not None else {}
            yield {**head, "choices": [_delta(number, {"content": text}, **more)]}
        if calls := message.get("tool_calls"):
            listed = [{"index": n, **call} for n, call in enumerate(calls)]
            own: Row = {"token_ids": [*one.token_ids]} if asked.return_token_ids else {}
            own |= {"logprobs": _logprobs(one)} if asked.logprobs else {}
            yield {**head, "choices": [_delta(number, {"content": message["content"], "tool_calls": listed}, **own)]}
        yield {**head, "choices": [{**_delta(number, {}), "finish_reason": _finish(one, message)}]}
    if asked.stream_options and asked.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage(written)}


def last_parts(asked: ChatRequest, head: Row, written: Generation) -> Iterator[Row]:
    """What follows the text of a turn that was sent while it was written."""
    head = {**head, **_served(asked, [written])}
    yield {**head, "choices": [{**_delta(0, {}), "finish_reason": written.finish}]}
    if asked.stream_options and asked.stream_options.include_usage:
        yield {**head, "choices": [], "usage": usage([written])}


def _served(asked: ChatRequest, written: Sequence[Generation]) -> Row:
    """Which models wrote, where several may: the one that is asked first is no less a choice than those behind it."""
    authors = dict.fromkeys(one.author or (one.model if asked.chooses else "") for one in written)
    authors.pop("", None)
    return {"served_by": ", ".join(authors)} if authors else {}


def usage(written: Sequence[Generation]) -> Row:
    """Tokens of all choices; the prompt counts once."""
    prompt = written[0].usage.prompt_tokens
    completion = sum(one.usage.completion_tokens for one in written)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _choice(asked: ChatRequest, number: int, one: Generation) -> Row:
    message = _message(asked, one)
    logprobs = _logprobs(one) if asked.logprobs else None
    found = {"index": number, "message": message, "finish_reason": _finish(one, message), "logprobs": logprobs}
    return found | ({"token_ids": [*one.token_ids]} if asked.return_token_ids else {})


def _message(asked: ChatRequest, one: Generation) -> Row:
    """The message; calls are read from the text where tools were offered."""
    calls = [call for call in parse_turn(one.text).calls if not call.error] if asked.specs() else []
    if not calls:
        return {"role": "assistant", "content": one.text, "refusal": None}
    before = one.text.partition(calls[0].raw)[0].removesuffix("<tool_call>").strip()
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for number, call in enumerate(calls)
    ]
    return {"role": "assistant", "content": before or None, "refusal": None, "tool_calls": made}


def _finish(one: Generation, message: Row) -> str:
    return "tool_calls" if "tool_calls" in message else one.finish


def _delta(number: int, delta: Row, **more: Any) -> Row:
    return {"index": number, "delta": delta, "finish_reason": None, **more}


def _pieces(one: Generation) -> Iterator[tuple[str, int | None]]:
    """The text of each token with its place; the whole text where the provider does not tell tokens apart."""
    if len(one.ends) != len(one.token_ids) or not one.ends:
        yield one.text, None
        return
    start = 0
    for place, end in enumerate(one.ends):
        yield one.text[start:end], place
        start = end
    if one.text[start:]:
        yield one.text[start:], None


def _logprobs(one: Generation) -> Row:
    return {"content": [_logprob(one, place) for place in range(len(one.logprobs))], "refusal": None}


def _logprob(one: Generation, place: int) -> Row:
    """One token: its text as far as it is known, its log-probability, and no others."""
    known = len(one.ends) == len(one.logprobs)
    text = one.text[(one.ends[place - 1] if place else 0) : one.ends[place]] if known else ""
    return {"token": text, "logprob": one.logprobs[place], "bytes": [*text.encode()], "top_logprobs": []}
