"""Plans: what earlier steps print reaches later ones as text, a plan that cannot be right runs nothing, and one that
fails keeps what was done."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.tools import arguments_of, tools
from agent0.tools.calling import call_tool
from agent0.tools.definition import Tool
from agent0.tools.results import clean, shorten
from agent0.tools.workspace import Workspace

FAILING = "raise"


def printed(code: str) -> str:
    return code.replace("[[", "{{").replace("]]", "}}")


class Echo:
    """Prints the code it was given, with ``[[`` as ``{{``; ``raise`` fails, and files grow by one each call."""

    def __init__(self, wall_s: float = 0.5) -> None:
        self.codes: list[str] = []
        self._wall_s = wall_s

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.codes.append(call.code)
        state = ToolState.ERROR if call.code == FAILING else ToolState.OK
        files = {**call.files, f"{len(call.files)}.txt": call.code.encode(errors="replace")}
        cpu_s, peak_mib = self._wall_s / 5, float(len(self.codes))
        return SandboxResult(
            state, 0, printed(call.code), "", self._wall_s, cpu_s, peak_mib, "none", "echo", files, output_bytes=3
        )

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(scope="module", autouse=True)
def as_written() -> Iterator[None]:
    """Programs are run as they are written here; that their last value is shown has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent0.tools.builtin.python.with_last_value", str)
        yield


def python(code: str, save_as: str = "", **more: Any) -> dict[str, Any]:
    return {"tool": "python", "args": {"code": code}} | ({"save_as": save_as} if save_as else {}) | more


async def planned(*steps: Any, work: Workspace | None = None) -> tuple[ToolResult, Workspace]:
    work = work or Workspace(Echo(), sorted(tools()))
    return await call_tool(ToolCall(name="plan", arguments={"steps": list(steps)}), work), work


def ran(work: Workspace) -> list[str]:
    assert isinstance(work.sandbox, Echo)
    return work.sandbox.codes


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=300), around=st.sampled_from(["{{a}}", "<{{a}}|{{a}}>", "{{{a}}}", "{a}{{a}}${a}"]))
async def test_saved_output_is_filled_in_once_as_text(text: str, around: str) -> None:
    result, work = await planned(python(text or "x", "a"), python(around))
    said = shorten(clean(printed(text or "x"))).strip()
    assert ran(work) == [text or "x", around.replace("{{a}}", said)]
    assert result.state is ToolState.OK


async def test_what_is_filled_in_is_never_read_for_references() -> None:
    _, work = await planned(python("[[b]]", "a"), python("secret", "b"), python("{{a}} {{b}}"))
    assert ran(work)[2] == "{{b}} secret"


async def test_references_reach_into_lists_and_objects_but_not_into_names() -> None:
    inner = {"tool": "submit_answer", "args": {"answer": "{{n}}", "subgoal": 0}}
    result, work = await planned(python("42", "n"), inner)
    assert (work.answer, result.state) == ("42", ToolState.OK)
    result, work = await planned(python("code", "n"), {"tool": "python", "args": {"{{n}}": "1"}})
    assert result.state is ToolState.ERROR and "code: Field required" in result.output and ran(work) == []


async def test_every_step_is_a_call_of_its_own_before_its_plan() -> None:
    result, work = await planned(python("1", "a"), python("{{a}}2"))
    assert [(d.call.name, d.inner, d.result.output) for d in work.journal[:2]] == [
        ("python", True, "1"),
        ("python", True, "12"),
    ]
    assert (work.journal[2].call.name, work.journal[2].inner, work.journal[2].result) == ("plan", False, result)
    assert result.output == "1. python, saved as a: ok\n1\n2. python: ok\n12"
    assert [len(done.files) for done in work.journal] == [1, 2, 2]
    assert work.journal[1].call.arguments == {"code": "12"}


async def test_time_is_counted_once_and_output_as_read() -> None:
    result, work = await planned(python("1"), python("2"))
    assert (result.wall_s, work.seconds) == (1.0, 59.0)
    assert work.characters == 65_536 - len(result.output)


@pytest.mark.parametrize("last", ["3", FAILING])
async def test_a_plan_costs_what_its_steps_cost(last: str) -> None:
    result, work = await planned(
        python("1"), {"tool": "write_file", "args": {"path": "a", "content": ""}}, python(last)
    )
    steps = [done.result for done in work.journal[:-1]]
    assert len(steps) == 3 and (result.tier, result.backend) == ("none", "echo")
    assert result.cpu_s == sum(step.cpu_s for step in steps) == pytest.approx(0.2)
    assert result.peak_mem_mib == max(step.peak_mem_mib for step in steps) == 2.0
    assert (result.wall_s, result.output_bytes) == (1.0, 6)


NOTHING: dict[str, list[Any]] = {}
AS_IT_IS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=5,
)


def listening() -> tuple[Workspace, list[Any]]:
    """A world with one more tool, which takes anything, a number, or text; and what it was given."""
    given: list[Any] = []

    async def listen(
        work: Workspace, anything: Any = 0, number: int = 0, text: str | int = "", deep: dict[str, list[Any]] = NOTHING
    ) -> ToolResult:
        """Listen."""
        given.append((anything, number, text, deep))
        return ToolResult(state=ToolState.OK)

    there = {**tools(), "listen": Tool("listen", listen, arguments_of(listen), pure=False)}
    return Workspace(Echo(), sorted(there), tools=there), given


@settings(max_examples=40, deadline=None)
@given(value=AS_IT_IS)
async def test_a_reference_that_is_a_whole_argument_is_the_value_itself(value: Any) -> None:
    work, heard = listening()
    text, whole = (
        json.dumps(value, indent=0),
        {"anything": "{{a}}", "text": "{{a}}", "deep": {"x": ["{{a}}", "<{{a}}>"]}},
    )
    result, _ = await planned(python(text, "a"), {"tool": "listen", "args": whole}, work=work)
    assert result.state is ToolState.OK
    assert heard.pop() == (value, 0, text, {"x": [value, f"<{text}>"]})


@pytest.mark.parametrize(
    "text", ["-3, 3", "NaN", "1e999", "[1e999]", '"x"', '["\\ud800"]', "[ " * 1500 + "[", "9" * 5000, "01"]
)
async def test_what_is_no_value_of_json_stays_text(text: str) -> None:
    work, heard = listening()
    result, _ = await planned(python(text, "a"), {"tool": "listen", "args": {"anything": "{{a}}"}}, work=work)
    assert heard == [(shorten(text), 0, "", {})]
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


async def test_a_value_of_the_wrong_kind_is_told_as_ever() -> None:
    work, heard = listening()
    for text, state in [("7", ToolState.OK), ("[7]", ToolState.ERROR), ("seven", ToolState.ERROR)]:
        result, _ = await planned(python(text, "a"), {"tool": "listen", "args": {"number": "{{a}}"}}, work=work)
        assert result.state is state
        assert (state is ToolState.OK) or "number: Input should be a valid integer" in result.output
    assert [number for _, number, _, _ in heard] == [7]


async def test_steps_without_tool_time_left_are_refused() -> None:
    work = Workspace(Echo(wall_s=3.0), sorted(tools()), seconds=5.0)
    result, _ = await planned(*[python(str(n)) for n in range(5)], work=work)
    assert ran(work) == ["0", "1"] and result.state is ToolState.ERROR
    assert "tool time is used up" in result.output and "2 of 5 steps were not made" in result.output


@pytest.mark.parametrize("fails", range(4))
async def test_a_plan_stops_at_the_first_failure_and_keeps_what_was_done(fails: int) -> None:
    steps = [python(FAILING if n == fails else f"out {n}") for n in range(4)]
    result, work = await planned(*steps)
    assert len(ran(work)) == fails + 1 and result.state is ToolState.ERROR
    assert all(f"out {n}" in result.output for n in range(fails))
    assert f"step {fails + 1} failed; {3 - fails} of 4 steps were not made" in result.output
    assert len(work.files) == fails + 1


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "at least 1 item"),
        ([python("1")] * 17, "at most 16 items"),
        ([python("1"), python("{{x}}")], "Step 2: {{x}} is saved by no step before it. Saved before it: nothing."),
        ([python("{{a}}", "a")], "Step 1: {{a}} is saved by no step before it."),
        ([python("1", "a"), python("{{b}}"), python("2", "b")], "Saved before it: a."),
        ([python("1", "a"), python("2", "a")], "Step 2: a is saved already"),
        ([python("1"), {"tool": "pyton"}], "Step 2: there is no tool named 'pyton'. Did you mean python?"),
        ([python("1"), {"tool": "plan", "args": {"steps": [python("1")]}}], "Step 2: a plan cannot hold a plan"),
        ([python("1"), {"tool": "python", "args": {"cod": "1"}}], "Step 2: python was called with wrong arguments."),
        ([python("1", "no name")], "steps.0.save_as"),
        ([python("1", more="x")], "steps.0.more: there is no such argument"),
        ([{"tool": "python", "arguments": {}}], "steps.0.arguments: there is no such argument (did you mean args?)"),
        ([python("1", "a"), {"tool": "python", "args": {"cod": "{{a}}"}}], "cod: there is no such argument (did you"),
        ([python("1"), "python"], "steps.1"),
        ([{"tool": "python", "args": ["1"]}], "steps.0.args"),
        ([{"tool": 3}], "steps.0.tool"),
    ],
)
async def test_a_plan_that_cannot_be_right_runs_nothing(steps: list[Any], told: str) -> None:
    result, work = await planned(*steps)
    assert result.state is ToolState.ERROR
    assert told in result.output
    assert ran(work) == [] and [done.call.name for done in work.journal] == ["plan"]


async def test_only_tools_of_the_attempt_are_steps() -> None:
    result, work = await planned(python("1"), work=Workspace(Echo(), ["plan", "sympy"]))
    assert "there is no tool named 'python'. The tools are: sympy." in result.output
    assert ran(work) == []


async def test_a_step_that_grows_beyond_reading_is_not_made() -> None:
    result, work = await planned(python("x" * 4000, "a"), python("{{a}}" * 30))
    assert result.state is ToolState.ERROR and "characters, more than 100000" in result.output
    assert len(ran(work)) == 1


async def test_nothing_follows_a_final_answer() -> None:
    result, work = await planned({"tool": "submit_answer", "args": {"answer": "1"}}, python("2"))
    assert (work.answer, ran(work), result.state) == ("1", [], ToolState.OK)


async def test_sixteen_long_outputs_stay_readable() -> None:
    result, _ = await planned(*[python("y" * 5000 + str(n)) for n in range(16)])
    assert len(result.output) < 7000
    assert all(f"{n}. python: ok" in result.output for n in range(1, 17))
