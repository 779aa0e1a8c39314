"""What every tool promises, over the whole registry: words and a schema that a small model can read, examples that give
what the documents say, mistakes told in words, and never an exception."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.events.policies import PolicyChanged, PolicyKind
from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Bubblewrap, Refusing
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.rewards.tool_utility import useful
from agent0.settings import PolicyConfig
from agent0.state.run_state import ToolCallRecord
from agent0.tools import control_names, tools
from agent0.tools.cache import ToolCache
from agent0.tools.calling import call_tool
from agent0.tools.definition import Example, Tool
from agent0.tools.policy import FIELDS, resolve
from agent0.tools.results import LIMIT
from agent0.tools.workspace import Workspace

session = pytest.mark.asyncio(loop_scope="session")
every_tool = pytest.mark.parametrize("entry", tools().values(), ids=list(tools()))
EXAMPLES = [(entry, example) for entry in tools().values() for example in entry.examples]
every_example = pytest.mark.parametrize(("entry", "example"), EXAMPLES, ids=[entry.name for entry, _ in EXAMPLES])


class Recorded:
    """What a real sandbox answered, again; a call that was never made is a mistake of the test."""

    def __init__(self, inner: Bubblewrap) -> None:
        self.inner = inner
        self.calls = 0

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls += 1
        return await self.inner.call(call)

    async def close(self) -> None:
        """The real one is closed by its owner."""


async def made(work: Workspace, name: str, arguments: Mapping[str, Any]) -> ToolResult:
    return await call_tool(ToolCall(name=name, arguments=dict(arguments)), work)


async def shown(entry: Tool, example: Example, work: Workspace) -> ToolResult:
    for name, arguments in example.after:
        assert (await made(work, name, arguments)).state is ToolState.OK
    return await made(work, entry.name, example.arguments)


def objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects behind the word Example."""
    text = text.partition("Example:")[2]
    while "{" in text:
        text = text[text.index("{") :]
        value, end = json.JSONDecoder().raw_decode(text.replace("\n", " "))
        yield value
        text = text[end:]


@every_tool
def test_a_small_model_can_read_it(entry: Tool) -> None:
    spec = entry.spec
    assert spec.name == entry.name and entry.name.isidentifier()
    assert 60 < len(spec.description) < 800
    assert spec.parameters["type"] == "object"
    assert "$" not in json.dumps(spec.parameters).replace('$"', "")
    for name, field in spec.parameters["properties"].items():
        assert {"type", "enum", "anyOf"} & set(field), name
        assert 3 < len(field["description"]) < 120, name
        assert name in spec.parameters.get("required", []) or "default" in field
    assert len(json.dumps(spec.parameters)) < 1500


@every_tool
def test_its_text_shows_calls_that_fit(entry: Tool) -> None:
    found = list(objects(entry.spec.description))
    assert found
    for arguments in found:
        entry.arguments.model_validate(arguments)


@every_tool
def test_it_documents_how_it_ends(entry: Tool) -> None:
    assert ToolState.OK in entry.states
    assert entry.examples
    assert all(example.state in entry.states for example in entry.examples)


@session
@every_example
async def test_examples_give_what_documents_say_and_pure_tools_the_same_again_from_the_cache(
    sandbox: Bubblewrap, entry: Tool, example: Example
) -> None:
    counted, cache = Recorded(sandbox), ToolCache()
    fresh, first, second = (Workspace(counted, tuple(tools()), cache=held) for held in (None, cache, cache))
    once = await shown(entry, example, fresh)
    if example.output is None:
        assert once.state in entry.states
    else:
        assert (once.output, once.state) == (example.output, example.state)
    kept = await shown(entry, example, first)
    before = counted.calls
    again = await shown(entry, example, second)
    assert said(again) == said(kept) == said(once)
    assert fresh.files == first.files == second.files
    if entry.pure:
        assert again.cached
        assert counted.calls - before == sum(not tools()[name].pure for name, _ in example.after)
    else:
        assert not again.cached


def said(result: ToolResult) -> tuple[ToolState, str, int | None]:
    return result.state, result.output, result.rc


WRONG = [None, True, 1.5, "x", [], {}, [{"a": 1}], -(10**30)]


def fits(entry: Tool, arguments: Mapping[str, Any]) -> bool:
    try:
        entry.arguments.model_validate(dict(arguments))
    except ValueError:
        return False
    return True


@session
@every_tool
async def test_wrong_arguments_are_told_so_that_they_can_be_corrected(entry: Tool) -> None:
    """Field, problem and right shape. Nothing is run: the sandbox would raise."""
    good = dict(entry.examples[0].arguments)
    broken = [(name, {**good, name: value}) for name in entry.spec.parameters["properties"] for value in WRONG]
    required = entry.spec.parameters.get("required", [])
    broken += [(name, {k: v for k, v in good.items() if k != name}) for name in required]
    broken += [("nonsense", {**good, "nonsense": 1})]
    refused = [(name, arguments) for name, arguments in broken if not fits(entry, arguments)]
    assert len(refused) > 4
    for wrong, arguments in refused:
        result = await made(Workspace(Refusing("away."), tuple(tools())), entry.name, arguments)
        assert result.state is ToolState.ERROR
        assert result.output.startswith(f"{entry.name} was called with wrong arguments. ")
        assert f"{wrong}: " in result.output or f"{wrong}." in result.output, arguments
        assert all(name in result.output.partition("It takes: ")[2] for name in entry.arguments.model_fields)
        assert len(result.output) < 1500


def test_which_tools_do_no_work_themselves_is_said_where_they_are_made() -> None:
    assert sorted(control_names()) == ["check", "plan", "submit_answer"]
    made = [ToolCallRecord(name, {"answer": "6*7"}, True, "42") for name in tools()]
    assert {call.name for call in useful(made)} == set(tools()) - control_names()


