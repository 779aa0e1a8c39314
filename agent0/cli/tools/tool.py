"""Tools outside of any run: list them, make one call, inspect the tools of an untrusted server."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.runtime.mcp_tools import inspect_mcp
from agent0.assembly.tooling.tool_calls import RAW, ToolRequest, known_tool, open_bench, switched_off
from agent0.assembly.tooling.workspaces import content, find, read
from agent0.cli import console, flags
from agent0.errors import ConfigError
from agent0.settings import Settings
from agent0.tools import tools

LONGEST_CODE = 4 << 20
"""Bytes of code that are read; the sandbox refuses less."""


def list_(profile: console.Profile = None, pairs: console.Set = None, as_json: console.Json = False) -> None:
    """Every tool with what it does, whether it is switched on, and whether the profile's student has it."""
    settings = flags.settings(profile, pairs)
    off = switched_off(settings)
    rows = [
        {
            "tool": tool.name,
            "on": tool.name not in off,
            "student": tool.name in settings.run.student.tools,
            "does": _first_sentence(tool.spec.description),
            "why_off": off.get(tool.name, ""),
            "cached": tool.pure,
            "untrusted": tool.untrusted,
            "parameters": tool.spec.parameters,
        }
        for tool in tools().values()
    ]
    if as_json:
        console.data(rows)
        return
    shown = [{**row, "on": "on" if row["on"] else "off", "student": "yes" if row["student"] else "-"} for row in rows]
    console.table(shown, False, ("tool", "on", "student", "does"))
    for name, why in off.items():
        console.say(f"{name}: {why}.")


def call(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tool; see agent0 tool list.")],
    code: Annotated[str | None, typer.Option(help="python, shell: what to run.")] = None,
    code_file: Annotated[str | None, typer.Option(help="The same from a file; '-' is standard input.")] = None,
    arguments: Annotated[str | None, typer.Option("--args", help="Any tool: its arguments as a JSON object.")] = None,
    wall: Annotated[float | None, typer.Option(min=0.01, help="Seconds at most, up to sandbox.wall_s.")] = None,
    mem: Annotated[int | None, typer.Option(min=1, help="MiB at most, up to sandbox.mem_mib.")] = None,
    files: Annotated[Path | None, typer.Option(help="A folder to lay into the work folder first.")] = None,
    start: Annotated[
        str, typer.Option("--from", help="A work folder to start from: digest or ATTEMPT#CALL, calls counted from 1.")
    ] = "",
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Call one tool in a fresh sandbox. Exit code 1 where it did not end well: `state` has the outcome, refusals
    included. The JSON object always has tool, state, rc, stdout, stderr, wall_s, cpu_s, peak_mem_mib, tier, backend,
    reason, output_bytes, files (name and size) and manifest; with --args also output, which is what a model reads. All
    text is without terminal sequences; other control characters and direction marks in it are escapes."""
    settings = flags.settings(profile, pairs)
    if not settings.mcp.servers:  # they are asked for their tools only once there is a sandbox
        known_tool(name, tools())
    text, parsed = _code(code, code_file), _arguments(arguments)
    _either(name, text, parsed)
    _say_limits(settings, wall, mem)
    laid = {**(content(settings, find(settings, start)) if start else {}), **(read(files) if files else {})}
    request = ToolRequest(name, text, parsed or {}, wall, mem, laid, keep=True)
    record = console.run_async(lambda: _answered(settings, request))
    if as_json:
        console.data(record)
    else:
        _show(dict(record))
    if record["state"] != "ok" or record.get("rc"):
        raise typer.Exit(1)


def mcp(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server of the settings (mcp.servers).")],
    profile: console.Profile = None,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Show what an MCP server offers, and the digest to trust it by. Its texts are untrusted."""
    settings = flags.settings(profile, pairs)
    listing = console.run_async(lambda: inspect_mcp(settings, name))
    if as_json:
        console.data(listing)
        return
    console.record({key: value for key, value in listing.items() if key != "tools"}, False)
    console.table(listing["tools"], False, ("name", "description"))


def _first_sentence(description: str) -> str:
    return " ".join(description.split()).partition(". ")[0].rstrip(".")


def _code(code: str | None, code_file: str | None) -> str | None:
    if code_file is None or code is not None:
        if code_file is not None:
            raise ConfigError("--code and --code-file exclude one another.", fix="Give one of them.")
        return code
    try:
        if code_file == "-":
            return sys.stdin.read(LONGEST_CODE)
        with Path(code_file).open(encoding="utf-8") as file:
            return file.read(LONGEST_CODE)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{code_file} is not text in UTF-8.", f"{error.reason} at byte {error.start}.") from error
    except OSError as error:
        raise ConfigError(f"{code_file} cannot be read.", f"{error.strerror}.") from error


def _say_limits(settings: Settings, wall: float | None, mem: int | None) -> None:
    """What was asked for beyond the settings is not had: say so."""
    limits = settings.sandbox
    if wall and wall > limits.wall_s:
        console.say(f"--wall is cut to sandbox.wall_s = {limits.wall_s:g}.", "yellow")
    if mem and mem > limits.mem_mib:
        console.say(f"--mem is cut to sandbox.mem_mib = {limits.mem_mib}.", "yellow")


def _arguments(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("--args is no JSON.", f"{str(error)[:200]}.", 'Example: --args \'{"code": "1"}\'') from error
    if not isinstance(parsed, dict):
        raise ConfigError("--args is no JSON object.", fix='Example: --args \'{"code": "1"}\'')
    return parsed


def _either(name: str, code: str | None, arguments: dict[str, Any] | None) -> None:
    if (code is None) == (arguments is None):
        options = "--code, --code-file or --args" if name in RAW else "--args"
        raise ConfigError(f"{name} is called with one of: {options}.", fix="See: agent0 tool list --json")


async def _answered(settings: Settings, request: ToolRequest) -> dict[str, Any]:
    async with open_bench(settings, workers=1) as bench:
        return await bench.answer(request)


def _show(record: dict[str, Any]) -> None:
    """For people: what was measured, then what it said, cleaned."""
    texts = {name: record.pop(name) for name in ("stdout", "stderr", "output") if name in record}
    files = record.pop("files")
    console.record({name: value for name, value in record.items() if value not in (None, "")}, False)
    for name, size in files.items():
        console.text(f"file {console.one_line(name, 200)}  {size} bytes")
    for name, text in texts.items():
        if text:
            console.text(f"\n[{name}]\n{text.rstrip()}")
