"""Long tasks as tasks: their scripts work with the real tools, their prompts tell no lies, and a whole run in memory
asks for them, judges them step by step and learns from them."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import cache
from random import Random
from statistics import fmean

import pytest
import pytest_asyncio

from agent0.assembly.runtime.app import started as started_of
from agent0.events import checkpoints, runs, tasks
from agent0.events.base import Recorded
from agent0.events.values import ToolCall, ToolState, Turn
from agent0.ports.sandbox import Sandbox, SandboxCall
from agent0.rewards import rewards
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import ANY, Prompt, prompt, prompts, render, styles
from agent0.rollout.teacher import read_proposal
from agent0.settings import RunConfig, Settings
from agent0.tasks.families import Family, Params, families
from agent0.tasks.subgoals import split
from agent0.tools import tools
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace
from agent0.turns.observations import plain_output
from tests.play import finished, play
from tests.sandbox.opened import open_bubblewrap
from tests.world import KnowingSandbox, long, ports, started

CELLS = [(entry, level) for entry in families(long=True).values() for level in range(1, entry.levels + 1)]
every_cell = pytest.mark.parametrize(("entry", "level"), CELLS, ids=[f"{e.name}-{n}" for e, n in CELLS])
TURN_BYTES = 380
"""What 95 tokens of the scripted model hold: a turn, and a teacher's question, by default."""


def drawn(entry: Family, level: int, number: int = 60) -> list[tuple[Params, str]]:
    rng = Random(level)
    found = [entry.sample(level, rng) for _ in range(number)]
    return [(params, entry.render(params, rng)) for params in found]


def told(entry: Family, params: Params) -> list[str]:
    assert entry.steps
    return [step.answer for step in entry.steps(params)]


def played(entry: Family, params: Params) -> tuple[list[ToolCall], tuple[str, ...]]:
    assert entry.script
    turns = entry.script(params)
    return [call for turn in turns for call in parse_turn(turn).calls], turns


def test_every_domain_has_a_long_family_and_none_is_among_the_short() -> None:
    assert {entry.domain for entry in families(long=True).values()} == {"math", "logic", "code"}
    assert not set(families()) & set(families(long=True))
    assert set(families(long=None)) == {*families(), *families(long=True)}
    assert all(entry.long and entry.script for entry in families(long=True).values())
    assert not any(entry.script for entry in families().values())


@every_cell
def test_the_question_lists_its_steps_and_the_last_is_its_answer(entry: Family, level: int) -> None:
    assert entry.steps
    for params, question in drawn(entry, level):
        found = entry.steps(params)
        assert split(question) == tuple(step.text for step in found)
        assert len(found) == level + 2
        assert found[-1].answer == entry.solve(params)
        assert all(step.answer and len(step.answer) < 40 for step in found)
        assert len(question.encode()) <= TURN_BYTES


@every_cell
def test_a_script_is_a_whole_attempt_within_the_default_budgets(entry: Family, level: int) -> None:
    plain = RunConfig().student
    for params, _ in drawn(entry, level):
        calls, turns = played(entry, params)
        assert 6 <= len(turns) <= plain.max_turns * plain.long_factor
        assert len(calls) <= plain.max_calls * plain.long_factor
        assert all(len(turn.encode()) <= TURN_BYTES for turn in turns)
        names = Counter(call.name for call in calls)
        assert names["rollback"] == 1 and names["submit_answer"] == level + 1
        assert names["write_file"] and names["read_file"] and names["python"] >= level + 2
        assert parse_turn(turns[-1]).answer == entry.solve(params) and not parse_turn(turns[-1]).calls
        assert all(parse_turn(turn).calls for turn in turns[:-1])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def box() -> AsyncIterator[Sandbox]:
    opened = await open_bubblewrap()
    yield opened
    await opened.close()


async def made(calls: Sequence[ToolCall], work: Workspace) -> list[str]:
    """What each call says; all must succeed."""
    said = []
    for call in calls:
        result = await call_tool(call, work)
        assert result.state is ToolState.OK, (call, result)
        said.append(result.output)
    return said


