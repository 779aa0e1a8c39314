"""pytest on files of the work folder. It informs a student and is no judge: tests and what they test are the student's
own, and share a process with the runner. Code that ends the process, rewrites the runner or decides its results by
hooks is noticed as far as that allows; whoever controls both sides can still forge a count. Verdicts come from
verifiers, which take no test's word.
"""

import json
import re
from dataclasses import replace
from typing import Annotated

from agent0.events.values import ToolResult, ToolState
from agent0.ports.sandbox import SandboxResult
from agent0.tools import tool
from agent0.tools.definition import Example
from agent0.tools.paths import listed, missing, mistaken, plain
from agent0.tools.results import answer
from agent0.tools.workspace import Workspace

PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""Packages that the runner needs inside."""
WALL_S = 10.0
_LITTER = re.compile(r"(^|/)(__pycache__|\.pytest_cache)(/|$)")

_PROGRAM = r"""
import json, os, sys

path, here = json.loads(GIVEN), os.getcwd()
sys.path[:] = [one for one in sys.path if one not in (here, '')]  # a student's random.py is for its tests alone
sys.dont_write_bytecode = True
os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'
import importlib, select, types
import pytest, _pytest.config, pluggy
for plugin in _pytest.config.default_plugins:
    importlib.import_module('_pytest.' + plugin)

DECIDING = ('pytest_runtest_protocol', 'pytest_runtest_makereport', 'pytest_runtest_call', 'pytest_pyfunc_call',
            'pytest_runtestloop', 'pytest_sessionfinish', 'pytest_runtest_logreport', 'pytest_cmdline_main')

def parts():
    # every function of the runner, and the code in it
    for name, module in sorted(sys.modules.items()):
        if name.split('.')[0] in ('_pytest', 'pytest', 'pluggy') and isinstance(module, types.ModuleType):
            held = dict(vars(module))
            for one in list(held.values()):
                if isinstance(one, type) and one.__module__.split('.')[0] in ('_pytest', 'pluggy'):
                    held.update({one.__module__ + one.__qualname__ + '.' + n: v for n, v in vars(one).items()})
            for title, value in held.items():
                inner = getattr(value, '__func__', None) or getattr(value, 'fget', None) or value
                if isinstance(inner, types.FunctionType):
                    yield (name, title), (id(inner), id(inner.__code__))

class Watch:
    def __init__(self):
        self.counts = {'passed': 0, 'failed': 0, 'skipped': 0, 'errors': 0}
        self.failures, self.doubts, self.collected, self.called = [], [], 0, 0

    def note(self, title, report):
        crash = getattr(getattr(report, 'longrepr', None), 'reprcrash', None)
        lines = str(crash.message if crash else report.longrepr).strip().splitlines()
        where = ' (%s:%d)' % (os.path.relpath(crash.path, here), crash.lineno) if crash else ''
        text = '\n'.join(lines[:4]) if crash else '\n'.join(lines[-3:])
        self.failures.append(('%s%s: %s' % (title, where, text))[:500])

    def pytest_collectreport(self, report):
        if report.failed:
            self.counts['errors'] += 1
            self.note(report.nodeid or 'collection', report)

    def pytest_collection_finish(self, session):
        self.collected = len(session.items)
        self.look(session.config)

    def pytest_unconfigure(self, config):
        self.look(config)

    def look(self, config):
        for hook in DECIDING:
            for found in getattr(config.hook, hook).get_hookimpls():
                if found.plugin is not self and found.function.__module__.split('.')[0] != '_pytest':
                    self.doubts.append('%s of %s decides results' % (hook, found.function.__module__))

    def pytest_runtest_logreport(self, report):
        if report.when == 'call' or report.outcome != 'passed':
            kind = 'errors' if report.when != 'call' and report.failed else report.outcome
            self.counts[kind] += 1
            self.called += report.when != 'teardown'
            if report.failed:
                self.note(report.nodeid, report)

