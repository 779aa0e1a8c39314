"""Hand-written parts that tests put in the place of the world."""

import asyncio
import sys

from agent0.errors import NotFoundError
from agent0.events.base import sha256
from agent0.events.values import Artifact, ToolState
from agent0.ports.sandbox import SandboxCall, SandboxResult


class MemoryArtifacts:
    """Artifacts in a dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        artifact = Artifact(sha256=sha256(data), size=len(data), media=media)
        self.held[artifact.sha256] = data
        return artifact

    def get(self, artifact: Artifact) -> bytes:
        if artifact.sha256 not in self.held:
            raise NotFoundError(f"No artifact {artifact.sha256[:12]}.")
        return self.held[artifact.sha256]

    def discard(self, artifact: Artifact) -> None:
        self.held.pop(artifact.sha256, None)


class TrustingSandbox:
    """Runs Python without any protection: only for reference calls that this project wrote itself."""

    def __init__(self) -> None:
        self.calls: list[SandboxCall] = []

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", call.code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        state = ToolState.OK if process.returncode == 0 else ToolState.ERROR
        size = len(out) + len(err)
        return SandboxResult(
            state,
            process.returncode,
            out.decode(),
            err.decode(),
            0.01,
            0.01,
            1.0,
            "none",
            "trusting",
            output_bytes=size,
        )

    async def close(self) -> None:
        """Nothing is open."""