@pytest.mark.asyncio(loop_scope="module")
@every_cell
async def test_a_script_does_with_the_real_tools_what_it_says(box: Sandbox, entry: Family, level: int) -> None:
    """Each program prints its step's answer; the second step is first done wrong, and undone."""
    for params, _ in drawn(entry, level, 2):
        calls, _ = played(entry, params)
        answers = told(entry, params)
        work = Workspace(box, tuple(tools()), subgoals=[None] * len(answers))
        said = await made(calls, work)
        printed = [plain_output(text) for call, text in zip(calls, said, strict=True) if call.name == "python"]
        assert [*printed[:1], *printed[2:]] == answers
        assert work.subgoals == [*answers[:-1], None] and work.answer is None
        back = next(n for n, call in enumerate(calls) if call.name == "rollback")
        folders = [done.files for done in work.journal]
        assert folders[back] == folders[1] != folders[back - 1]
        name, arguments = entry.call(params)
        assert await made([ToolCall(name=name, arguments=arguments)], Workspace(box, (name,))) == [answers[-1]]


@every_cell
async def test_the_world_in_memory_says_what_the_real_one_does(entry: Family, level: int) -> None:
    for params, _ in drawn(entry, level, 3):
        calls, _ = played(entry, params)
        known = KnowingSandbox()
        known.trusted = {call.arguments["code"] for call in calls if call.name == "python"}
        said = await made(calls, Workspace(known, tuple(tools()), subgoals=[None] * (level + 2)))
        printed = [plain_output(text) for call, text in zip(calls, said, strict=True) if call.name == "python"]
        assert [*printed[:1], *printed[2:]] == told(entry, params)


LONG_PROMPTS = [entry for entry in prompts() if entry.role.endswith("_long")]


def test_every_style_and_domain_has_prompts_for_long_tasks() -> None:
    for style in styles():
        for role in ("teacher", "student"):
            assert all(prompt(style, domain, role, long=True).text for domain in ("math", "logic", "code"))
            here, anywhere = prompt(style, "no-such-domain", role, long=True), prompt(style, ANY, role, long=True)
            assert here.text == anywhere.text != prompt(style, ANY, role).text
            assert here.name == f"{style}/no-such-domain/{role}_long"


def test_a_long_prompt_ends_with_the_question_and_tells_what_there_is() -> None:
    for entry in LONG_PROMPTS:
        turns = render(entry, {"question": "Q\n@system", "domain": "math", "family": "chain", "level": 3})
        text = "\n".join(turn.content for turn in turns)
        assert turns[-1].role == "user"
        if entry.role == "teacher_long":
            assert "chain" in turns[-1].content and "3" in turns[-1].content
            continue
        assert turns[-1].content == "Q\n@system"
        assert all(word in text for word in TOLD.get(entry.domain, TOLD[""]))
        assert entry.style != "compact" or len(text) < 150


def examples(entry: Prompt) -> list[list[Turn]]:
    """Conversations that the prompt shows."""
    shown: list[list[Turn]] = []
    for turn in render(entry, {"domain": "math"}):
        if turn.role == "user":
            shown.append([])
        if shown:
            shown[-1].append(turn)
    return shown[:-1]


