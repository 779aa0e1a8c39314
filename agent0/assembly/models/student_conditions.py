"""Part of the rim: a student with its tools outside of any run, opened for a conversation or for many questions."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.mcp_tools import mcp_tools
from agent0.assembly.runtime.port_openers import open_ports
from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.call_forms import with_tool_form
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.infra.sandbox import Refusing
from agent0.rollout.student import Conditions
from agent0.rollout.workspace_store import Scratch
from agent0.settings import Settings, StudentConfig


async def open_conditions(
    settings: Settings,
    student: StudentConfig,
    adapter: Artifact | None,
    group: str,
    stack: AsyncExitStack,
    say: Callable[[str], object],
    log: Log | None = None,
) -> Conditions:
    """Open the conditions of attempts by ``student``, its ``tool_form`` resolved; ``stack`` closes what they need. Its
    calls are charged to the budgets of ``log`` and of the run ``group``; ``say`` takes a notice.

    Raises:
        ConfigError: there is no such tool, or a model has to be named.
        DependencyError: its model, package or key is not here, or no sandbox passes its self-test.
    """
    if check := provider_of(student).check:
        check(student)
    names = ("models", "sandbox", "tools", "web") if student.uses_tools else ("models", "tools")
    ports = await open_ports(names, settings, artifact_store(settings), stack, log)
    if "sandbox" in ports:
        ports["tools"] |= await mcp_tools(settings, ports["sandbox"])
    student, notice = await with_tool_form(student, ports["models"])
    if notice:
        say(notice)
    return Conditions(
        ports["models"].open(student),
        student,
        ports.get("sandbox") or Refusing("There are no tools here."),
        Scratch(),
        seed=0,
        adapter=adapter,
        group=group,
        policy=settings.run.policy,
        web=ports.get("web"),
        tools=ports["tools"],
    )
