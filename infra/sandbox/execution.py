"""Convert a ``SandboxCall`` into the request a sandbox process reads, and its ending into a ``SandboxResult``: one
conversion for every backend."""

from agent0.events.values import ToolState
from agent0.infra.sandbox.inside.calling import FLOOD, OUTPUT_CAP, Ended, Request
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.tools.snapshots import is_inside

MAX_FILES, MAX_FILE_BYTES, MAX_CODE, MAX_SHELL_CODE = 1500, 60 << 20, 1 << 20, 100 << 10
LONGEST_S = 1e6
_ENDED = {
    "timeout": ToolState.TIMEOUT,
    "memory": ToolState.MEMORY,
    "output_flood": ToolState.OUTPUT_FLOOD,
    "refused": ToolState.REFUSED,
}


def refusal(call: SandboxCall) -> str:
    """Why ``call`` cannot be run as it is, empty where it can."""
    limit = MAX_CODE if call.kind == "python" else MAX_SHELL_CODE
    if max(len(code.encode(errors="replace")) for code in (call.code, call.guest)) > limit:
        return f"the code is longer than {limit} bytes"
    if call.kind == "shell" and "bash" not in call.root.executables:
        return "bash is not on the allowlist, so there is no shell"
    if call.kind == "shell" and call.guest:
        return "a shell has no guest"
    if "\0" in call.code:
        return "the code contains a NUL character"
    if len(call.files) > MAX_FILES or sum(map(len, call.files.values())) > MAX_FILE_BYTES:
        return f"more than {MAX_FILES} files or {MAX_FILE_BYTES >> 20} MiB"
    if not (0 < call.wall_s <= LONGEST_S and 0 < call.mem_mib <= LONGEST_S):
        return f"{call.wall_s} s and {call.mem_mib} MiB are no limits"
    bad = [name for name in call.files if not is_inside(name)]
    return f"{bad[0]!r} is no relative path inside the work folder" if bad else ""


def request(call: SandboxCall) -> Request:
    """Convert a call into the request that a sandbox process reads."""
    code, guest = (text.encode(errors="replace") for text in (call.code, call.guest))
    return Request(call.kind, code, call.files, call.wall_s, call.mem_mib, guest)


def result(ended: Ended, backend: str, tier: str) -> SandboxResult:
    """Convert how a call ended into the ``SandboxResult`` that its caller receives."""
    out, err = (kept.decode(errors="backslashreplace") for kept in (ended.stdout, ended.stderr))
    return SandboxResult(
        state=_ENDED.get(ended.ended, ToolState.OK if ended.rc == 0 else ToolState.ERROR),
        rc=ended.rc,
        stdout=out,
        stderr=err,
        wall_s=ended.wall_s,
        cpu_s=ended.cpu_s,
        peak_mem_mib=ended.peak_kib / 1024,
        tier=ended.tier or tier,
        backend=backend,
        files=ended.files,
        reason="; ".join(_reasons(ended)),
        output_bytes=sum(ended.output_bytes),
    )


def _reasons(ended: Ended) -> list[str]:
    out = [f"more than {FLOOD >> 20} MiB of output"] if ended.ended == "output_flood" else []
    if ended.note:
        out.append(ended.note)
    elif ended.ended and not out:
        out.append(f"ended by the {ended.ended} limit")
    if ended.lost:
        out.append(f"{ended.lost} files were left out")
    return [*out, f"output cut to {OUTPUT_CAP >> 10} KiB"] if max(ended.output_bytes) > OUTPUT_CAP else out


def not_run(state: ToolState, reason: str, backend: str, tier: str) -> SandboxResult:
    """Make the result of a call that did not run: it used nothing. ``tier`` is the memory bound it would have had."""
    return SandboxResult(state, None, "", "", 0.0, 0.0, 0.0, tier, backend, reason=reason)
