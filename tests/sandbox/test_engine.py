"""The engine: what a call sees and gives back, what each limit does, and that trouble is refused or survived."""

import asyncio
import errno
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import Bubblewrap, Refusing, rootfs, survey
from agent0.infra.sandbox.inside import seccomp
from agent0.infra.sandbox.roots import EVERYTHING
from agent0.infra.sandbox.selftest import Probe, require
from agent0.ports.sandbox import Root, SandboxCall
from agent0.settings import SandboxSettings
from tests.sandbox.opened import open_bubblewrap, open_lean

ONLY = SandboxSettings(backend="zygote-bwrap")
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _python(sandbox: Bubblewrap, code: str, **limits: float) -> object:
    return await sandbox.call(SandboxCall("python", code, **limits))


async def test_a_call_runs_and_is_measured(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "import sympy; print(sympy.factor(sympy.Symbol('x')**2 - 1))")
    assert (result.state, result.rc, result.stdout) == (ToolState.OK, 0, "(x - 1)*(x + 1)\n")
    assert result.cpu_s > 0
    assert result.wall_s > 0
    assert result.peak_mem_mib > 1
    assert (result.tier in ("cgroup", "watchdog"), result.backend) == (True, "zygote-bwrap")


async def test_a_mistake_shows_its_line(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "x = 1\nx / 0\n")
    assert (result.state, result.rc) == (ToolState.ERROR, 1)
    assert "x / 0" in result.stderr
    assert "ZeroDivisionError" in result.stderr
    assert "payload" not in result.stderr, "only the code's own frames"


@pytest.mark.parametrize(("code", "rc"), [("import sys; sys.exit(3)", 3), ("raise SystemExit('no')", 1), ("exit()", 0)])
async def test_exit_codes(sandbox: Bubblewrap, code: str, rc: int) -> None:
    assert (await _python(sandbox, code)).rc == rc


async def test_files_go_in_and_come_out(sandbox: Bubblewrap) -> None:
    code = "open('out/b.bin', 'wb').write(open('in/a.bin', 'rb').read()[::-1])"
    files = {"in/a.bin": bytes(range(256)), "out/keep": b""}
    result = await sandbox.call(SandboxCall("python", code, files))
    assert result.files == {**files, "out/b.bin": bytes(range(256))[::-1]}
    assert (await _python(sandbox, "import os; print(os.listdir('/box'))")).stdout == "[]\n", "nothing stays"


async def test_time_is_up_but_what_was_done_is_kept(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "print('so far'); open('f', 'w').write('x')\nwhile True: pass", wall_s=0.3)
    assert (result.state, result.rc) == (ToolState.TIMEOUT, None)
    assert (result.stdout, result.files) == ("so far\n", {"f": b"x"})


async def test_every_call_draws_numbers_of_its_own_and_orders_sets_alike(sandbox: Bubblewrap) -> None:
    code = "import random, numpy; print(random.random(), numpy.random.random(), sep='\\n'); print({'a', 'b', 'c', 'd'})"
    first, second = [(await _python(sandbox, code)).stdout.splitlines() for _ in range(2)]
    assert not set(first[:2]) & set(second[:2])
    assert first[2] == second[2]


async def test_memory_is_a_sum_over_processes(sandbox: Bubblewrap) -> None:
    code = "import os, time\nfor _ in range(3):\n  if not os.fork(): x = bytearray(120 << 20); time.sleep(9)\n"
    result = await _python(sandbox, code + "time.sleep(9)", mem_mib=300, wall_s=9.0)
    assert (result.state, result.rc) == (ToolState.MEMORY, None)


async def test_memory_that_forks_share_counts_once(sandbox: Bubblewrap) -> None:
    code = "import os, time\nfor _ in range(12):\n  if not os.fork(): time.sleep(0.3); os._exit(0)\n"
    result = await _python(sandbox, code + "for _ in range(12): os.wait()\nprint('done')", mem_mib=300)
    assert (result.state, result.stdout) == (ToolState.OK, "done\n")


async def test_output_is_capped_and_the_rest_is_drained(sandbox: Bubblewrap) -> None:
    result = await _python(sandbox, "print('x' * 1_000_000)")
    assert (result.state, len(result.stdout)) == (ToolState.OK, 256 * 1024)
    assert "cut" in result.reason


async def test_the_shell_has_its_allowlist_and_no_interpreter(sandbox: Bubblewrap) -> None:
    result = await sandbox.call(SandboxCall("shell", "ls /usr/bin; ls /opt/python /opt/site | wc -w; cd / && ls"))
    listed = result.stdout.split()
    assert {"grep", "sed", "sort"} <= set(listed)
    assert not {"python3", "perl", "git", "su", "mount", "etc", "root", "home"} & set(listed)
    assert set(listed) <= {
        *EVERYTHING.executables,
        "/opt/python:",
        "/opt/site:",
        *["2", "app", "box", "dev", "lib", "lib64", "bin", "logs", "opt", "proc", "solution", "tests", "tmp", "usr"],
    }


