"""τ²-bench in a process of its own: end states decide, its user has a script or is a model, and what is lost, changed
or lies is never a reward. The package is a stand-in; ``make tau2`` holds the real one against its own scorer."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.validate.questions import with_questions
from agent0.chat_format import format_call
from agent0.errors import ConfigError, DependencyError
from agent0.events.episodes import Episode
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed, ToolCalled
from agent0.events.values import SourceRow, Task, ToolCall, ToolUse
from agent0.infra.environments import ENVIRONMENTS
from agent0.infra.environments.by_kind import EnvironmentsByKind
from agent0.infra.environments.tau2 import FOLDER, Tau2, digest_of_installed, install_tau2
from agent0.infra.models import scripted
from agent0.infra.sandbox import Refusing
from agent0.ports.environments import EnvironmentFaultError
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.parsing import as_message, parse_turn
from agent0.rollout.student import Conditions
from agent0.rollout.users.modelled import LEFT, ModelledUser
from agent0.rollout.workspace_store import Scratch
from agent0.settings import StudentConfig
from agent0.tools.calling import call_tool
from agent0.tools.episode import episode_tools, record_of, tools_digest
from agent0.tools.workspace import Workspace
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import verifier_for
from tests.play import play
from tests.tau2_stand_in import install
from tests.terminal import agent0
from tests.world import ports, small, started


def tell(text: str) -> tuple[str, dict[str, Any]]:
    return "respond_to_user", {"message": text}


NONE = Refusing("none is needed", "")
RESPOND, DONE = ("respond_to_user", {"message": "It is 1,000."}), ("done", {})
GET, CANCEL = ("get", {"order": "0"}), ("cancel", {"order": "0"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the stand-in is installed."""
    home = tmp_path_factory.mktemp("home")
    install(home / ENVIRONMENTS / FOLDER)
    return home


@asynccontextmanager
async def reached(home: Path) -> AsyncIterator[Tau2]:
    tau2 = Tau2(home / ENVIRONMENTS / FOLDER)
    try:
        yield tau2
    finally:
        await tau2.close()


def episode(home: Path, number: int, domain: str = "retail") -> Episode:
    program = digest_of_installed(home / ENVIRONMENTS / FOLDER)
    return Episode(url=f"tau2:{domain}", seed=number, question="", action="", program=program)


async def test_the_end_state_and_what_was_told_decide(home: Path) -> None:
    wrong = ("cancel", {"order": "1"})
    cases: list[tuple[str, int, list[tuple[str, dict[str, Any]]], float | None]] = [
        ("retail", 0, [GET, CANCEL, RESPOND, DONE], 1.0),
        ("retail", 0, [RESPOND, CANCEL, GET, GET, DONE], 1.0),
        ("retail", 0, [CANCEL, DONE], 0.0),
        ("retail", 0, [wrong, RESPOND, DONE], 0.0),
        ("retail", 0, [CANCEL, wrong, RESPOND, DONE], 0.0),
        ("retail", 0, [DONE], 0.0),
        ("retail", 1, [DONE], 1.0),
        ("retail", 1, [CANCEL, DONE], 0.0),
        ("retail", 8, [DONE], None),
        ("telecom", 0, [("toggle", {}), DONE], 1.0),
        ("telecom", 0, [("toggle", {}), ("toggle", {}), DONE], 0.0),
        ("telecom", 0, [DONE], 0.0),
        ("telecom-user", 0, [tell("Please toggle() it."), DONE], 1.0),
        ("telecom-user", 0, [tell("Please `toggle` it: toggle()"), tell("And toggle"), DONE], 0.0),
        ("telecom-user", 0, [tell("Do toggle() and set_volume(level=1)"), DONE], 0.0),
        ("telecom-user", 0, [("toggle", {}), DONE], 0.0),
    ]
    async with reached(home) as tau2:
        for domain, number, calls, reward in cases:
            async with tau2.opened(episode(home, number, domain)) as session:
                steps = [await session.step(*call) for call in calls]
            assert steps[-1].reward == reward and steps[-1].done, (domain, number, calls, steps[-1])
            assert not any(step.done or step.reward is not None for step in steps[:-1])


