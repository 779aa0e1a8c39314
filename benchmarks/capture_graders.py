"""What graders of other frameworks say of the endpoint, each in an environment of its own (``make traces``).

``python capture_graders.py LIBRARY ADDRESS MODEL`` asks the server at ADDRESS as that library does, and writes a line
of JSON for each grader: its name, and what it said, in bold where it does not take what it got. Nothing of Agent0 is
imported here.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import Request, urlopen

CONVERSATIONS, TURNS = 8, 3
TOOL = {"name": "python", "description": "Run it.", "parameters": {"type": "object", "properties": {}}}


def _post(url: str, body: dict[str, Any]) -> bytes:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=600) as response:
        return bytes(response.read())


def _hollow(*packages: str) -> None:
    """Let modules of ``packages`` be imported without what these import themselves."""
    spec = find_spec(packages[0])
    assert spec is not None and spec.origin is not None
    for name in packages:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(Path(spec.origin).parents[1].joinpath(*name.split(".")))]


def openenv(address: str, model: str) -> Iterator[tuple[str, str]]:
    """Its probe of an endpoint, and its check of whole conversations as training rows."""
    _hollow("openenv", "openenv.core", "openenv.core.harness", "openenv.core.harness.capture")
    parts = "graph", "sessions", "export", "upstream", "validate", "validate_llm"
    graph, sessions, export, upstream, validate, probe = (
        import_module(f"openenv.core.harness.capture.{name}") for name in parts
    )
    report = probe.validate_llm(address, model, provider="vllm")
    faults = [finding for finding in report.findings if "FATAL" in finding]
    level = f"level {report.capture_level}, {len(report.param_fixes)} parameters refused"
    yield "OpenEnv 0.10.0, `validate_llm`", level if report.ok and not faults else f"**{report.findings}**"
    turns, faults, rows = 0, [], []
    for number in range(CONVERSATIONS):
        session = sessions.Session(f"{number}")
        messages: list[Any] = [{"role": "user", "content": f"What is {number + 2} * 12?"}]
        for turn in range(TURNS):
            body = {"model": model, "messages": [*messages], "max_tokens": 64, "seed": number * TURNS + turn}
            body |= {"tools": [{"type": "function", "function": TOOL}]} if number % 2 else {}
            answer = _post(f"{address}/v1/chat/completions", upstream.prepare_request(body))
            payload = upstream.normalize_response(json.loads(answer))
            choice = payload["choices"][0]
            drawn = [entry["logprob"] for entry in choice["logprobs"]["content"]]
            ids, prompt = choice["token_ids"], payload["prompt_token_ids"]
            checked = validate.check_upstream_response(payload).merge(validate.check_turn(prompt, ids, drawn))
            faults += [str(finding) for finding in checked.fatal]
            node = graph.TurnNode(f"{turn}", prompt, ids, drawn, request_messages=messages[:])
            node.response_message, turns = choice["message"], turns + 1
            session.graph.add_turn(node)
            messages.append(choice["message"])
            calls = choice["message"].get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "24"} for call in calls]
            messages += results or [{"role": "user", "content": "Are you sure?"}]
        document = export.export_session(session, include_messages=True)
        rows.append((document["trainable"], document["stats"]["n_roots"]))
    trainable, whole = sum(row[0] for row in rows), sum(row[1] == 1 for row in rows)
    said = f"{trainable} of {len(rows)} conversations trainable, {whole} in one piece; {turns} turns, 0 faults"
    yield "OpenEnv 0.10.0, `export_session`", f"**{faults[:2]}**" if faults or trainable < len(rows) else said


def verifiers(address: str, model: str) -> Iterator[tuple[str, str]]:
    """Its readers of the three dialects: whole answers and streams, with and without tools."""
    requests = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "What is 7 * 12?"}], "max_tokens": 64},
        "/v1/responses": {"input": "What is 7 * 12?", "max_output_tokens": 64},
        "/v1/messages": {"messages": [{"role": "user", "content": "What is 7 * 12?"}], "max_tokens": 64},
    }
    tools = {
        "/v1/chat/completions": {"type": "function", "function": TOOL},
        "/v1/responses": {"type": "function", "strict": False, **TOOL},
        "/v1/messages": {"name": "python", "input_schema": TOOL["parameters"]},
    }
    for path, dialect in zip(requests, import_module("verifiers.v1.dialects").DIALECTS, strict=True):
        read = 0
        for seed in range(CONVERSATIONS):
            body: dict[str, Any] = {"model": model, "seed": seed} | requests[path]
            body |= {"tools": [tools[path]]} if seed % 2 else {}
            whole = dialect.parse_response(dialect.validate_response(json.loads(_post(address + path, body))))
            parser = dialect.stream_parser()
            for event in _post(address + path, body | {"stream": True}).split(b"\n\n"):
                if event.strip():
                    parser.feed(event + b"\n\n")
            streamed = parser.finish()
            same = [(each.message.content, len(each.message.tool_calls or ())) for each in (whole, streamed)]
            read += same[0] == same[1] and streamed.finish_reason == whole.finish_reason
        said = f"{read} of {CONVERSATIONS} answers read alike, whole and as a stream"
        yield f"verifiers 0.4.0, `{path}`", said if read == CONVERSATIONS else f"**{said}**"


if __name__ == "__main__":
    library, address, model = sys.argv[1:]
    for grader, result in {"openenv": openenv, "verifiers": verifiers}[library](address, model):
        print(json.dumps({"grader": grader, "result": result}))