@pytest.mark.parametrize(
    "call",
    [
        SandboxCall("python", "1", {"../x": b""}),
        SandboxCall("python", "1", {"/x": b""}),
        SandboxCall("python", "1", {"a//b": b""}),
        SandboxCall("python", "1\0"),
        SandboxCall("shell", "#" * (200 << 10)),
        SandboxCall("python", "1", {str(n): b"" for n in range(2000)}),
    ],
    ids=["dotdot", "absolute", "empty part", "nul", "long", "many files"],
)
async def test_what_cannot_be_run_is_refused(sandbox: Bubblewrap, call: SandboxCall) -> None:
    result = await sandbox.call(call)
    assert result.state is ToolState.REFUSED
    assert result.reason


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), text=st.text(max_size=80))
async def test_any_bytes_come_back_as_text(sandbox: Bubblewrap, data: bytes, text: str) -> None:
    result = await _python(sandbox, f"import os; os.write(1, {data!r}); print({text!a}, file=__import__('sys').stderr)")
    assert result.stdout == data.decode(errors="backslashreplace")
    assert result.stderr == text.encode(errors="backslashreplace").decode() + "\n"


async def test_many_calls_at_once_do_not_mix(sandbox: Bubblewrap) -> None:
    results = await asyncio.gather(*(_python(sandbox, f"print({n})") for n in range(16)))
    assert [r.stdout for r in results] == [f"{n}\n" for n in range(16)]


@pytest.mark.parametrize("steps", [1, 3, 6, 20])
async def test_a_cancelled_call_leaves_nothing(sandbox: Bubblewrap, steps: int) -> None:
    tasks = [asyncio.create_task(_python(sandbox, "import time; time.sleep(60)", wall_s=60.0)) for _ in range(4)]
    for _ in range(steps):
        await asyncio.sleep(0.005)
    for task in tasks:
        task.cancel()
    assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True))
    results = await asyncio.gather(*(_python(sandbox, f"print({n})") for n in range(6)))
    assert [r.stdout for r in results] == [f"{n}\n" for n in range(6)]


async def test_no_bubblewrap_no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        await open_bubblewrap()
    (found,) = await survey(ONLY)
    assert [(probe.name, probe.ok) for probe in found.probes] == [("starts", False)]
    assert (found.chosen, "not on the PATH" in found.why, "apt-get" in found.fix) == (False, True, True)


async def test_a_bubblewrap_that_fails_is_no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="setting up uid map: Permission denied"):
        await open_bubblewrap()


@pytest.mark.parametrize(
    ("more", "missed"),
    [(["--dir", "/home/me"], "no_host_files"), (["--tmpfs", "/opt/site"], "cannot be imported: No module named")],
    ids=["a folder too many", "a package too few"],
)
async def test_a_probe_that_misses_refuses(monkeypatch: pytest.MonkeyPatch, more: list[str], missed: str) -> None:
    original = rootfs._links
    monkeypatch.setattr(rootfs, "_links", lambda: [*original(), *more])
    with pytest.raises(SandboxUnavailableError, match=missed):
        await open_lean(Root(("bash",), ("numpy",)))


LAYERS = [
    ("payload.py", "    seccomp.install(asks=listener >= 0, times=not closed)\n", "no_network"),
    ("payload.py", "    kernel.drop_capabilities()\n", "no_capabilities"),
    ("payload.py", "        resource.setrlimit(kind, (value, value))\n", "process_limit"),
    ("shim.py", '            outcome.ended = "memory"\n            _kill_all(signal.SIGKILL)\n', "memory_limit"),
    ("shim.py", '    _write("/proc/self/oom_score_adj", _OOM_SCORE)\n', ""),
]


@pytest.mark.parametrize(("file", "layer", "missed"), LAYERS, ids=["seccomp", "caps", "limits", "watchdog", "control"])
async def test_a_missing_layer_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, layer: str, missed: str
) -> None:
    inside = shutil.copytree(rootfs.INSIDE, tmp_path / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    text = (inside / file).read_text()
    assert text.count(layer) == 1
    indent = layer[: len(layer) - len(layer.lstrip())]
    (inside / file).write_text(text.replace(layer, f"{indent}pass\n"))
    monkeypatch.setattr(rootfs, "INSIDE", inside)
    if missed:  # without control groups: they bound processes, too
        with pytest.raises(SandboxUnavailableError, match=missed):
            await open_lean(cgroup="never")
    else:
        await (await open_lean(cgroup="never")).close()


async def test_a_refusing_sandbox_says_why() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"not here.*do that"):
        await Refusing("not here.", "do that.").call(SandboxCall("python", "1"))
    with pytest.raises(SandboxUnavailableError, match="no_network"):
        require([Probe("no_network", False, "a socket was made")])


