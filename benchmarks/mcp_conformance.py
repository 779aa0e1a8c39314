"""Whether our MCP server and client pass the protocol's own conformance suite.

``make conformance`` installs the suite in build/conformance and runs ``python -m benchmarks.mcp_conformance --write``:
the server as it is served over HTTP, with six things added that the suite asks for by name, and the client as a run
uses it. What fails because we do not offer it is named so; any other failure ends the command with 1.
"""

import argparse
import asyncio
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agent0.api.mcp import serve_mcp_http
from agent0.assembly.runtime.mcp_tools import mcp_application
from agent0.cli.tools.mcp_server import offered_prompts, readings
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.infra.mcp import http, messages
from agent0.tools.definition import OfferedPrompt, OfferedTool
from benchmarks.measured_page import write

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "build" / "conformance" / "node_modules"
REVISIONS, SIDES = ("2026-07-28", "2025-11-25"), ("server", "client")
Row = tuple[str, str, bool]
"""Which side, a scenario, whether it passed."""
Answer = Callable[[Mapping[str, object]], Awaitable[tuple[str, bool]]]
WAIT_S = 30
NOT_OFFERED: Mapping[str, str] = {
    r"sep-2322-.*|elicitation-sep1034-client-.*": "answers to a server",
    r"(completion|logging)-.*|resources-(un)?subscribe|tools-call-with-(progress|logging)": (
        "completions, notifications"
    ),
    r"(tools-call|prompts-get)-(with-)?(image|audio|embedded-resource|mixed-content)|resources-read-binary": (
        "anything but text"
    ),
    r"(input-required-|tools-call-(sampling|elicitation)|elicitation-).*|server-stateless": "questions to a client",
    r"auth/.*": "OAuth (not run)",
}
"""Scenarios that fail, and what they need that we do not offer."""


def prompt_fixtures() -> list[OfferedPrompt]:
    """Make the prompts that the suite expects of every server, as far as they are text."""

    async def write(arguments: Mapping[str, str]) -> str:
        return f"This is a simple prompt for testing. {' '.join(arguments.values())}"

    both = {"arg1": "the first", "arg2": "the second"}
    return [
        OfferedPrompt("test_simple_prompt", "A prompt.", {}, write),
        OfferedPrompt("test_prompt_with_arguments", "A prompt.", both, write),
    ]


def fixtures() -> list[OfferedTool]:
    """Make what the suite expects of every server, as far as it is text."""

    async def simple(_: Mapping[str, object]) -> tuple[str, bool]:
        return "This is a simple text response for testing.", False

    async def fails(_: Mapping[str, object]) -> tuple[str, bool]:
        raise ConfigError("This tool intentionally returns an error for testing.")

    async def static(_: Mapping[str, object]) -> tuple[str, bool]:
        return "This is the content of the static text resource.", False

    async def templated(arguments: Mapping[str, object]) -> tuple[str, bool]:
        return json.dumps({"id": arguments["id"], "templateTest": True}), False

    def tool(name: str, answer: Answer, uri: str = "", media: str = "text/plain") -> OfferedTool:
        return OfferedTool(name, name, {"type": "object"}, answer, reads=True, uri=uri, media=media)

    return [
        tool("test_simple_text", simple),
        tool("test_error_handling", fails),
        tool("static_text", static, "test://static-text"),
        tool("template", templated, "test://template/{id}/data", "application/json"),
    ]


async def be_client(url: str) -> None:
    """List the tools of the server at ``url``; make the calls that the suite asks for, or one of each tool."""
    listing, _ = await http.ask(url, WAIT_S)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    calls = [(call["name"], call["arguments"]) for call in context.get("toolCalls", ())]
    for name, arguments in calls or [(tool.name, dict(_arguments(tool))) for tool in listing.tools]:
        try:
            _, raw = await http.ask(url, WAIT_S, name, arguments, listing.digest)
            sys.stdout.write(f"{name}: {messages.result_text(raw)}\n")
        except messages.WireError as error:
            sys.stdout.write(f"{name}: {error}\n")


def _arguments(tool: messages.ListedTool) -> Iterator[tuple[str, object]]:
    properties = tool.schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        yield name, {"string": "x", "boolean": True}.get(str(part.get("type")), 1)


