"""Hostile and broken calls of every tool, each with the states it may end in. Every tool has its rows here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent0.events.values import ToolState as S

CODE = (S.OK, S.ERROR)


@dataclass(frozen=True)
class Hostile:
    """``files`` are there before. ``says`` is part of the output; ``seconds`` what is left of the attempt's tool time.
    ``kept``: names of the files that are there afterwards, those before where not given."""

    tool: str
    arguments: Mapping[str, Any]
    states: tuple[S, ...]
    says: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    seconds: float = 20.0
    kept: tuple[str, ...] | None = None


def _each(tool: str, rows: list[tuple[Any, ...]], name: str, **more: Any) -> list[Hostile]:
    return [Hostile(tool, {name: row[0]}, row[1], *row[2:], **more) for row in rows]


PYTHON = [
    *_each(
        "python",
        [
            ("x = [0]\nwhile True: x = x + x", (S.MEMORY, S.ERROR)),
            ("while True: print('y' * 65536)", (S.OUTPUT_FLOOD,), "printed far too much"),
            ("(" * 5000, (S.ERROR,), "SyntaxError"),
            ("x" * (1 << 20) + "y", (S.REFUSED,), "longer than"),
            ("print(1)\0", (S.REFUSED,), "NUL"),
            ("import os\nos.kill(os.getpid(), 9)", (S.ERROR,)),
            ("print(open('/etc/shadow').read())", (S.ERROR,), "No such file"),
            ("import socket\nsocket.create_connection(('127.0.0.1', 22))", (S.ERROR,)),
            ("import os\nprint(dict(os.environ), open('/proc/self/environ', 'rb').read())", CODE),
            ("import sys\nsys.stdout.buffer.write(bytes(range(256)) + b'\\x1b]0;title\\x07')", (S.OK,)),
            ("print('\\ud800')", CODE),
        ],
        "code",
    ),
    Hostile("python", {"code": "while True: pass"}, (S.TIMEOUT,), "time limit", seconds=0.5),
]

SHELL = [
    *_each(
        "shell",
        [
            ("yes", (S.OUTPUT_FLOOD, S.TIMEOUT)),
            ("cat /etc/shadow", (S.ERROR,), "No such file"),
            ("echo 'open", (S.ERROR,), "unexpected EOF"),
            ("git -c alias.x='!cat /etc/shadow' x", (S.ERROR,), "there is no program git here"),
            ('$(echo cat) /etc/passwd; "c"at /etc/passwd', (S.ERROR,), "No such file"),
            ("x" * (100 << 10) + "y", (S.REFUSED,), "longer than"),
            ("kill -9 -1", CODE),
            ("exec >&- 2>&-", CODE),
            ("echo hi > /dev/tcp/127.0.0.1/22", (S.ERROR,)),
            ("rm -rf / --no-preserve-root; echo still", CODE, "still"),
        ],
        "command",
    ),
    Hostile("shell", {"command": "(setsid sleep 100 &); sleep 100"}, (S.TIMEOUT,), seconds=0.5),
]

NO_PYTHON = [
    ("exec(chr(112)+chr(114)+chr(105)+chr(110)+chr(116))", "no function named"),
    ("exec(chr(49))", "no function named"),
    ("eval(input())", "no function named"),
    ("open(chr(47))", "no function named open"),
    ("getattr(x, y)", "no function named getattr"),
    ("globals()", "no function named globals"),
    ("print(7)", "no function named print"),
    ("__import__(os)", "not a mathematical expression"),
    ("().__class__.__bases__", "not a mathematical expression"),
    ("S('__import__(chr(111))')", "not a mathematical expression"),
    ("sympify(x)", "no function named sympify"),
    ("parse_expr(x)", "no function named parse_expr"),
    ("lambdify(x, x)", "no function named lambdify"),
    ("Function(exec)(1)", "not a mathematical expression"),
    ("Symbol(exec)", "not a mathematical expression"),
    ("Symbol('x').func", "not a mathematical expression"),
    ("(sin)(exec)(chr(1))", "no function named chr"),
    ("[exec][0](1)", "only functions can be called"),
    ("[x for x in [1]]", "cannot be read"),
    ("x if y else z", "cannot be read"),
    ("lambda", "cannot be read"),
    ("(yield)", "is no part of one"),
    ("(x := exec)", "not a mathematical expression"),
    ("exec.x", "not a mathematical expression"),
    ("sqrt(x, evaluate=exec)", "cannot be read"),
]
"""None of it is an expression, and none of it is run."""

SYMPY = [
    Hostile("sympy", {"operation": "evaluate", "expression": text}, states, says)
    for text, states, says in [
        ("__import__('os').system('id')", (S.ERROR,), "not a mathematical expression"),
        ("x.__class__", (S.ERROR,), "not a mathematical expression"),
        ("(" * 400, (S.ERROR,), "too large"),
        ("9" * 60, (S.ERROR,), "too large"),
        ("x\0y", (S.ERROR,), "not a mathematical expression"),
        ("\ud800", (S.ERROR,), "not a mathematical expression"),
        ("eval", CODE, ""),
        *((text, (S.ERROR,), said) for text, said in NO_PYTHON),
        ("", (S.ERROR,), "not a mathematical expression"),
        ("x = = 2", (S.ERROR,), "one = sign; this has 2"),
        ("x = y = 2", (S.ERROR,), "one = sign; this has 2"),
        ("= 2", (S.ERROR,), "one side of the = sign"),
        ("2 == 2", (S.OK,), "True"),
    ]
] + [
    Hostile("sympy", {"operation": "evaluate", "expression": "9^9^9^9"}, (S.TIMEOUT, S.MEMORY, S.ERROR), seconds=1.0),
    Hostile("sympy", {"operation": "solve", "expression": "x < 2"}, (S.ERROR,), "takes an equation or an expression"),
    Hostile("sympy", {"operation": "dance", "expression": "x"}, (S.ERROR,), "operation: Input should be 'solve'"),
]

_FAILING = b"def test_wrong():\n    assert 1 == 2\n"


def _tests(states: tuple[S, ...], says: str, test: bytes = _FAILING, conftest: bytes = b"", **more: Any) -> Hostile:
    files = {"test_a.py": test} | ({"conftest.py": conftest} if conftest else {})
    return Hostile("run_tests", {}, states, says, files, **more)


RUN_TESTS = [
    _tests((S.ERROR,), "ended the process before they were done", b"import os\ndef test(): os._exit(0)\n"),
    _tests((S.ERROR,), "ended the process before they were done", b"import os\nos.kill(os.getpid(), 9)\n"),
    _tests((S.ERROR,), "", b"import os\nos.kill(os.getppid(), 9)\n"),
    _tests((S.ERROR,), "", b"import os\nos.kill(-1, 9)\n"),
    _tests((S.ERROR,), "stopped before its end", b"import sys\nsys.exit(0)\n"),
    _tests((S.ERROR,), "", b"import pytest\npytest.exit('all good', returncode=0)\n"),
    _tests((S.ERROR,), "pytest_pyfunc_call of conftest", conftest=b"def pytest_pyfunc_call(pyfuncitem): return True\n"),
    _tests(
        (S.ERROR,),
        "pytest_runtest_makereport of conftest",
        conftest=b"import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
        b"    done = yield\n    done.get_result().outcome = 'passed'\n",
    ),
    _tests(
        (S.ERROR,),
        "changed pytest itself",
        conftest=b"import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
    ),
    _tests(
        (S.ERROR,),
        "changed pytest itself",
        b"import _pytest.python as p\np.Function.runtest.__code__ = (lambda self: None).__code__\n" + _FAILING,
    ),
    _tests((S.ERROR,), "1 failed", conftest=b"def pytest_sessionfinish(session): session.exitstatus = 0\n"),
    _tests(
        (S.ERROR,),
        "before they were done",
        b"import os\ndef test():\n    for fd in range(3, 64):\n        try: os.write(fd, b'{\"counts\": {}}\\n')\n"
        b"        except OSError: pass\n",
    ),
    _tests((S.ERROR,), "1 errors", b"def test(:\n"),
    _tests((S.ERROR,), "1 errors", b"\xff\xfe\0"),
    _tests((S.TIMEOUT,), "time limit", b"while True: pass\n", seconds=1.5),
    _tests((S.MEMORY, S.ERROR), "", b"x = []\nwhile True: x.append(bytearray(1 << 20))\n"),
    _tests((S.OK,), "1 passed", b"import os\ndef test():\n    if os.fork() == 0:\n        os.setsid()\n", seconds=5.0),
    _tests((S.OK,), "1 passed", b"def test(): print('x' * 1000000)\n"),
    Hostile("run_tests", {"path": "../../etc"}, (S.ERROR,), "no path inside the work folder", {"a.py": b""}),
    Hostile("run_tests", {"path": "-h"}, (S.ERROR,), "there is no file -h", {"a.py": b""}),
    Hostile("run_tests", {}, (S.ERROR,), "no test was found", {"a.py": b"x = 1\n"}),
    Hostile("run_tests", {}, (S.OK,), "1 passed", {"random.py": b"raise 1\n", "test_a.py": b"def test(): pass\n"}),
    Hostile(
        "run_tests", {}, (S.OK,), "1 passed", {"pytest.ini": b"[pytest]\naddopts = -h\n", "test_a.py": b"def test(): 1"}
    ),
]

LINT = [
    Hostile("lint", {"path": "../x.py"}, (S.ERROR,), "no path inside", {"a.py": b""}),
    Hostile("lint", {"path": "a.py; cat /etc/passwd"}, (S.ERROR,), "there is no file", {"a.py": b""}),
    Hostile("lint", {"path": "--help.py"}, (S.OK,), "No problems", {"--help.py": b"x = 1\n"}),
    Hostile("lint", {"path": "$(id).py"}, (S.OK,), "Undefined name", {"$(id).py": b"print(y)\n", "b.py": b""}),
    Hostile("lint", {"path": "a.py"}, (S.OK, S.ERROR), "", {"a.py": b"(" * 20_000}),
    Hostile("lint", {"path": "a.py"}, (S.OK, S.ERROR), "", {"a.py": b"x = " + b"-" * 50_000 + b"1"}),
    Hostile("lint", {"path": "a.py"}, (S.OK, S.ERROR), "", {"a.py": bytes(range(256))}),
    Hostile("lint", {}, (S.OK,), "F401", {"a.py": b"import os\n", "ruff.toml": b"lint.ignore = ['F401']\n"}),
    Hostile("lint", {}, (S.ERROR,), "no Python file", {"a.txt": b"x"}),
]

_DEEP = {
    "brackets": b"(" * 50_000 + b")" * 50_000,
    "sums": b"x" + b"+x" * 100_000,
    "signs": b"x = " + b"-" * 100_000 + b"1",
    "attributes": b"x" + b".y" * 100_000,
    "functions": b"".join(b" " * n + b"def f():\n" for n in range(99)) + b" " * 99 + b"pass\n",
    "binary": bytes(range(256)),
    "cookie": b"# -*- coding: nonsense -*-\nx = 1\n",
    "syntax": b"def f(:\n",
}
ANALYZE = [
    Hostile("analyze_code", {"path": "a.py"}, (S.ERROR,) if name != "functions" else (S.OK,), "", {"a.py": code})
    for name, code in _DEEP.items()
] + [
    Hostile("analyze_code", {"path": "a.py"}, (S.ERROR,), "at most", {"a.py": b"x\n" * 200_000}),
    Hostile("analyze_code", {"path": "a.py"}, (S.OK,), "left out", {"a.py": b"def f(): pass\n" * 10_000}),
    Hostile("analyze_code", {"path": "/etc/passwd"}, (S.ERROR,), "no path inside"),
    Hostile("analyze_code", {"path": "a.py"}, (S.OK,), "module: complexity 1", {"a.py": b"", "ast.py": b"raise 1"}),
]

_PLACES = ["../a.txt", "/etc/passwd", "a/../../b", "a//b", "a\0b", "a\nb", "", ".", "\ud800", "x" * 2000, "~/../.."]
READ = [Hostile("read_file", {"path": path}, (S.ERROR,), files={"a.txt": b"x"}) for path in _PLACES] + [
    Hostile("read_file", {"path": "."}, (S.ERROR,), "the work folder itself. Name a file in it", {"a": b"x"}),
    Hostile("read_file", {"path": "b"}, (S.ERROR,), "is no text: 4 bytes", {"b": b"\0\xff\x1b["}),
    Hostile("read_file", {"path": "b"}, (S.ERROR,), "too many to read", {"b": b"x" * (5 << 20)}),
    Hostile("read_file", {"path": "b", "start": 9}, (S.ERROR,), "only 1 lines", {"b": b"x"}),
    Hostile("read_file", {"path": "b", "start": 0}, (S.ERROR,), "wrong arguments", {"b": b"x"}),
    Hostile("read_file", {"path": "b", "lines": 10**9}, (S.ERROR,), "wrong arguments", {"b": b"x"}),
    Hostile("read_file", {"path": "b"}, (S.OK,), "left out", {"b": b"x" * 100_000}),
    Hostile("read_file", {"path": "b"}, (S.OK,), "", {"b": b"\x1b[2J\x1b]0;x\x07a\r\nb"}),
    Hostile("read_file", {"path": "b"}, (S.OK,), "empty", {"b": b""}),
]
WRITE = [
    Hostile("write_file", {"path": path, "content": "x"}, (S.ERROR,), files={"a.txt": b"x"}) for path in _PLACES
] + [
    Hostile("write_file", {"path": "a.txt/b", "content": "x"}, (S.ERROR,), "a.txt is a file", {"a.txt": b"x"}),
    Hostile("write_file", {"path": "a", "content": "x"}, (S.ERROR,), "a is a folder", {"a/b": b"x"}),
    Hostile("write_file", {"path": "b", "content": "\ud800"}, (S.ERROR,), "surrogate"),
    Hostile("write_file", {"path": "b", "content": "x" * (2 << 20)}, (S.ERROR,), "at most"),
    Hostile("write_file", {"path": "b", "content": "x"}, (S.ERROR,), "more than", {f"{n}": b"" for n in range(1500)}),
    Hostile("write_file", {"path": "b", "content": "x"}, (S.ERROR,), "more than", {"a": bytes(60 << 20)}),
]
EDIT = (
    [
        Hostile("edit_file", {"path": path, "old": "x", "new": "y"}, (S.ERROR,), files={"a.txt": b"x"})
        for path in _PLACES
    ]
    + [
        Hostile("edit_file", {"path": "a", "old": old, "new": new}, (S.ERROR,), says, {"a": b"aaa\n.*\n"})
        for old, new, says in [
            ("", "x", "is empty"),
            ("aa", "x", "2 times"),
            ("a", "x", "3 times in a, at lines 1, 1, 1"),
            ("A", "x", "does not occur"),
            ("a.*", "x", "does not occur"),
            ("\n", "x", "2 times"),
            (".*", ".*", "the same"),
            (".*", "\ud800", "surrogate"),
            (".*", "x" * (2 << 20), "at most"),
        ]
    ]
    + [
        Hostile("edit_file", {"path": "b", "old": "x", "new": "y"}, (S.ERROR,), "no text", {"b": b"x\0"}),
        Hostile(
            "edit_file", {"path": "b", "old": "x" * 5000, "new": "y"}, (S.ERROR,), "more than 10", {"b": b"x" * 900_000}
        ),
    ]
)


def _sql(sql: str, states: tuple[S, ...], says: str = "", seconds: float = 20.0) -> Hostile:
    return Hostile("sqlite_query", {"database": "a.db", "sql": sql}, states, says, seconds=seconds, kept=())


SQLITE = [
    _sql("ATTACH '/etc/passwd' AS x", (S.ERROR,), "ATTACH is not allowed here"),
    _sql("/* x */ -- y\n attach 'b.db' AS x", (S.ERROR,), "ATTACH is not allowed here"),
    _sql("SELECT 1; DETACH x", (S.ERROR,), "DETACH is not allowed here"),
    _sql("VACUUM INTO '/tmp/x'", (S.ERROR,), "VACUUM is not allowed here"),
    _sql("SELECT load_extension('/tmp/x')", (S.ERROR,), "SQLite says"),
    _sql("SELECT readfile('/etc/passwd')", (S.ERROR,), "no such function"),
    _sql("PRAGMA temp_store_directory = '/etc'", CODE),
    _sql(".shell id", (S.ERROR,), ".SHELL is not allowed"),
    _sql("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t) SELECT n FROM t", (S.OK,), "more than 50 rows"),
    _sql("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t) SELECT max(n) FROM t", (S.TIMEOUT,), "", 0.5),
    _sql("SELECT hex(zeroblob(900000000))", (S.ERROR, S.MEMORY, S.TIMEOUT)),  # a busy machine fills memory slowly
    _sql("SELECT 'x", (S.ERROR,), "SQLite says"),
    _sql("SELECT 1\0", (S.ERROR,)),
    _sql("", (S.ERROR,), "holds no statement"),
    _sql("-- nothing\n;;/* open", (S.ERROR,), "holds no statement"),
    _sql("\ud800", (S.ERROR,)),
    _sql("SELECT ?", (S.ERROR,), "SQLite says"),
    _sql("CREATE TABLE t(n); INSERT INTO t VALUES (1); SELECT * FROM nothing", (S.ERROR,), "Nothing was kept"),
    Hostile("sqlite_query", {"database": "../a.db", "sql": "SELECT 1"}, (S.ERROR,), "database: '../a.db' is no path"),
    Hostile(
        "sqlite_query", {"database": "a", "sql": "SELECT * FROM t"}, (S.ERROR,), "not a database", {"a": b"x" * 999}
    ),
    Hostile("sqlite_query", {"database": "a/b", "sql": "SELECT 1"}, (S.ERROR,), "a is a file", {"a": b"x"}),
    Hostile("sqlite_query", {"database": ":memory:", "sql": "CREATE TABLE t(n)"}, (S.OK,), "done", kept=(":memory:",)),
    Hostile(
        "sqlite_query",
        {"database": "file:x?mode=rw", "sql": "CREATE TABLE t(n)"},
        (S.OK,),
        "done",
        kept=("file:x?mode=rw",),
    ),
]

OTHERS = [
    Hostile("rollback", {"call": 1}, (S.ERROR,), "0 calls so far", {"a": b"x"}),
    Hostile("rollback", {"call": 10**30}, (S.ERROR,), "0 calls so far", {"a": b"x"}),
    Hostile("rollback", {"call": -1}, (S.ERROR,), "wrong arguments", {"a": b"x"}),
    Hostile("submit_answer", {"answer": ""}, (S.ERROR,), "empty"),
    Hostile("submit_answer", {"answer": "x" * 10_000}, (S.ERROR,), "at most"),
    Hostile("submit_answer", {"answer": "1", "subgoal": 9}, (S.ERROR,), "no steps"),
    Hostile("check", {"answer": ""}, (S.REFUSED,), "cannot be checked"),
    Hostile("check", {"answer": "x" * 10_000}, (S.ERROR,), "longer than"),
    Hostile("check", {"answer": "__import__('os').system('id')"}, (S.REFUSED,), "cannot be checked"),
    Hostile("plan", {"steps": []}, (S.ERROR,), "wrong arguments"),
    Hostile("plan", {"steps": [{"tool": "plan", "args": {"steps": []}}]}, (S.ERROR,), "a plan cannot hold a plan"),
    Hostile("plan", {"steps": [{"tool": "python", "args": {"code": "1/0"}}] * 2}, (S.ERROR,), "step 1 failed"),
    Hostile(
        "plan", {"steps": [{"tool": "python", "args": {"code": "{{x}}"}}]}, (S.ERROR,), "{{x}} is saved by no step"
    ),
    Hostile("http_request", {"url": "http://169.254.169.254/latest"}, (S.REFUSED,), "switched off"),
    Hostile("web_search", {"query": "x"}, (S.REFUSED,), "switched off"),
]

TABLE = [*PYTHON, *SHELL, *SYMPY, *RUN_TESTS, *LINT, *ANALYZE, *READ, *WRITE, *EDIT, *SQLITE, *OTHERS]
