"""pytest in the work folder: counts, reasons, no litter; what was forged is told, as far as it can be noticed."""

import pytest

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Bubblewrap
from agent0.settings import PolicyConfig
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def run(sandbox: Bubblewrap, files: dict[str, str], path: str = "") -> tuple[ToolResult, Workspace]:
    work = Workspace(sandbox, ["run_tests"], files={name: text.encode() for name, text in files.items()})
    return await call_tool(ToolCall(name="run_tests", arguments={"path": path}), work), work


KINDS = """
import pytest

def test_skipped():
    pytest.skip("counts as skipped")

@pytest.fixture
def broken(): 1 / 0

def test_error(broken): ...

@pytest.mark.parametrize("x", range(9))
def test_many(x):
    assert x < 2, "too large"

def test_expected():
    pytest.xfail("an expected failure counts as skipped")
    assert False

class TestClass:
    def test_inside(self, tmp_path, monkeypatch, capsys):
        print("noise" * 100)
        (tmp_path / "a").write_text("b")
"""


async def test_every_outcome_is_counted_and_the_first_failures_are_told(sandbox: Bubblewrap) -> None:
    result, _ = await run(sandbox, {"test_kinds.py": KINDS})
    first, *rest = result.output.splitlines()
    assert (result.state, first) == (ToolState.ERROR, "3 passed, 7 failed, 1 errors, 2 skipped")
    assert rest[0] == "- test_kinds.py::test_error (test_kinds.py:8): ZeroDivisionError: division by zero"
    assert rest[1] == "- test_kinds.py::test_many[2] (test_kinds.py:14): AssertionError: too large"
    assert rest[-1] == "and 3 more"
    assert "noise" not in result.output


async def test_a_path_chooses(sandbox: Bubblewrap) -> None:
    files = {
        "d/test_a.py": "def test(): pass",
        "d/e/test_b.py": "def test(): pass",
        "test_c.py": "def test(): assert 0",
    }
    outputs = [
        (await run(sandbox, files, path))[0].output.split("\n")[0] for path in ("d", "d/e/test_b.py", "./test_c.py", "")
    ]
    assert outputs == ["2 passed, 0 failed", "1 passed, 0 failed", "0 passed, 1 failed", "2 passed, 1 failed"]


async def test_what_tests_write_is_kept_and_litter_is_not(sandbox: Bubblewrap) -> None:
    files = {
        "code.py": "x = 1",
        "conftest.py": "import pytest\n@pytest.fixture\ndef one(): return 1",
        "test_a.py": "from code import x\ndef test(one):\n    assert x == one\n    open('out.txt', 'w').write('kept')",
        "__pycache__/old.pyc": "x",
        ".pytest_cache/v/x": "y",
    }
    result, work = await run(sandbox, files)
    assert result.output == "1 passed, 0 failed"
    assert sorted(work.files) == ["code.py", "conftest.py", "out.txt", "test_a.py"]
    assert result.files == 4


async def test_names_of_the_standard_library_are_free_and_settings_have_no_say(sandbox: Bubblewrap) -> None:
    files = dict.fromkeys(["random.py", "unittest.py", "json.py", "pytest.py", "pluggy.py"], "raise SystemExit(0)")
    files |= {
        "pytest.ini": "[pytest]\naddopts = --collect-only -p nonsense",
        "pyproject.toml": "[tool.pytest.ini_options]\nx",
    }
    result, _ = await run(sandbox, {**files, "test_a.py": "def test(): assert 1 == 2"})
    assert result.output.splitlines()[0] == "0 passed, 1 failed"


async def test_nothing_but_the_runner_is_added_to_what_may_be_imported(sandbox: Bubblewrap) -> None:
    test = "import pytest\ndef test():\n    with pytest.raises(ImportError):\n        import hypothesis"
    assert (await run(sandbox, {"test_a.py": test}))[0].output == "1 passed, 0 failed"
    work = Workspace(sandbox, ["run_tests"], PolicyConfig(modules=()), files={"test_a.py": b"def test(): import sympy"})
    result = await call_tool(ToolCall(name="run_tests"), work)
    assert "No module named 'sympy'" in result.output


async def test_a_late_hook_that_decides_results_is_told(sandbox: Bubblewrap) -> None:
    test = """
class Judge:
    def pytest_runtest_makereport(self): ...

def test_first(request):
    request.config.pluginmanager.register(Judge())

def test_second():
    assert False
"""
    result, _ = await run(sandbox, {"test_a.py": test})
    assert result.state is ToolState.ERROR
    assert "not to be relied on: pytest_runtest_makereport of test_a decides results" in result.output


async def test_ordinary_hooks_and_fixtures_are_no_reason_for_doubt(sandbox: Bubblewrap) -> None:
    conftest = """
import pytest

def pytest_configure(config): config.addinivalue_line("markers", "slow: takes long")
def pytest_collection_modifyitems(items): items.reverse()
def pytest_generate_tests(metafunc): ...

@pytest.fixture(autouse=True)
def around(monkeypatch):
    monkeypatch.setattr("os.getcwd", lambda: "/nowhere")
    yield
"""
    result, _ = await run(sandbox, {"conftest.py": conftest, "test_a.py": "def test(): assert 1"})
    assert (result.state, result.output) == (ToolState.OK, "1 passed, 0 failed")