def required(revision: str, side: str) -> list[str]:
    """Names of the scenarios that ``revision`` requires of a server or a client."""
    text = (SUITE / "@modelcontextprotocol" / "conformance" / "requirements" / f"{revision}.yaml").read_text()
    part = text.partition("\nnot_scored:")[0].partition(f"\n{side}:")[2]
    return re.findall(r"^  - (\S+)$", re.split(r"^\w", part, flags=re.M)[0], re.M)


def passed(folder: Path, side: str) -> set[str]:
    """Names of the scenarios with results in ``folder``, all of whose checks passed."""
    names = set()
    for path in folder.glob("**/checks.json"):
        if all(check["status"] != "FAILURE" for check in json.loads(path.read_bytes())):
            place = path.parent.relative_to(folder).as_posix()
            name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", place)
            names.add(name.removeprefix("server-") if side == "server" else name)
    return names


async def suite(*words: str) -> None:
    """Run one command of the suite."""
    command = (SUITE / ".bin" / "node", SUITE / "@modelcontextprotocol" / "conformance" / "dist" / "index.js", *words)
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*map(str, command), cwd=ROOT, stdout=quiet, stderr=quiet)
    await process.wait()


async def check(url: str, revision: str, folder: Path) -> list[Row]:
    """Run each scenario that ``revision`` requires, but OAuth's."""
    await suite("server", "--url", url, "--requirements", revision, "-o", str(folder / "server"))
    client = f"{shlex.quote(sys.executable)} -m benchmarks.mcp_conformance --client"
    for name in required(revision, "client"):
        if not name.startswith("auth/"):
            options = ("--scenario", name, "--spec-version", revision, "-o", str(folder / "client"))
            await suite("client", "--command", client, *options)
    results = {side: passed(folder / side, side) for side in SIDES}
    return [(side, name, name in results[side]) for side in results for name in required(revision, side)]


async def measure() -> Mapping[str, list[Row]]:
    """The rows of ``check`` for each revision."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load(None, {"home": folder, "api.port": "0"}, {})
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        tools = [*fixtures(), *readings(settings)]
        opening = mcp_application(tools, [*prompt_fixtures(), *offered_prompts(settings)])
        reads = {tool.name for tool in tools if tool.reads}
        serving = asyncio.create_task(serve_mcp_http(settings, opening, reads, address.set_result))
        try:
            url = await address
            return {revision: await check(url, revision, Path(folder) / revision) for revision in REVISIONS}
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def reason(scenario: str) -> str:
    """What ``scenario`` needs that we do not offer; empty where its failure would be a fault."""
    return next((why for pattern, why in NOT_OFFERED.items() if re.fullmatch(pattern, scenario)), "")


def page(measured: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The lines of the table."""
    yield "| | " + " | ".join(f"{side}, {revision}" for side in SIDES for revision in measured) + " |"
    yield "|---" * (1 + len(SIDES) * len(measured)) + "|"
    runs = [[row for row in measured[revision] if row[0] == side] for side in SIDES for revision in measured]
    yield _line("passed", [sum(ok for _, _, ok in rows) for rows in runs])
    for why in NOT_OFFERED.values():
        yield _line(why, [sum(not ok and reason(name) == why for _, name, ok in rows) for rows in runs])
    if any(faults := [sum(not ok and not reason(name) for _, name, ok in rows) for rows in runs]):
        yield _line("failed", faults)


def _line(name: str, counts: Sequence[int]) -> str:
    return f"| {name} | {' | '.join(str(count or '-') for count in counts)} |"


def main() -> None:
    """Run the suite and print the tables, or write them; with ``--client`` be the client that it tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/results/mcp.md")
    parser.add_argument("--client", metavar="URL", help="be the client of the server at URL")
    options = parser.parse_args()
    if options.client:
        asyncio.run(be_client(options.client))
        return
    measured = asyncio.run(measure())
    text = "\n".join(page(measured)) + "\n"
    sys.stdout.write(text)
    if options.write:
        write("mcp.md", text)
    rows = [(revision, *row) for revision in measured for row in measured[revision]]
    faults = [f"{revision} {side}: {name}" for revision, side, name, ok in rows if not ok and not reason(name)]
    if faults:
        raise SystemExit("These fail, and should not: " + ", ".join(faults))


if __name__ == "__main__":
    main()