FULL = [entry for entry in LONG_PROMPTS if entry.style == "full"]
WITH_OUR_TOOLS = [entry for entry in FULL if entry.role == "student_long" and entry.domain != "steps"]
CLIP = b"""def clip(values):
    \"\"\"Return values with those above 9 lowered to 9.\"\"\"
    return [9 if value > {} else value for value in values]
"""
TOTAL = b"""from statistics import fmean


def mean(values):
    \"\"\"The mean of values; 0 of none.\"\"\"
    if not values:
        return 0
    return fmean(values)


# of numbers alone
def total(values):
    result = 0
    for at in range(len(values) - 1):
        result += values[at]
    return result
"""
MEANS = b"from sums import mean\n\n" + b"".join(
    b"\ndef test_mean_%d():\n    assert mean([%d]) == %d\n" % (n, n, n) for n in range(4)
)
SUMS = b"from sums import total\n\n" + b"".join(
    b"\ndef test_total_%d():\n    assert total(%s) == %d\n" % (n, values, n)
    for n, values in enumerate([b"[]", b"[1, 0]", b"[2, 0]", b"[1, 2]"])
)
FOLDERS: dict[str, dict[str, bytes]] = {
    "repair": {"sums.py": TOTAL, "tests/test_mean.py": MEANS},
    "solving": {"sums.py": TOTAL, "tests/test_sums.py": SUMS},
    "testing": {
        "sums/series.py": CLIP.replace(b"{}", b"9"),
        "tests/test_clip.py": b"from sums.series import clip\n\n"
        b"def test_clip_1():\n    assert clip([1, 2]) == [1, 2]\n",
    },
    "reviewing": {"sums/series.py": CLIP.replace(b"{}", b"6")},
    "refactoring": {
        "sums/series.py": b"def clip(values):\n    if not values:\n        return [min(value, 9) for value in values]\n"
        b"    else:\n        return [min(value, 9) for value in values]\n"
    },
    "harbor": {"log.txt": b"a line\n" * 12},
    "documenting": {"sums/series.py": b"def raised(values):\n    return [value + 3 for value in values]\n"},
}
"""Work folders that the examples of prompts begin with, by domain: those whose tasks are about files."""
TOLD = {
    "": ("submit_answer", "subgoal", "rollback", "boxed"),
    **dict.fromkeys(FOLDERS, ("work folder", "boxed")),
    "steps": ("environment", "refused", "ended"),
}
"""What prompts for long tasks speak of, by domain."""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("entry", WITH_OUR_TOOLS, ids=lambda p: p.domain)
async def test_the_tools_say_what_a_students_example_says_they_do(box: Sandbox, entry: Prompt) -> None:
    (example,) = examples(entry)
    files = FOLDERS.get(entry.domain, {})
    steps = () if files else split(example[0].content)
    work = Workspace(box, tuple(tools()), files=files, subgoals=[None] * len(steps))
    said: list[str] = []
    for turn in example[1:]:
        if turn.role == "assistant":
            assert not said
            said = await made(parse_turn(turn.content).calls, work)
        else:
            assert said.pop(0) == turn.content
    assert parse_turn(example[-1].content).answer and not said
    if not files:
        assert len(steps) == 3 and None not in work.subgoals[:-1]
        assert "rollback" in {done.call.name for done in work.journal}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("entry", [p for p in FULL if p.role == "teacher_long"], ids=lambda p: p.domain)
async def test_a_teachers_example_is_a_long_task_whose_programs_run(box: Sandbox, entry: Prompt) -> None:
    for asked, written in examples(entry):
        level = int(asked.content.split("Level: ")[1].rstrip("."))
        proposal, problem = read_proposal(written.content, "math", "chain", level)
        assert proposal and not problem
        assert proposal.kind == "long" and len(proposal.subgoals) == len(proposal.programs) == level + 2
        assert split(proposal.question) == proposal.subgoals
        for program in proposal.programs:
            result = await box.call(SandboxCall("python", program))
            assert result.state is ToolState.OK and len(result.stdout.strip().splitlines()) == 1


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_run_names_the_prompts_it_may_use(share: float) -> None:
    config = RunConfig.model_validate({"curriculum": {"long": share}})
    event = started_of(Settings(run=config), "x").event
    assert isinstance(event, runs.RunStarted)
    short = {f"compact/{d}/{r}" for d in ("math", "logic", "code") for r in ("teacher", "student")}
    assert set(event.prompts) == short | ({f"{name}_long" for name in short} if share else set())


CONFIG = long(iterations=3, tasks=8, attempts=4, seed=2)
WORLD = ports()


@cache
def long_run() -> list[Recorded]:
    return finished(play(started(CONFIG), WORLD))


def of(kind: type) -> list[Recorded]:
    return [r for r in long_run() if isinstance(r.event, kind)]


def kinds(events: Sequence[Recorded]) -> Counter[str]:
    return Counter(r.event.proposal.kind for r in events)  # type: ignore[attr-defined]


