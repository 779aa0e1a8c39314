"""The world of a whole run in memory: scripted models, and a sandbox that executes nothing because it knows the answer.

The sandbox learns each task's reference call when the model is asked the question; it prints the family's own answer.
Programs of a long task's script, which are ours and only read files and print, it runs in this process.
"""

import contextlib
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent0.events.base import Recorded, record
from agent0.events.runs import RunStarted
from agent0.events.values import ToolState
from agent0.infra.embeddings.benchmark_index import BenchmarkRows
from agent0.infra.embeddings.embedders import Ngram
from agent0.infra.models.scripted import Scripted, ScriptedTrainer
from agent0.infra.storage.datasets import BenchmarkFolder, LocalQuestions
from agent0.ports.models import GenerateRequest, Generation
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.rollout.parsing import parse_turn
from agent0.settings import ActorConfig, RunConfig
from agent0.tasks.families import Family, families
from agent0.tasks.splits import task_of
from agent0.tools import tools
from agent0.tools.cache import ToolCache
from agent0.tools.workspace import Workspace
from tests.memory import MemoryArtifacts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def own(long: bool | None = None) -> dict[str, Family]:
    """Families of this project: those of packages have tests of their own."""
    return {name: entry for name, entry in families(long=long).items() if entry.domain != "gym"}


def levels_of(entry: Family) -> tuple[int, ...]:
    """The levels of ``entry`` that tests try: all, but of a ladder some rungs that have many tasks."""
    return (4, 5, 6, 15) if entry.ladder else tuple(range(1, entry.levels + 1))


class KnowingSandbox:
    """Prints what it was told that a program prints; any other program is an error. Work folders stay as they are."""

    def __init__(self) -> None:
        self.printed: dict[str, str] = {}
        self.trusted: set[str] = set()
        self.calls: list[SandboxCall] = []

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        known = self.printed.get(call.code)
        if call.code in self.trusted:
            known = _run_here(call.code, call.files)
        state = ToolState.ERROR if known is None else ToolState.OK
        return SandboxResult(
            state, int(known is None), known or "", "", 0.01, 0.01, 1.0, "none", "knowing", files=call.files
        )

    async def close(self) -> None:
        """Nothing is open."""


def _run_here(code: str, files: Mapping[str, bytes]) -> str | None:
    """What ``code`` prints, None where it wants a file that is not there."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(code, {"open": lambda name: io.StringIO(files[name].decode())})
    except (KeyError, NameError):
        return None
    return out.getvalue()


class _Listening:
    """Notes the code that a tool would run."""

    def __init__(self) -> None:
        self.code = ""

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.code = call.code
        return SandboxResult(ToolState.OK, 0, "", "", 0, 0, 0, "", "")

    async def close(self) -> None:
        """Nothing is open."""


class TellingModel:
    """The scripted model, which tells the sandbox about each question it is asked."""

    name = "scripted"

    def __init__(self, inner: Scripted, sandbox: KnowingSandbox) -> None:
        self._inner, self._sandbox, self._seen = inner, sandbox, set[str]()

    async def generate(self, request: GenerateRequest) -> Generation:
        asked = request.turns[-1].content
        if asked not in self._seen:
            self._seen.add(asked)
            self._trust(asked)
            for line in asked.splitlines():
                await self._tell(line.strip())
                await self._tell(line.partition(": ")[2].strip())
        return await self._inner.generate(request)

    async def _tell(self, question: str) -> None:
        for entry in families().values():
            if task := task_of(entry, question):
                name, arguments = entry.call(task.params)
                listening = _Listening()
                await tools()[name].run(Workspace(listening), **arguments)
                self._sandbox.printed[listening.code] = entry.solve(task.params)
                if entry.check:  # what its program finds is right, and need not be what ``solve`` finds
                    self._sandbox.trusted.add(listening.code)

    def _trust(self, question: str) -> None:
        for entry in families(long=True).values():
            if entry.script and (params := entry.parse(question)):
                calls = [call for turn in entry.script(params) for call in parse_turn(turn).calls]
                self._sandbox.trusted |= {call.arguments["code"] for call in calls if call.name == "python"}

    async def close(self) -> None:
        await self._inner.close()


class Opened:
    """Any port that opens things: always the same one."""

    def __init__(self, one: Any) -> None:
        self._one = one

    def open(self, which: ActorConfig | str) -> Any:
        assert isinstance(which, ActorConfig | str)
        return self._one


def ports() -> dict[str, Any]:
    """Every port a handler asks for, played in this process."""
    artifacts, sandbox = MemoryArtifacts(), KnowingSandbox()
    return {
        "artifacts": artifacts,
        "sandbox": sandbox,
        "verifier_sandbox": KnowingSandbox(),
        "tool_cache": ToolCache(),
        "environments": None,
        "web": None,
        "tools": tools(),
        "models": Opened(TellingModel(Scripted(artifacts), sandbox)),
        "trainers": Opened(ScriptedTrainer(artifacts)),
        "embedders": Opened(Ngram()),
        "benchmark_files": BenchmarkFolder(None),
        "question_file": LocalQuestions(),
        "contamination": BenchmarkRows(None, None),
    }


def small(**changes: Any) -> RunConfig:
    """A run of seconds: two iterations of six tasks with three attempts."""
    plain: dict[str, Any] = {
        "iterations": 2,
        "tasks": 6,
        "attempts": 3,
        "curriculum": {"embedder": "ngram"},
        "evaluation": {"validation": 6, "test": 6},
        "training": {"student": {"minibatch": 4, "replay_steps": 2}},
    }
    return RunConfig.model_validate(plain | changes)


def long(**changes: Any) -> RunConfig:
    """A small run that asks for long tasks too, with the tools that they need."""
    tools = ("python", "write_file", "read_file", "edit_file", "rollback", "submit_answer")
    plain: dict[str, Any] = {"curriculum": {"embedder": "ngram", "long": 0.5}, "student": {"tools": tools}}
    return small(**(plain | changes))


def started(config: RunConfig, run: str = "r1") -> Recorded:
    """The beginning of a run of ``config``."""
    plain, digest = config.to_record()
    event = RunStarted(
        name=run, profile="scripted", seed=config.seed, config=plain, config_sha=digest, servers=config.servers
    )
    return record(event, run=run, time=NOON, id=f"start-of-{run}")