async def test_the_user_says_what_the_scenario_says_and_mistakes_are_read(home: Path) -> None:
    async with reached(home) as tau2, tau2.opened(episode(home, 0)) as session:
        assert session.question.endswith("The customer writes:\nI want to cancel 0.")
        assert [spec.name for spec in session.tools] == ["get", "cancel", "calculate", "respond_to_user", "done"]
        replies = [(await session.step(*RESPOND)).text for _ in range(4)]
        assert replies[:2] == ["I am Ann.", "Insist."] and replies[2] == replies[3]
        for call in [("nothing", {}), ("get", {"order": "99"}), ("calculate", {"expression": "9**9**9"}), RESPOND[:1]]:
            refused = await session.step(call[0], dict(call[1]) if len(call) > 1 else {})
            assert refused.refused and not refused.done, refused
        async with tau2.opened(episode(home, 0)) as other:
            await other.step(*CANCEL)
            assert (await session.step(*GET)).text == "pending", "each episode has a database of its own"
        await session.step(*DONE)
        with pytest.raises(EnvironmentFaultError, match="has ended, and goes on"):
            await session.step(*DONE)


async def test_a_user_does_one_thing_that_a_message_names(home: Path) -> None:
    read = "I do not know how to do that: set_volume"
    replies = {
        "Hello?": "I am Ann.",
        "set_volume(level=2) or toggle()": "I cannot do several things at once. Tell me one.",
        "set_volume(level=2)": "[on my phone] set_volume: volume 2 None",
        "Again set_volume, as in set_volume(3, 'loud').": "[on my phone] set_volume: volume 3 loud",
        "set_volume()": "[on my phone] set_volume: Error: KeyError('level')",
        "set_volume(level=float('nan'))": read,
        "set_volume(level=1e999)": read,
        "set_volume(level=b'1')": read,
        "set_volume(1, 2, 3)": read,
        "set_volume(**{'level': 1})": read,
        f"set_volume({'[' * 900})": read,
        "volume set_volumes untoggle": "Insist.",
    }
    async with reached(home) as tau2, tau2.opened(episode(home, 0, "telecom-user")) as session:
        assert [spec.name for spec in session.tools] == ["get", "cancel", "calculate", "respond_to_user", "done"]
        assert "does what a message names" in session.question and "It is off." not in session.question
        for message, reply in replies.items():
            step = await session.step(*tell(message))
            assert (step.text, step.refused) == (reply, False), message
        assert (await session.step("toggle", {})).refused, "it is not the agent's"


async def test_small_powers_are_calculated(home: Path) -> None:
    async with reached(home) as tau2, tau2.opened(episode(home, 0)) as session:
        for expression, text in (("2 ** 10", "1024"), ("10**400 // 10**399", "10"), ("2 ** 0.5 > 1", "True")):
            assert (await session.step("calculate", {"expression": expression})).text == text
        for expression in (
            "9**9**9",
            "(9**9)**(9**9)",
            f"{'9' * 300}**9999",
            "*".join(["2**999999"] * 9),
            "0 - 9**9**9",
        ):
            refused = await session.step("calculate", {"expression": expression})
            assert (refused.refused, refused.text) == (True, "Error: the numbers are too large")
        for expression in ("1/0", "(" * 5000, "2.0**99999", "", "1 +"):
            refused = await session.step("calculate", {"expression": expression})
            assert refused.refused and "too large" not in refused.text.replace("Result too large", "")


async def test_what_is_lost_or_changed_is_waited_for_and_comes_back(home: Path, tmp_path: Path) -> None:
    async with reached(home) as tau2:
        async with tau2.opened(episode(home, 0)) as session:
            kin = await children(tau2)
            for pid in kin:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(DependencyError, match="It was lost"):
                await session.step(*CANCEL)
        while tau2._process("retail").pid:
            await asyncio.sleep(0)
        async with tau2.opened(episode(home, 0)) as session:
            assert (await session.step(*GET)).text == "pending"
        with pytest.raises(DependencyError, match="another version"):
            async with tau2.opened(episode(home, 0).model_copy(update={"program": "0" * 64})):
                pass
    with pytest.raises(ConfigError, match="no domain 'banking'"):
        tau2._process("banking")
    async with reached(tmp_path) as absent:
        with pytest.raises(DependencyError, match="It is not installed"):
            async with absent.opened(episode(home, 0)):
                pass


async def children(tau2: Tau2) -> list[int]:
    """The process and those of its episodes."""
    pid = tau2._process("retail").pid
    forked = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [*map(int, forked), *([pid] if pid else [])]


