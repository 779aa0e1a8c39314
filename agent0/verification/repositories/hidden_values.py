"""Verifies a repository by what calls of its functions give. Right values never enter the sandbox: code that is written
against its judge has nothing to forge."""

import ast
import base64
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.base import Value
from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall
from agent0.verification.repositories.hidden_tests import MEM_MIB, ROOT

LONGEST = 100_000
"""Characters of all values of a repository that are read."""
EACH_S = 1.0
"""Seconds that the processor may work on a call where versions are compared: one of them may run for ever."""
RAISES = "raises "
"""What the text of a call begins with that has no value; the error's name stands behind it."""
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
_PROGRAM = """import base64, importlib, json, os, signal, sys, zlib
def over(*_):
    raise TimeoutError
requests, out, results = json.loads(zlib.decompress(base64.b85decode({request!r}))), sys.stdout, []
here, before, place = os.getcwd(), set(sys.modules), None
for folder, module, prelude, expressions in requests:
    if folder:
        if folder != place:
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], '__file__', None)).startswith(here):
                    del sys.modules[name]
            sys.path[:] = [os.path.join(here, folder)] + [path for path in sys.path if not path.startswith(here)]
            importlib.invalidate_caches()
            signal.signal(signal.SIGVTALRM, over)
        place = folder
    try:
        names = dict(vars(importlib.import_module(module)))
        exec(prelude, names)
    except BaseException as error:
        results.append(['raises ' + type(error).__name__] * len(expressions))
        continue
    values = []
    for expression in expressions:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, {each} if folder else 0)
            values.append(repr(eval(expression, names)))
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except BaseException as error:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            values.append('raises ' + type(error).__name__)
    results.append(values)
out.write('\\n' + base64.b85encode(zlib.compress(json.dumps(results).encode())).decode())
"""


class ModuleCalls(Value):
    """Calls over the names of ``module``, after ``prelude`` was run there, each with the text of its value. ``folder``
    is where the module is imported from, anew where the one before is another; empty for the top."""

    module: str
    prelude: str
    calls: tuple[tuple[str, str], ...]
    folder: str = ""


class HiddenCalls(Value):
    """All calls that decide about a repository, as they are stored."""

    modules: tuple[ModuleCalls, ...]


async def values_of(
    modules: Sequence[ModuleCalls], code: Mapping[str, bytes], sandbox: Sandbox, seconds: float, root: Root = ROOT
) -> tuple[list[list[str]], str, bool]:
    """Make all calls of ``modules`` on the files ``code``, which may import what ``root`` has; returns the text of each
    value by module, or why there is none, and whether that is the sandbox's own fault.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    request = [
        [entry.folder, entry.module, entry.prelude, [expression for expression, _ in entry.calls]] for entry in modules
    ]
    text = base64.b85encode(zlib.compress(json.dumps(request).encode())).decode()
    call = SandboxCall(
        "python", _PROGRAM.format(request=text, each=EACH_S), code, wall_s=seconds, mem_mib=MEM_MIB, root=root
    )
    result = await sandbox.call(call)
    if result.state in _NOBODYS_FAULT:
        return [], f"the sandbox: {result.state.value} {result.reason}".strip(), True
    if result.state is ToolState.TIMEOUT:
        return [], "its calls hang", False
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b85decode(result.stdout.rpartition("\n")[2]), 20 * LONGEST)
        return _read(json.loads(data), modules), "", False
    except (ValueError, zlib.error, RecursionError):
        return [], f"its calls end their own process: {result.state.value}", False


def _read(values: object, modules: Sequence[ModuleCalls]) -> list[list[str]]:
    """``values`` where there is a text for each call.

    Raises:
        ValueError: there is not.
    """
    lists = values if isinstance(values, list) and all(isinstance(part, list) for part in values) else []
    if [len(part) for part in lists] != [len(entry.calls) for entry in modules]:
        raise ValueError("calls without a value")
    return [[str(value)[:LONGEST] for value in part] for part in lists]


def is_readable(value: str) -> bool:
    """Whether a text is that of a literal: one that has an address or a time in it shows nothing."""
    try:
        ast.literal_eval(value)
        return True
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def is_same(expected: str, value: str) -> bool:
    """Whether two texts are of equal values, which are read without running anything."""
    if expected == value:
        return True
    try:
        right, other = ast.literal_eval(expected), ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return bool(right == other)


def mended_share(failing: Collection[str], failed: Collection[str]) -> float | None:
    """Return the share of the tests ``failing`` before a change that are not among those that ``failed`` after it, less
    the others that did; at least 0. None where none was failing."""
    broken = len({*failed}.difference(failing))
    left = len({*failing}.intersection(failed))
    return round(max(0.0, 1 - (left + broken) / len(failing)), 4) if failing else None


@dataclass(frozen=True)
class HiddenValues:
    """Calls that decide about the code of ``packages``, within ``seconds``; ``failing`` ones, by module and call, are
    wrong before the task is solved."""

    packages: Sequence[str]
    modules: Sequence[ModuleCalls]
    seconds: float
    failing: Sequence[str] = ()

    @property
    def tests(self) -> list[str]:
        """The calls, each with its module."""
        return [f"{entry.module}: {expression}" for entry in self.modules for expression, _ in entry.calls]

    async def accept(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str]:
        """Whether all calls give what they should on ``code``, and why not; the rest as for ``grade``."""
        return (await self.grade(code, sandbox))[:2]

    async def grade(self, code: Mapping[str, bytes], sandbox: Sandbox) -> tuple[bool | None, str, float | None]:
        """Whether all calls give what they should on ``code``, why not, and the share of the failing ones that do now,
        less those that it breaks. None where the sandbox itself failed.

        Raises:
            SandboxUnavailableError: there is no sandbox.
        """
        files = {path: data for path, data in code.items() if path.partition("/")[0] in self.packages and "/" in path}
        values, problem, sandbox_failed = await values_of(self.modules, files, sandbox, self.seconds)
        if problem:
            return (None, problem, None) if sandbox_failed else (False, problem, 0.0)
        texts = [value for part in values for value in part]
        expected = [value for entry in self.modules for _, value in entry.calls]
        names = [f"{entry.module.rpartition('.')[2]}: {call}" for entry in self.modules for call, _ in entry.calls]
        pairs = zip(names, expected, texts, strict=True)
        wrong = [name for name, value, text in pairs if not is_same(value, text)]
        why = f"{len(wrong)} of {len(expected)} calls give another value" if wrong else ""
        return not wrong, why, mended_share(self.failing, wrong)
