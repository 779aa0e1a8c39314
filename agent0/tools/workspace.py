"""The workspace of one attempt: its sandbox, its work folder as a value, its policy and its remaining budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.ports.web import Web
from agent0.settings import PolicyConfig
from agent0.tools.cache import ToolCache
from agent0.tools.snapshots import Files, fingerprint, kept

if TYPE_CHECKING:
    from agent0.tools.definition import Tool


@dataclass(frozen=True)
class Done:
    """One call that was made, and the work folder after it. ``inner``: a step of the plan that is journaled next."""

    call: ToolCall
    result: ToolResult
    files: Files
    inner: bool = False


@dataclass
class Workspace:
    """The first parameter of every tool. Folders are values: they are replaced, never changed in place.

    ``allowed`` are the tools that may be called, ``tools`` those that exist (None: the registered ones); ``seconds``
    and ``characters`` what is left of the attempt's budget of tool time and output; ``start`` the work folder before
    the first call, what ``files`` was at first unless given; ``journal`` every call so far; ``answer`` and ``subgoals``
    what ``submit_answer`` was given; ``question`` is the attempt's own, empty where there is none.
    """

    sandbox: Sandbox
    allowed: Sequence[str] = ()
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    web: Web | None = None
    cache: ToolCache | None = None
    seconds: float = 60.0
    characters: int = 65_536
    files: Files = field(default_factory=dict)
    start: Files | None = None
    journal: list[Done] = field(default_factory=list)
    answer: str | None = None
    subgoals: list[str | None] = field(default_factory=list)
    question: str = ""
    tools: "Mapping[str, Tool] | None" = None

    def __post_init__(self) -> None:
        if self.start is None:
            self.start = self.files

    async def python(self, code: str, *, modules: Sequence[str] = (), wall_s: float = 5.0) -> SandboxResult:
        """Run Python ``code`` in the work folder and keep what it leaves there. ``modules``: packages besides the
        policy's."""
        return await self._run(SandboxCall("python", code, self.files, wall_s, root=self._root(modules)))

    async def shell(self, command: str, *, wall_s: float = 5.0) -> SandboxResult:
        """Run a bash command line in the work folder and keep what it leaves there."""
        return await self._run(SandboxCall("shell", command, self.files, wall_s, root=self._root()))

    async def aside(self, code: str, files: Mapping[str, bytes] | None = None, wall_s: float = 5.0) -> SandboxResult:
        """Run a program of our own on a folder of its own, empty where not given; the work folder is neither seen nor
        changed."""
        return await self._timed(SandboxCall("python", code, files or {}, wall_s, root=self._root()))

    def _root(self, more: Sequence[str] = ()) -> Root:
        modules = (*self.policy.modules, *(name for name in more if name not in self.policy.modules))
        return Root(self.policy.executables, modules)

    async def _run(self, call: SandboxCall) -> SandboxResult:
        result = await self._timed(call)
        if result.state in (ToolState.REFUSED, ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR):
            return result  # it did not run, or nobody knows what it left
        if result.state is ToolState.OUTPUT_FLOOD and not result.files:
            return result  # it was ended without a look at its folder
        self.files, lost = kept(result.files)
        reason = "; ".join(filter(None, [result.reason, f"{lost} files could not be kept" if lost else ""]))
        return replace(result, reason=reason)

    async def _timed(self, call: SandboxCall) -> SandboxResult:
        if self.seconds <= 0:
            return SandboxResult(
                ToolState.REFUSED, None, "", "", 0.0, 0.0, 0.0, "", "", reason="the task's tool time is used up"
            )
        return await self.sandbox.call(replace(call, wall_s=min(call.wall_s, max(self.seconds, 0.1))))

    @property
    def fingerprint(self) -> str:
        """Digest of the work folder, on which a call's result depends besides its arguments."""
        return fingerprint(self.files)
