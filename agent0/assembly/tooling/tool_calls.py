"""Part of the rim: tools outside of any run, called one by one by a person or a program."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.mcp_tools import mcp_tools
from agent0.assembly.runtime.plugins import load_plugins
from agent0.assembly.runtime.port_openers import open_port
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, SandboxUnavailableError, escaped
from agent0.events.values import Artifact, ToolCall, ToolState
from agent0.infra.sandbox import Refusing
from agent0.infra.web.proxy import FETCH_OFF, SEARCH_OFF
from agent0.ports.models import ToolSpec
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.settings import Settings
from agent0.tools import tools
from agent0.tools.calling import call_tool
from agent0.tools.definition import Tool
from agent0.tools.paths import printable
from agent0.tools.results import clean, shorten
from agent0.tools.snapshots import is_inside, kept, save
from agent0.tools.workspace import Workspace

RAW = ("python", "shell")
"""Tools that can be given code, and tell what it did rather than what a model would read of it."""
MEASURED = ("wall_s", "cpu_s", "peak_mem_mib", "tier", "backend", "reason", "output_bytes")
LONGEST = 1 << 16
"""Characters of both outputs of a call that is made of several."""


@dataclass(frozen=True)
class ToolRequest:
    """One call: ``code`` for a raw one, else ``args``. Limits (seconds, MiB) are those of the settings where not given
    or larger. ``keep``: store the work folder, so that a later call can start from it."""

    tool: str
    code: str | None = None
    args: Mapping[str, object] = field(default_factory=dict)
    wall: float | None = None
    mem: int | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    keep: bool = False


class ToolBench:
    """Every tool, ready to be called; nothing of one call is left for the next. Make one with ``open_bench``."""

    def __init__(
        self,
        settings: Settings,
        sandbox: Sandbox,
        web: Web | None,
        artifacts: Artifacts,
        registered: Mapping[str, Tool],
    ) -> None:
        self._settings, self._sandbox, self._web, self._artifacts = settings, sandbox, web, artifacts
        self._tools = registered

    @property
    def room(self) -> int:
        """Calls that are carried out or wait; to one more the sandbox says ``busy``."""
        limits = self._settings.sandbox
        return limits.workers * limits.calls + limits.queue

    def specs(self, names: Sequence[str]) -> list[ToolSpec]:
        """Describe those of ``names`` that there are."""
        return [self._tools[name].spec for name in names if name in self._tools]

    async def answer(self, request: ToolRequest) -> dict[str, object]:
        """Carry out a tool call; return its record as JSON values (``call_record``). Hostile code, a limit or a
        missing sandbox shows in ``state``.

        Raises:
            ConfigError: there is no such tool, or it takes no code.
        """
        known_tool(request.tool, self._tools)
        if request.code is not None and request.tool not in RAW:
            raise ConfigError(f"{request.tool} takes no code.", f"Only {' and '.join(RAW)} do.", "Give it arguments.")
        if reason := _misfit(request.files):
            return call_record(request.tool, not_run(ToolState.REFUSED, reason))
        limits = self._settings.sandbox
        sandbox = _Sized(self._sandbox, min(request.mem or limits.mem_mib, limits.mem_mib))
        work = self._workspace(request, sandbox)
        try:
            pending = (
                self._raw(request, request.code, work)
                if request.code is not None
                else _read(request, work, sandbox.seen)
            )
            result, output = await pending
        except SandboxUnavailableError as error:
            result, output = not_run(ToolState.REFUSED, str(error)), None if request.code is not None else ""
        manifest = await asyncio.to_thread(save, work.files, self._artifacts) if request.keep else None
        return call_record(request.tool, replace(result, files=work.files), output, manifest)

    def _workspace(self, request: ToolRequest, sandbox: Sandbox) -> Workspace:
        limits, student = self._settings.sandbox, self._settings.run.student
        seconds = request.wall or (limits.wall_s if request.code is not None else student.tool_seconds)
        return Workspace(
            sandbox=sandbox,
            allowed=tuple(self._tools),
            tools=self._tools,
            policy=self._settings.run.policy,
            web=self._web,
            seconds=seconds,
            characters=student.tool_output,
            files=dict(request.files),
        )

    async def _raw(self, request: ToolRequest, code: str, work: Workspace) -> tuple[SandboxResult, None]:
        if reason := known_tool(request.tool, self._tools).denial(work.policy):
            return not_run(ToolState.REFUSED, reason), None
        run = work.python if request.tool == "python" else work.shell
        return await run(code, wall_s=work.seconds), None


async def _read(request: ToolRequest, work: Workspace, results: Sequence[SandboxResult]) -> tuple[SandboxResult, str]:
    """A call as a model makes it: what it reads, and what the calls of the sandbox printed that it was made of."""
    result = await call_tool(ToolCall(name=request.tool, arguments=dict(request.args)), work)
    stdout, stderr = (
        "".join(texts) for texts in ([result.stdout for result in results], [result.stderr for result in results])
    )
    measured = {name: getattr(result, name) for name in MEASURED}
    whole = SandboxResult(result.state, result.rc, shorten(stdout, LONGEST), shorten(stderr, LONGEST), **measured)
    return whole, result.output


class _Sized:
    """A sandbox whose calls get a person's memory limit, which tools know nothing of. ``seen``: what came of them."""

    def __init__(self, inner: Sandbox, mem_mib: int) -> None:
        self._inner, self._mem_mib = inner, mem_mib
        self.seen: list[SandboxResult] = []

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Run ``call`` with that limit."""
        self.seen.append(await self._inner.call(replace(call, mem_mib=self._mem_mib)))
        return self.seen[-1]

    async def close(self) -> None:
        """It is not ours to close."""


@asynccontextmanager
async def open_bench(settings: Settings, *, workers: int = 0) -> AsyncIterator[ToolBench]:
    """Tools with a sandbox on ``workers`` zygotes (0: as set) and what their profile may touch now. Where no sandbox
    passes its self-test, every call that needs one is refused.

    Raises:
        ConfigError: an MCP server whose tools are not the trusted ones.
        DependencyError: the log, which knows what is allowed, cannot be reached.
    """
    load_plugins()
    allowed = await with_policy(settings)
    if workers:
        allowed = allowed.model_copy(update={"sandbox": allowed.sandbox.model_copy(update={"workers": workers})})
    artifacts = artifact_store(allowed)
    async with AsyncExitStack() as stack:
        registered, sandbox = tools(), await _sandbox(allowed, artifacts)
        stack.push_async_callback(sandbox.close)
        if not isinstance(sandbox, Refusing):
            registered |= await mcp_tools(allowed, sandbox)
        web = await open_port("web", allowed, artifacts)
        stack.push_async_callback(web.close)
        yield ToolBench(allowed, sandbox, web, artifacts, registered)


async def _sandbox(settings: Settings, artifacts: Artifacts) -> Sandbox:
    try:
        opened: Sandbox = await open_port("sandbox", settings, artifacts)
    except SandboxUnavailableError as error:
        return Refusing(error.why, error.fix)
    return opened


def known_tool(name: str, registered: Mapping[str, Tool]) -> Tool:
    """The tool of that name among those ``registered``.

    Raises:
        ConfigError: there is none; the known ones and the nearest are named.
    """
    if name not in registered:
        why = f"The tools are: {', '.join(registered)}."
        raise ConfigError(f"There is no tool {name[:80]!r}.", why, nearest(name, list(registered)))
    return registered[name]


def not_run(state: ToolState, reason: str) -> SandboxResult:
    """Make the result of a call that was not run: it used nothing."""
    return SandboxResult(state, None, "", "", 0.0, 0.0, 0.0, "", "", reason=reason)


def call_record(
    tool: str, result: SandboxResult, output: str | None = None, manifest: Artifact | None = None
) -> dict[str, object]:
    """Make the JSON record of one tool call. Every key is always present but ``output``, the text a model reads,
    which raw calls lack. Control and format characters in texts and file names are escaped."""
    fields: dict[str, object] = {"tool": tool, "state": result.state.value}
    fields |= {name: getattr(result, name) for name in ("rc", "stdout", "stderr")}
    fields |= {"output": output} if output is not None else {}
    fields |= {name: getattr(result, name) for name in MEASURED}
    return {
        **{name: escaped(clean(value)) if isinstance(value, str) else value for name, value in fields.items()},
        "files": {printable(name): len(data) for name, data in result.files.items()},
        "manifest": manifest.sha256 if manifest else None,
    }


def _misfit(files: Mapping[str, bytes]) -> str:
    """Why no work folder can hold ``files``, empty where one can."""
    if bad := next((name for name in files if not is_inside(name)), None):
        return f"files: {printable(bad[:80])!r} is no path inside the work folder"
    lost = kept(files)[1]
    return f"files: {lost} of {len(files)} do not fit into a work folder" if lost else ""


def switched_off(settings: Settings) -> dict[str, str]:
    """Tools that refuse every call by these settings, and why."""
    reasons = {"http_request": (settings.web.enabled, FETCH_OFF), "web_search": (settings.web.search, SEARCH_OFF)}
    return {name: why for name, (on, why) in reasons.items() if not on}
