"""Requests and answers as JSON, as the cache and the artifacts keep them."""

import json
from dataclasses import asdict
from typing import Any

from agent0.events.values import Usage
from agent0.ports.models import GenerateRequest, Generation, Served

TUPLES = ("token_ids", "logprobs", "prompt_ids", "ends", "margins")


def request_json(request: GenerateRequest) -> str:
    """Everything of ``request`` that an answer depends on, its seed and adapter included, in one canonical form: not
    what it is for."""
    fields: dict[str, Any] = {
        "turns": [turn.model_dump(exclude_defaults=True, exclude={"thinking"}) for turn in request.turns],
        "tools": [asdict(tool) for tool in request.tools],
        "sampling": asdict(request.sampling),
        "adapter": request.adapter.sha256 if request.adapter else "",
        "prefill": request.prefill,
        "schema": request.schema,
    }
    return json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def answer_json(written: Generation) -> str:
    """An answer as it can be read again, without the rate limits of its moment."""
    served = {key: value for key, value in vars(written.served).items() if key != "limits"}
    fields = {**vars(written), "usage": written.usage.model_dump(), "served": served}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_answer(text: str) -> Generation:
    """Read what ``answer_json`` wrote.

    Raises:
        ValueError, TypeError, KeyError: it did not.
    """
    fields = json.loads(text)
    lists = {name: tuple(fields.get(name, ())) for name in TUPLES}
    return Generation(**{**fields, **lists, "usage": Usage(**fields["usage"]), "served": Served(**fields["served"])})
