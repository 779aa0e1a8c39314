"""JSON schemas of the formats that attempts are exported in, written from their public documentation: what must be
there, of which type, and that nothing else is where a format forbids it."""

from typing import Any

IDS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
MESSAGE: dict[str, Any] = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "type", "function"],
                "properties": {
                    "type": {"const": "function"},
                    "function": {
                        "type": "object",
                        "required": ["name", "arguments"],
                        "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                    },
                },
            },
        },
    },
}
MESSAGES = {"type": "array", "items": MESSAGE}


def _closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


_TEXT, _OBJECT, _COUNT = {"type": "string"}, {"type": "object"}, {"type": "integer", "minimum": 0}
_RESULT = _closed([], source_call_id=_TEXT, content=_TEXT, extra=_OBJECT)
_METRICS = _closed(
    [],
    prompt_tokens=_COUNT,
    completion_tokens=_COUNT,
    cached_tokens=_COUNT,
    cost_usd={"type": "number"},
    prompt_token_ids=IDS,
    completion_token_ids=IDS,
    logprobs=NUMBERS,
    extra=_OBJECT,
)
_STEP = _closed(
    ["step_id", "source", "message"],
    step_id={"type": "integer", "minimum": 1},
    timestamp=_TEXT,
    source={"enum": ["system", "user", "agent"]},
    model_name=_TEXT,
    message=_TEXT,
    reasoning_content=_TEXT,
    tool_calls={
        "type": "array",
        "items": _closed(
            ["tool_call_id", "function_name", "arguments"],
            tool_call_id=_TEXT,
            function_name=_TEXT,
            arguments=_OBJECT,
            extra=_OBJECT,
        ),
    },
    observation=_closed(["results"], results={"type": "array", "items": _RESULT}),
    metrics=_METRICS,
    extra=_OBJECT,
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "atif": _closed(
        ["schema_version", "agent", "steps"],
        schema_version={"const": "ATIF-v1.8"},
        session_id=_TEXT,
        trajectory_id=_TEXT,
        agent=_closed(["name", "version"], name=_TEXT, version=_TEXT, model_name=_TEXT, extra=_OBJECT),
        steps={"type": "array", "minItems": 1, "items": _STEP},
        final_metrics=_closed(
            [],
            total_prompt_tokens=_COUNT,
            total_completion_tokens=_COUNT,
            total_cached_tokens=_COUNT,
            total_cost_usd={"type": "number"},
            total_steps=_COUNT,
            extra=_OBJECT,
        ),
        extra=_OBJECT,
    ),
    "inspect": {
        "type": "object",
        "required": ["version", "status", "eval", "samples"],
        "properties": {
            "version": {"const": 2},
            "status": {"enum": ["started", "success", "cancelled", "error"]},
            "eval": {"type": "object", "required": ["created", "task", "dataset", "model", "config"]},
            "samples": {
                "type": "array",
                "items": _closed(
                    ["id", "epoch", "input", "target"],
                    id=_TEXT,
                    epoch={"type": "integer", "minimum": 1},
                    input=_TEXT,
                    target=_TEXT,
                    messages={
                        "type": "array",
                        "items": _closed(
                            ["role", "content"],
                            role={"enum": ["system", "user", "assistant", "tool"]},
                            content={"type": ["string", "array"]},
                            tool_calls={
                                "type": "array",
                                "items": _closed(
                                    ["id", "function", "arguments"],
                                    id=_TEXT,
                                    type={"const": "function"},
                                    function=_TEXT,
                                    arguments=_OBJECT,
                                ),
                            },
                            tool_call_id=_TEXT,
                            function=_TEXT,
                        ),
                    },
                    scores={"type": "object", "additionalProperties": {"required": ["value"]}},
                    metadata=_OBJECT,
                ),
            },
        },
    },
    "openai-chat": {"type": "object", "required": ["messages"], "properties": {"messages": MESSAGES}},
    "openenv": _closed(
        ["schema_version", "turns"],
        schema_version={"const": 1},
        turns={
            "type": "array",
            "items": _closed(
                ["node_id", "prompt_token_ids", "completion_token_ids", "per_token_logps", "loss_mask"],
                node_id={"type": "string", "minLength": 1},
                prompt_token_ids=IDS,
                completion_token_ids=IDS,
                per_token_logps=NUMBERS,
                loss_mask={"type": "array", "items": {"enum": [0, 1]}},
                request=_OBJECT,
                response=_OBJECT,
                metadata=_OBJECT,
            ),
        },
    ),
    "pi": {
        "type": "object",
        "required": ["type", "id", "timestamp"],
        "properties": {
            "type": {"enum": ["session", "message"]},
            "version": {"const": 3},
            "message": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": {"enum": ["developer", "user", "assistant", "toolResult"]},
                    "content": {
                        "type": "array",
                        "items": {"properties": {"type": {"enum": ["text", "thinking", "toolCall"]}}},
                    },
                },
            },
        },
    },
    "verifiers": {
        "type": "object",
        "required": ["example_id", "prompt", "completion", "answer", "reward", "task", "info"],
        "properties": {
            "prompt": MESSAGES,
            "completion": MESSAGES,
            "answer": _TEXT,
            "reward": {"type": ["number", "null"]},
            "info": _OBJECT,
            "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
        },
    },
    "verifiers-trace": {
        "type": "object",
        "required": ["version", "id", "task", "nodes", "rewards"],
        "properties": {
            "version": {"const": 1},
            "nodes": {
                "type": "array",
                "items": _closed(
                    ["parent", "message"],
                    parent={"type": ["integer", "null"], "minimum": 0},
                    message={
                        "required": ["role", "content"],
                        "properties": {"tool_calls": {"items": {"required": ["id", "name", "arguments"]}}},
                        "if": {"properties": {"role": {"const": "tool"}}},
                        "then": {"required": ["tool_call_id"]},
                    },
                    sampled={"type": "boolean"},
                    token_ids=IDS,
                    mask={"type": "array", "items": {"type": "boolean"}},
                    logprobs=NUMBERS,
                ),
            },
            "rewards": {
                "additionalProperties": _closed(["score", "weight"], score={"type": "number"}, weight={}),
            },
        },
    },
}