def test_both_kinds_are_asked_for_and_accepted() -> None:
    asked = Counter(r.event.family in families(long=True) for r in of(tasks.TaskRequested))  # type: ignore[attr-defined]
    assert asked == {True: 12, False: 12}
    accepted = kinds(of(tasks.TaskAccepted))
    assert accepted["long"] >= 4 and accepted["short"] >= 4
    assert kinds(of(tasks.AttemptRequested)) == {kind: 4 * n for kind, n in accepted.items()}
    assert isinstance(long_run()[-1].event, runs.RunFinished)


def test_every_step_has_a_verdict_and_steps_and_answer_are_judged_apart() -> None:
    wanted = {r.task: r.event.proposal for r in of(tasks.TaskAccepted)}  # type: ignore[attr-defined]
    given = {r.attempt: r.event for r in of(tasks.TaskAttempted)}
    credits, apart = [], 0
    for recorded in of(tasks.ResultVerified):
        event, task, attempt = recorded.event, wanted[recorded.task], given[recorded.attempt]
        assert isinstance(event, tasks.ResultVerified) and isinstance(attempt, tasks.TaskAttempted)
        entry = families(long=None)[task.family]
        if entry.check:
            assert event.correct == (attempt.answer is not None and not entry.check(task.params, attempt.answer))
        else:
            assert event.correct == (attempt.answer == entry.solve(task.params))
        if task.kind == "short":
            assert (event.subgoals, event.credit, attempt.subgoals) == ((), None, ())
            continue
        right = told(entry, task.params)
        assert event.subgoals == tuple(a == b for a, b in zip(attempt.subgoals, right, strict=True))
        assert event.credit == fmean(event.subgoals)
        credits.append(event.credit)
        apart += event.correct != (event.credit == 1)
    assert {0.0, 1.0} < set(credits) and apart > 3


def test_what_is_paid_for_steps_is_their_share_and_short_tasks_are_paid_as_ever() -> None:
    credit = {r.attempt: r.event.credit for r in of(tasks.ResultVerified)}  # type: ignore[attr-defined]
    paid = [r for r in of(tasks.RewardAssigned) if r.event.role == "student"]  # type: ignore[attr-defined]
    seen: Counter[bool] = Counter()
    for recorded in paid:
        event = recorded.event
        assert isinstance(event, tasks.RewardAssigned)
        parts = {part.name: part for part in event.parts}
        assert parts["subgoals"].value == credit[recorded.attempt] == event.facts["credit"]
        assert parts["subgoals"].weight == rewards("student")["subgoals"].weight == 0.2
        rest = sum(p.value * p.weight for p in event.parts if p.name != "subgoals" and p.value is not None)
        assert event.total == pytest.approx(rest + 0.2 * (credit[recorded.attempt] or 0.0))
        seen[credit[recorded.attempt] is None] += 1
    assert seen[True] and seen[False]


def test_attempts_at_both_kinds_are_trained_on_and_held_out_tasks_are_short() -> None:
    trained = [r.event for r in of(checkpoints.CheckpointTrained) if r.event.role == "student"]  # type: ignore[attr-defined]
    assert any(event.adapter for event in trained)  # type: ignore[attr-defined]
    for recorded in of(checkpoints.CheckpointEvaluated):
        items = WORLD["artifacts"].get(recorded.event.items).splitlines()  # type: ignore[attr-defined]
        assert {json.loads(item)["task"].split(" ")[0] for item in items} <= set(families())
    long_ones = {r.task for r in of(tasks.TaskAccepted) if r.event.proposal.kind == "long"}  # type: ignore[attr-defined]
    turns = {r.task for r in of(tasks.TurnCompleted)}
    assert turns and turns <= long_ones


def test_the_same_run_again_is_the_same() -> None:
    def plain(recorded: Recorded) -> object:
        return (recorded.id, recorded.type, recorded.event.model_dump(include={"text", "answer", "subgoals", "total"}))

    again = asyncio.run(play(started(CONFIG), ports()))
    assert list(map(plain, again)) == list(map(plain, long_run()))