def child(pipe):
    quiet, own = os.open(os.devnull, os.O_RDWR), os.getpid()
    for fd in (0, 1, 2):
        os.dup2(quiet, fd)
    before, watch = dict(parts()), Watch()
    sys.path[:0] = [folder for folder in (here, os.path.join(here, 'src')) if os.path.isdir(folder)]
    wanted = ['-q', '--no-header', '-c', os.devnull, '--rootdir', here, '-p', 'no:cacheprovider', path or here]
    status = pytest.main(wanted, plugins=[watch])
    if status not in (0, 1, 5) and not watch.counts['errors']:
        watch.doubts.append('pytest was stopped before its end')
    after = dict(parts())
    if any(after.get(key) != value for key, value in before.items()):
        watch.doubts.append('the tests changed pytest itself')
    if watch.called != watch.collected:
        watch.doubts.append('%d tests were found, %d were run' % (watch.collected, watch.called))
    said = {'counts': watch.counts, 'failures': watch.failures[:5], 'doubts': sorted(set(watch.doubts))[:5]}
    if os.getpid() == own:  # and no child of a test's
        os.write(pipe, (json.dumps(said) + '\n').encode())

def report():
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        try:
            child(theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    text = os.read(ours, 1 << 16).decode(errors='replace') if select.select([ours], [], [], 0)[0] else ''
    try:
        (line,) = text.splitlines()
        return json.loads(line)
    except ValueError:
        return None

said = report()
if said is None:
    print('the tests ended the process before they were done: nothing can be said of them')
    sys.exit(1)
counts = said['counts']
print(', '.join('%d %s' % (counts[kind], kind) for kind in ('passed', 'failed', 'errors', 'skipped')
                if counts[kind] or kind in ('passed', 'failed')))
for failure in said['failures']:
    print('- ' + failure)
left = counts['failed'] + counts['errors'] - len(said['failures'])
if left > 0:
    print('and %d more' % left)
for doubt in said['doubts']:
    print('not to be relied on: ' + doubt)
if not any(counts.values()):
    print('no test was found: files are named test_*.py, functions test_*')
sys.exit(bool(counts['failed'] or counts['errors'] or said['doubts'] or not counts['passed']))
"""

_CODE = ("write_file", {"path": "double.py", "content": "def double(x):\n    return x + 2\n"})
_TEST = (
    "write_file",
    {
        "path": "test_double.py",
        "content": "from double import double\n\ndef test_two():\n    assert double(2) == 4\n\n"
        "def test_three():\n    assert double(3) == 6\n",
    },
)
_MENDED = ("edit_file", {"path": "double.py", "old": "x + 2", "new": "2 * x"})


@tool(
    pure=True,
    needs=[("module", "pytest")],
    examples=[
        Example(
            {},
            "1 passed, 1 failed\n- test_double.py::test_three (test_double.py:7): assert 5 == 6\n"
            " +  where 5 = double(3)",
            ToolState.ERROR,
            (_CODE, _TEST),
        ),
        Example({"path": "test_double.py"}, "2 passed, 0 failed", after=(_CODE, _TEST, _MENDED)),
    ],
)
async def run_tests(
    work: Workspace, path: Annotated[str, "a test file or a folder; empty: the whole work folder"] = ""
) -> ToolResult:
    """Run the tests in your work folder with pytest: files named test_*.py, functions named test_* with asserts. You
    get back how many pass, and why the others fail. Example: {} or {"path": "test_double.py"}
    """
    path = plain(path)
    if not any(not path or name == path or name.startswith(f"{path}/") for name in work.files):
        return mistaken(missing(path, work.files) if path else f"There are no tests. {listed('', work.files)}")
    result = await work.python(f"GIVEN = {json.dumps(path)!r}\n{_PROGRAM}", modules=PYTEST, wall_s=WALL_S)
    work.files = {name: data for name, data in work.files.items() if not _LITTER.search(name)}
    return _test_answer(result)


def _test_answer(result: SandboxResult) -> ToolResult:
    """What the runner printed; an exit without its words is no pass."""
    if result.state is ToolState.OK and not re.match(r"[1-9]\d* passed, 0 failed", result.stdout):
        result = replace(result, state=ToolState.ERROR, reason="it ended without a result")
    read = answer(result)
    return read if read.output else read.model_copy(update={"output": "The tests ended their own runner."})