def test_another_byte_is_another_version(tmp_path: Path) -> None:
    folder = install(tmp_path / "env")
    before = digest_of_installed(folder)
    (tasks,) = folder.glob("lib/*/site-packages/tau2/data/tau2/domains/retail/tasks.json")
    tasks.write_text(tasks.read_text(encoding="utf-8").replace("Insist.", "Relent."), encoding="utf-8")
    assert digest_of_installed(folder) != before


def test_nothing_is_left_of_an_installation_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(DependencyError, match="τ²-bench is not available"):
        install_tau2(tmp_path / "env")
    assert not list(tmp_path.iterdir())


def say(request, skill, rng):  # type: ignore[no-untyped-def]
    """A student that speaks first, then cancels what it is to cancel, or of odd orders something else."""
    texts = [turn.content for turn in request.turns]
    order = int(next(found for text in reversed(texts) if (found := re.search(r"I want to cancel (\d)", text)))[1])
    if texts[-1].startswith("I am Ann"):
        return format_call("cancel", {"order": str(order - order % 2)})
    return format_call("done", {}) if texts[-1] == "cancelled" else "Who are you?"


def test_domains_are_added_and_asked_in_a_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (("retail",), ("retail", "telecom", "--split", "test", "--model-user")):
        result = agent0("env", "add", "tau2", *arguments, "--json", home=home)
        assert result.code == 0, result.err
    assert [(row["environment"], row["tasks"]) for row in result.json] == [
        ("tau2-retail-test-model", 2),
        ("tau2-telecom-test-model", 2),
    ]
    assert "no split 'best'" in agent0("env", "add", "tau2", "retail", "--split", "best", home=home).err
    assert "There is an environment tau2-retail" in agent0("env", "add", "tau2", "retail", home=home).err
    row = next(row for row in agent0("env", "list", "--json", home=home).json if row["environment"] == "tau2-retail")
    sizes: dict[str, Any] = {"iterations": 1, "tasks": 4, "attempts": 2, "evaluation": {"validation": 2, "test": 0}}
    config = with_questions(small(**sizes, questions={"file": row["folder"]}))
    assert config.questions.sha256 == row["sha256"], "the run names what it asks"
    monkeypatch.setattr(scripted, "_say", say)

    async def run() -> list[Any]:
        environments = EnvironmentsByKind(home / ENVIRONMENTS)
        try:
            told = [r.event for r in await play(started(config), ports() | {"environments": environments})]
            proposed = {e.task: e.proposal for e in told if isinstance(e, TaskProposed) and e.proposal}
            attempts = {e.attempt: e for e in told if isinstance(e, TaskAttempted)}
            for verdict in [e for e in told if isinstance(e, ResultVerified)]:
                task, attempt = proposed[verdict.task], attempts[verdict.attempt]
                assert task.row and task.row.episode and verdict.verifier == "tau2"
                seed = task.row.episode.seed
                assert verdict.correct is (None if seed == 8 else seed in (2, 4, 6)), (seed, verdict)
                roles = [turn.role for turn in attempt.transcript]
                assert roles[-6:] == ["assistant", "user", "assistant", "tool", "assistant", "tool"]
                context = VerificationContext(environments=environments, again=True)
                (again,) = await verifier_for(task).judge(task, [attempt.answer], NONE, context)
                assert (again.correct, again.reason) == (verdict.correct, verdict.reason)
        finally:
            await environments.close()
        return told

    told = asyncio.run(run())
    assert {e.correct for e in told if isinstance(e, ResultVerified)} >= {True, False}
    names = [e.call.name for e in told if isinstance(e, ToolCalled)]
    assert names.count("respond_to_user") == names.count("done") == 8


class Customer:
    """A model that plays the user: it says who it is, then leaves."""

    name = "customer"

    def __init__(self) -> None:
        self.requests: list[GenerateRequest] = []

    async def generate(self, request: GenerateRequest) -> Generation:
        self.requests.append(request)
        return Generation("<think>Now?</think>[END]" if len(self.requests) > 1 else "I am Ann Lee.")

    async def close(self) -> None:
        """There is nothing to close."""