WITHOUT = [(entry, kind, name) for entry in tools().values() for kind, name in entry.needs]


@session
@pytest.mark.parametrize(("entry", "kind", "name"), WITHOUT, ids=[f"{entry.name}-{name}" for entry, _, name in WITHOUT])
async def test_what_a_policy_denies_is_refused_by_its_name(entry: Tool, kind: PolicyKind, name: str) -> None:
    """Before anything runs: the sandbox would raise. Allowed again, it is tried."""
    names = getattr(PolicyConfig(), FIELDS[kind]) if name == "*" else (name,)
    denied = [PolicyChanged(profile="", kind=kind, name=name, allowed=False) for name in names]
    policy = resolve(PolicyConfig(), denied, "")
    work = Workspace(Refusing("away."), tuple(tools()), policy, files=FILES)
    result = await made(work, entry.name, {**entry.examples[0].arguments, **here(entry)})
    assert (result.state, result.output) == (ToolState.REFUSED, f"[refused: {result.reason}]")
    assert "the policy (run.policy." in result.reason and f"agent0 sandbox allow {kind} " in result.reason
    assert name == "*" or name in result.reason
    assert ToolState.REFUSED in entry.states and work.files == FILES
    given_back = [PolicyChanged(profile="", kind=kind, name=name, allowed=True) for name in names]
    again = resolve(policy, given_back, "")
    assert entry.denial(again) == "" and again.withheld == ()


def test_whoever_needs_something_says_so() -> None:
    needy = {(entry.name, *need) for entry, *need in WITHOUT}
    assert needy >= {
        ("sympy", "module", "sympy"),
        ("run_tests", "module", "pytest"),
        ("lint", "executable", "ruff"),
        ("shell", "executable", "bash"),
        ("sqlite_query", "sql", "*"),
    }
    assert all(entry.denial(PolicyConfig()) == "" for entry in tools().values())


def nearly(name: str) -> str:
    return name[:-1] if len(name) > 4 else f"{name}s"


@session
@every_tool
async def test_a_name_that_is_nearly_right_gets_the_right_one(entry: Tool) -> None:
    work = Workspace(Refusing("away."), tuple(tools()))
    unknown = await made(work, nearly(entry.name), {})
    assert f"Did you mean {entry.name}?" in unknown.output and ", ".join(tools()) in unknown.output
    good = dict(entry.examples[0].arguments) | {"path": "a.py"} if "path" in entry.arguments.model_fields else {}
    for name in entry.arguments.model_fields:
        mistyped = {**{one: value for one, value in good.items() if one != name}, nearly(name): good.get(name, 1)}
        told = await made(work, entry.name, mistyped)
        assert f"{nearly(name)}: there is no such argument (did you mean {name}?)" in told.output


TEXT = st.text(max_size=40) | st.sampled_from(
    [
        "a.py",
        "test_a.py",
        "notes/b.txt",
        "x.db",
        "..",
        "/",
        "print(1)",
        "ls -la; echo $x",
        "SELECT 1",
        "x^2 = 4",
        "\0",
        "%s{}",
    ]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FILES = {
    "a.py": b"import os\ndef f(x):\n    return x\n",
    "test_a.py": b"from a import f\ndef test(): assert f(1) == 1\n",
    "notes/b.txt": "z\u00fcrich\r\nx\r\n".encode(),
    "x.db": b"",
    "\x1b[2J\ud800\n".encode(errors="replace").decode(): b"\0\xff",
}


def fitting(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a JSON schema, as far as tools use it."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([fitting(one) for one in schema["anyOf"]])
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    if "properties" in schema:
        required = set(schema.get("required", []))
        fields = {name: fitting(field) for name, field in schema["properties"].items()}
        optional = {name: fields.pop(name) for name in list(fields) if name not in required}
        return st.fixed_dictionaries(fields, optional=optional)
    kinds = {"string": TEXT, "boolean": st.booleans(), "number": st.floats(allow_nan=False), "object": st.just({})}
    whole = st.integers(schema.get("minimum", -5), schema.get("maximum", 300))
    return {**kinds, "integer": whole}[schema["type"]]


@session
@every_tool
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
async def test_any_arguments_end_in_a_documented_state(sandbox: Bubblewrap, entry: Tool, data: st.DataObject) -> None:
    names = st.sampled_from(list(entry.spec.parameters["properties"])) | st.text(max_size=8)
    arguments = data.draw(fitting(entry.spec.parameters) | st.dictionaries(names, ANY, max_size=4))
    work = Workspace(sandbox, tuple(tools()), files=FILES)
    result = await made(work, entry.name, arguments)
    assert result.state in {*entry.states, ToolState.ERROR}
    assert len(result.output) <= 2 * LIMIT + 1000
    assert result.model_dump_json()
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    assert len(work.journal) >= 1 and work.journal[-1].result == result


@session
@every_tool
async def test_without_a_sandbox_nothing_is_run_and_nobody_is_blamed(entry: Tool) -> None:
    """Either the tool needs none, or the error that says why there is none reaches the caller."""
    work = Workspace(Refusing("away."), tuple(tools()), files=FILES)
    try:
        result = await made(work, entry.name, {**entry.examples[0].arguments, **here(entry)})
    except SandboxUnavailableError:
        assert work.files == FILES and work.journal == []
    else:
        assert entry.name not in ("python", "shell", "sympy", "run_tests", "lint", "analyze_code", "sqlite_query")
        assert result.state in entry.states


def here(entry: Tool) -> dict[str, str]:
    """A file that exists, where a tool takes a path."""
    return {"path": "a.py"} if "path" in entry.arguments.model_fields else {}
