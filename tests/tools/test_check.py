"""Trying an answer before giving it: of the attempt's own task, as often as calls allow, and never a word too much."""

import random
from dataclasses import replace

import pytest

from agent0.chat_format import format_call
from agent0.events.values import Task, ToolCall, ToolState
from agent0.infra.models.scripted import Scripted
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.settings import StudentConfig
from agent0.tasks.families import families
from agent0.tasks.splits import task_of
from agent0.tools.cache import ToolCache
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace
from tests.memory import MemoryArtifacts, TrustingSandbox

QUESTION = "Make 20 from 3,7,2."


async def tried(answer: object, question: str = QUESTION, cache: ToolCache | None = None) -> tuple[ToolState, str]:
    work = Workspace(TrustingSandbox(), ["check"], question=question, cache=cache)
    result = await call_tool(ToolCall(name="check", arguments={"answer": answer}), work)
    return result.state, result.output


async def test_it_says_right_or_the_first_thing_that_is_wrong() -> None:
    assert await tried("7+3=10;10*2=20") == (ToolState.OK, "right")
    assert await tried("7+3=11;11*2=22") == (ToolState.OK, "wrong: step 1: 7+3 is 10")
    assert await tried(20) == (ToolState.OK, "wrong: it uses 20, not 2,3,7")
    assert (await tried(""))[1].startswith("wrong: ")


@pytest.mark.parametrize("question", ["", "What is 12+30?", "Why is the sky blue?", f"{QUESTION} Please."])
async def test_a_task_that_cannot_be_checked_is_refused_politely(question: str) -> None:
    state, output = await tried("42", question)
    assert state is ToolState.REFUSED and "this task cannot be checked" in output


async def test_what_one_task_was_told_is_not_told_to_another() -> None:
    cache = ToolCache()
    assert (await tried("7+3=10;10*2=20", cache=cache))[1] == "right"
    assert (await tried("7+3=10;10*2=20", "Make 13 from 3,7,2.", cache))[1] == "wrong: it makes 20, not 13"


async def test_it_is_there_only_where_the_settings_name_it() -> None:
    work = Workspace(TrustingSandbox(), ["python"], question=QUESTION)
    result = await call_tool(ToolCall(name="check", arguments={"answer": "1"}), work)
    assert result.state is ToolState.ERROR and "There is no tool named 'check'" in result.output


def drawn(family: str) -> Task:
    entry, rng = families()[family], random.Random(7)
    task = task_of(entry, entry.render(entry.sample(2, rng), rng))
    assert task is not None
    return task


def given(model: object, **limits: int) -> Conditions:
    config = StudentConfig(tools=("python", "check"), max_turns=6, max_calls=5)
    config = config.model_copy(update=limits)
    return Conditions(model, config, TrustingSandbox(), MemoryArtifacts(), seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "family", [name for name, entry in families().items() if entry.check and entry.domain != "gym"]
)
async def test_a_student_that_fails_first_tries_again_and_then_gives_what_was_right(family: str) -> None:
    task = drawn(family)
    words = prompt("compact", task.domain, "student")
    conditions = given(Scripted(MemoryArtifacts()))
    attempts = [await solve(task, words, replace(conditions, seed=n)) for n in range(30)]
    told = [[called.result.output for called in attempt.tool_calls] for attempt in attempts]
    again = [one for one, outputs in zip(attempts, told, strict=True) if len(outputs) > 1 and outputs[-1] == "right"]
    assert again, "some fail first and then succeed"
    check = families()[family].check
    assert check and all(one.answer and check(task.params, one.answer) == "" for one in again)
    assert all(attempt.tool_ok == 0 and not attempt.grounded for attempt in attempts), "to try an answer is no work"


class Stubborn:
    """Checks the same wrong answer for ever."""

    async def generate(self, request: GenerateRequest) -> Generation:
        return Generation(format_call("check", {"answer": "1"}), (), (), (), "stop")

    async def close(self) -> None:
        """Nothing is open."""


async def test_tries_are_calls_and_calls_end() -> None:
    solved = await solve(drawn("countdown"), prompt("compact", "math", "student"), given(Stubborn(), max_calls=3))
    assert [c.result.state for c in solved.tool_calls] == [ToolState.OK] * 3 + [ToolState.REFUSED]
    assert solved.answer is None and solved.end in ("budget", "turn_limit")