def test_the_last_one_that_is_removed_takes_what_is_installed_with_it(tmp_path: Path) -> None:
    installed = install(tmp_path / ENVIRONMENTS / FOLDER)
    other = tmp_path / ENVIRONMENTS / "other"
    for part in ("tasks", "solutions"):
        (other / part).mkdir(parents=True)
    (other / "tasks" / "t.json").write_text("{}", encoding="utf-8")
    assert agent0("env", "add", "tau2", "retail", "telecom-user", home=tmp_path).code == 0
    refused = agent0("env", "add", "tau2", "retail", home=tmp_path)
    assert "agent0 env rm tau2-retail" in refused.err and "--name" not in refused.err
    for name, stays in (("tau2-retail", True), ("tau2-telecom-user", False)):
        assert agent0("env", "rm", name, home=tmp_path).code == 0
        assert installed.exists() is stays
    assert other.exists()


async def test_a_model_that_plays_the_user_reads_what_their_phone_shows(home: Path) -> None:
    customer = Customer()
    conditions = Conditions(customer, StudentConfig(), NONE, Scratch(), seed=7)
    modelled = episode(home, 0, "telecom-user").model_copy(update={"action": RESPOND[0], "user": "I am Ann Lee."})
    async with reached(home) as tau2, tau2.opened(modelled) as session:
        user = ModelledUser(session, modelled, conditions)
        assert (await user.step(*tell("Do toggle()."))).text == "I am Ann Lee."
        assert customer.requests[0].turns[-1].content == "Do toggle().\n\n[on my phone] toggle: toggled"
        await user.step(*tell("And now?"))
        assert customer.requests[1].turns[-1].content == "And now?"
        assert (await session.step(*DONE)).reward == 1.0


async def test_a_model_plays_the_user_and_is_not_asked_again_to_judge(home: Path) -> None:
    customer = Customer()
    conditions = Conditions(customer, StudentConfig(), NONE, Scratch(), seed=7)
    modelled = episode(home, 1).model_copy(update={"action": RESPOND[0], "user": "I am Ann Lee. I want it all."})
    async with reached(home) as tau2:
        async with tau2.opened(modelled) as session:
            modelled = modelled.model_copy(update={"tools": tools_digest(session.tools)})
            user = ModelledUser(session, modelled, conditions)
            tools, used = episode_tools(user), []
            work = Workspace(NONE, tuple(tools), tools=tools)
            for text in ("Hello?", "Done?", "Still there?"):
                call = ToolCall(name=RESPOND[0], arguments={"message": text})
                used.append(ToolUse(turn=0, call=call, result=await call_tool(call, work)))
            call = ToolCall(name="done", arguments={})
            used.append(ToolUse(turn=0, call=call, result=await call_tool(call, work)))
        assert [use.result.output for use in used[:3]] == ["I am Ann Lee.", LEFT, LEFT]
        roles = [(turn.role, turn.content) for turn in customer.requests[1].turns]
        assert "I want it all." in roles[0][1]
        assert roles[2:] == [("user", "Hello?"), ("assistant", "I am Ann Lee."), ("user", "Done?")]
        row = SourceRow(id="1", answer="", episode=modelled)
        task = Task(question=session.question, domain="steps", family="questions", level=1, canonical="x", row=row)
        context = VerificationContext(environments=EnvironmentsByKind(home / ENVIRONMENTS), again=True)
        (verdict,) = await verifier_for(task).judge(task, [record_of(used)], NONE, context)
        assert (verdict.correct, verdict.reason) == (True, "reward 1") and len(customer.requests) == 2
        assert context.environments is not None
        await EnvironmentsByKind.close(context.environments)  # type: ignore[arg-type]


def test_a_turn_without_a_call_is_a_message() -> None:
    whole = Generation("<think>Hm.</think>Hello.")
    spoken = as_message(parse_turn(whole.text), whole, "tell")
    assert [(call.name, call.arguments) for call in spoken.calls] == [("tell", {"message": "Hello."})]
    assert not as_message(parse_turn(whole.text), Generation(whole.text, finish="length"), "tell").calls
    for text in ("", "<think>Hm.</think>", "<think>Hm."):
        assert not as_message(parse_turn(text), Generation(text), "tell").calls
    call = format_call("get", {"order": "1"})
    for text, tool in ((call, "tell"), ("Hello.", "")):
        assert as_message(parse_turn(text), Generation(text), tool) == parse_turn(text)