def _filter(number: int, *arguments: int, arch: int = 0xC000003E, **how: bool) -> int:
    """What the filters answer together: the stricter of both."""
    data = struct.pack("iIQ6Q", number, arch, 0, *(*arguments, *[0] * 6)[:6])
    answers = [_answer(seccomp.program(**how), data), *([_answer(seccomp.asking(), data)] if not how else [])]
    return min(answers, key=lambda answer: (answer != KILL, answer))


def _answer(code: list[seccomp.Instruction], data: bytes) -> int:
    """What one filter answers: a classic BPF machine of the five instructions it uses."""
    at, word = 0, 0
    while True:
        kind, true, false, value = code[at]
        if kind == 0x06:
            return value
        if kind == 0x20:
            (word,) = struct.unpack_from("I", data, value)
            at += 1
            continue
        holds = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[kind]
        at += 1 + (true if holds else false)


ALLOW, KILL, ASK = 0x7FFF0000, 0x80000000, 0x7FC00000


@given(number=st.integers(0, 600), first=st.integers(0, 2**32 - 1))
async def test_the_filter_allows_what_is_listed_and_nothing_else(number: int, first: int) -> None:
    listed = {int(entry.partition("=")[2]) for entry in seccomp._ALLOWED.split()}
    guarded = {56, 202, *seccomp._TIMES, *(rule[0] for rule in seccomp._ONLY_WITH)}
    answer = _filter(number, first)
    assert (answer == ALLOW) == (number in listed) or number in guarded
    assert answer == ALLOW or answer >> 16 == 5 or (answer == ASK and number in (73, 202)), "an errno, flock or a wait"
    assert _filter(number | 0x40000000, first) == KILL
    assert _filter(number, first, arch=0xC00000B7) == KILL


@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
async def test_the_filter_lets_clone_make_threads_and_no_namespace(flag: int) -> None:
    assert _filter(56, 0x3D0F00) == ALLOW
    assert _filter(56, 17 | flag) != ALLOW


async def test_the_filter_is_the_right_way_round() -> None:
    assert [_filter(n) for n in (0, 1, 59, 231)] == [ALLOW] * 4, "read write execve exit_group"
    assert all(_filter(n) != ALLOW for n in (41, 101, 165, 272, 308, 317, 319, 321, 435, 437)), "socket ptrace mount …"
    assert (_filter(53, 1), _filter(53, 2) == ALLOW) == (ALLOW, False)
    assert (_filter(16, 0, 0x5401), _filter(16, 0, 0x5412) == ALLOW) == (ALLOW, False), "TCGETS, not TIOCSTI"


async def test_every_lock_is_asked_about_or_fails() -> None:
    locks = [(73, 3, 2), *((72, 3, command) for command in (5, 6, 7, 36, 37, 38))]
    assert {_filter(*lock) for lock in locks} == {ASK}
    assert {_filter(*lock, asks=False) for lock in locks} == {0x50000 | errno.ENOLCK}
    assert all(_filter(72, 3, command) >> 16 == 5 for command in (1024, 1025, 1026, 1033, 1035, 1036)), "leases, hints"
    assert {_filter(72, 3, command) for command in (0, 1, 2, 3, 4, 1030)} == {ALLOW}


async def test_waits_on_words_that_processes_may_share_are_asked_about_or_over_at_once() -> None:
    waits = [(202, 0, operation) for operation in (0, 9, 0x109)]
    assert {_filter(*wait) for wait in waits} == {ASK}
    assert {_filter(*wait, asks=False) for wait in waits} == {0x50000 | errno.EAGAIN}
    assert {_filter(202, 0, operation) for operation in (1, 10, 128, 129, 137, 137 | 256, 134)} == {ALLOW}, "wakes, own"
    assert {_filter(202, 0, operation) for operation in (2, 6, 8, 11, 13, 256)} == {0x50000 | errno.ENOSYS}


async def test_where_nothing_can_be_mounted_times_stay() -> None:
    assert {_filter(number, times=False) for number in (132, 235, 280)} == {0x50000}, "they succeed and do nothing"
    assert {_filter(number) for number in (132, 235, 280)} == {ALLOW}
    assert all(_filter(number) >> 16 == 5 for number in (99, 261)), "sysinfo futimesat"


async def test_only_threads_share_descriptors() -> None:
    assert _filter(56, 0x400 | 17) != ALLOW
    assert (_filter(56, 0x3D0F00), _filter(56, 0x4100 | 17)) == (ALLOW, ALLOW), "a thread, a vfork"
