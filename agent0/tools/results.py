"""Turns a sandbox result into what the model reads: cleaned, shortened, and naming the limit that was hit."""

import re

from agent0.events.values import ToolResult, ToolState
from agent0.ports.sandbox import SandboxResult

LIMIT = 4096
"""Characters of output a model gets to read."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ENDINGS = {
    ToolState.TIMEOUT: "stopped: it took longer than its time limit",
    ToolState.MEMORY: "stopped: it used more memory than its limit",
    ToolState.OUTPUT_FLOOD: "stopped: it printed far too much",
    ToolState.SANDBOX_ERROR: "the sandbox failed; the call may be tried again",
    ToolState.BUSY: "the sandbox is busy; the call may be tried again",
}


def clean(text: str) -> str:
    """Remove terminal control sequences, and control characters other than tab and newline."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def shorten(text: str, limit: int = LIMIT) -> str:
    """Cut ``text`` over ``limit`` characters to its first three quarters and its last, with a note between."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return f"{text[:head]}\n[{len(text) - limit} characters left out]\n{text[-tail:]}"


def refused(reason: str) -> ToolResult:
    """The result of a call that was refused and not made."""
    return ToolResult(state=ToolState.REFUSED, output=f"[refused: {reason}]", reason=reason)


def answer(result: SandboxResult, output: str | None = None) -> ToolResult:
    """Turn ``result`` into what the model reads: standard output, then standard error where it failed, then
    the limit hit."""
    parts = [result.stdout if output is None else output]
    if result.state is not ToolState.OK and output is None:
        parts.append(result.stderr)
    parts = [shorten(clean(part).strip()) for part in parts]
    if result.state in _ENDINGS:
        parts.append(f"[{_ENDINGS[result.state]}]")
    if result.state is ToolState.ERROR and result.rc is not None and result.rc < 0:
        parts.append(f"[it was ended by signal {-result.rc}]")
    if result.reason and result.state in (ToolState.OK, ToolState.ERROR):
        parts.append(f"[{result.reason}]")
    if result.state is ToolState.REFUSED:
        parts.append(f"[refused: {result.reason}]")
    return ToolResult(
        state=result.state,
        output="\n".join(part for part in parts if part),
        rc=result.rc,
        wall_s=result.wall_s,
        cpu_s=result.cpu_s,
        peak_mem_mib=result.peak_mem_mib,
        tier=result.tier,
        backend=result.backend,
        reason=result.reason,
        output_bytes=result.output_bytes,
    )
