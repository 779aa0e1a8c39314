"""The other sandboxes: what a call gets on each, that an engine is only ever asked for hardened containers, what comes
of dying and lying ones, and that the first candidate that passes is used, or none."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import open_sandbox, queueing, survey
from agent0.infra.sandbox.backends import containers, docker
from agent0.infra.sandbox.backends.cold import ColdBubblewrap
from agent0.infra.sandbox.backends.containers import ColdContainer, WarmContainer
from agent0.infra.sandbox.inside import asking, frames, seccomp
from agent0.infra.sandbox.inside.calling import Request, SandboxProcessError
from agent0.infra.sandbox.link import SandboxLink
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings
from tests.sandbox import campaign as campaigns
from tests.sandbox.attacks import ATTACKS, Attack
from tests.sandbox.campaign import SECRET, VARIABLE, Campaign, canaries, through_engine
from tests.sandbox.engines import Engine
from tests.sandbox.opened import LEAN
from tests.sandbox.processes import descendants

KINDS = {"bwrap-cold": ColdBubblewrap, "zygote-docker": WarmContainer, "docker-cold": ColdContainer}
ONE = SandboxCall("python", "print(1)", root=LEAN)
SETTINGS = SandboxSettings(workers=1, calls=4, mem_mib=256)
SLOW = pytest.mark.slow  # part of make knockout


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Our own, before any other on the PATH."""
    made = Engine(tmp_path_factory.mktemp("engine"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
        patch.setenv("DOCKER_CONFIG", str(made.state))
        yield made
    assert made.running == [], "no container outlives its sandbox"


@pytest.fixture(autouse=True)
def _honest(engine: Engine) -> Iterator[None]:
    yield
    engine.misbehave()


@pytest.fixture(params=[pytest.param(name, marks=() if name == "zygote-docker" else SLOW) for name in KINDS])
def backend(request: pytest.FixtureRequest, engine: Engine) -> str:
    return str(request.param)


async def _use(backend: str, *calls: SandboxCall) -> list[SandboxResult]:
    """How ``calls`` end, all at once, on a sandbox that is not tested first."""
    sandbox = KINDS[backend](SETTINGS, root=LEAN)
    try:
        return await asyncio.gather(*map(sandbox.call, calls))
    finally:
        await sandbox.close()


async def test_a_call_comes_to_the_same_everywhere(backend: str) -> None:
    files = {"in/a.bin": bytes(range(256)), "out/keep": b""}
    swap = "open('out/b.bin', 'wb').write(open('in/a.bin', 'rb').read()[::-1])"
    late = "print('so far'); open('f', 'w').write('x')\nwhile True: pass"
    hog = "kept = []\nwhile True: kept.append(bytearray(4 << 20))"
    ran, swapped, failed, timed, grew, told, flooded = await _use(
        backend,
        SandboxCall("python", "import sympy; print(sympy.factor(sympy.Symbol('x')**2 - 1))", wall_s=20),
        SandboxCall("python", swap, files),
        SandboxCall("python", "1 / 0"),
        SandboxCall("python", late, wall_s=0.5),
        SandboxCall("python", hog, wall_s=20, mem_mib=96),
        SandboxCall("shell", "cat in/x | tr a-z A-Z; echo $((6 * 7)) >&2; exit 3", {"in/x": b"yes\n"}),
        SandboxCall("python", "print('x' * 1_000_000)"),
    )
    assert (ran.state, ran.stdout, ran.rc) == (ToolState.OK, "(x - 1)*(x + 1)\n", 0), ran.reason
    assert (ran.backend, ran.tier) == (backend, "watchdog")
    assert min(ran.wall_s, ran.cpu_s, ran.peak_mem_mib) > 0
    assert swapped.files == {**files, "out/b.bin": bytes(range(256))[::-1]}
    assert (failed.state, failed.rc, "ZeroDivisionError" in failed.stderr) == (ToolState.ERROR, 1, True)
    assert (timed.state, timed.rc, timed.stdout) == (ToolState.TIMEOUT, None, "so far\n")
    assert timed.files == {"f": b"x"}
    assert (grew.state, grew.rc) == (ToolState.MEMORY, None)
    assert (told.state, told.rc, told.stdout, told.stderr) == (ToolState.ERROR, 3, "YES\n", "42\n")
    assert (flooded.output_bytes, len(flooded.stdout)) == (1_000_001, 256 * 1024)


CHOSEN = {
    "bwrap-cold": "R01 R03 R06 R08 R09 R13 R24 S01 S03 S05 S06 S07 P01 P05 P06 N01 N04 N05 F01 F03 F05 F06 F13 K01 K02 "
    "K04 K06 X01 X02 X04 X07 A01 C01 C02 C03 C04 C05 C06 C07 C08",
    "zygote-docker": "R03 R09 S03 S05 P01 P05 N01 F01 F05 F06 K01 K02 X01 X02 C01 C02 C05 C07",
}
"""Each layer more than once: limits, watch, survivors, /proc, network, files, system calls, results, the shell. In the
container sandbox processes are made by the very code that all attacks go through elsewhere. ``make knockout`` runs
these."""
SAMPLE = {
    "bwrap-cold": "R03 S05 P05 N04 F01 K01 X04 A01 C01",
    "zygote-docker": "R03 S05 P05 N01 F01 K01 X01 X02 C05",
}
"""One of each kind, for ``make test``."""


@pytest.fixture(scope="module")
def attacked(engine: Engine) -> Iterator[dict[str, Campaign]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, SECRET)
        yield {name: asyncio.run(_attack(name, _named(words))) for name, words in SAMPLE.items()}


async def _attack(backend: str, attacks: list[Attack]) -> Campaign:
    others = frozenset(descendants(os.getpid()))
    sandbox = KINDS[backend](SandboxSettings(workers=1, calls=6))
    with canaries() as planted:
        try:
            return await campaigns.run(through_engine(sandbox), attacks, planted, others, 6)
        finally:
            await sandbox.close()


def _named(words: str) -> list[Attack]:
    return [attack for attack in ATTACKS if attack.id[:3] in words.split()]


PAIRS = [
    pytest.param(name, attack, id=f"{name}-{attack.id}") for name, words in SAMPLE.items() for attack in _named(words)
]


@SLOW
@pytest.mark.parametrize(("name", "attack"), PAIRS)
def test_attacks_come_to_nothing(name: str, attack: Attack, attacked: dict[str, Campaign]) -> None:
    assert attacked[name].faults(attack) == [], str(attacked[name].seen[attack.id])
    assert attacked[name].wounds == []


@SLOW
@pytest.mark.parametrize("name", CHOSEN)
def test_every_chosen_attack_comes_to_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    chosen = _named(CHOSEN[name])
    found = asyncio.run(_attack(name, chosen))
    assert ({one.id: faults for one in chosen if (faults := found.faults(one))}, found.wounds) == ({}, [])


async def test_nothing_exists_but_what_a_root_names(backend: str) -> None:
    few = Root(("bash", "cat"), ("mpmath",))
    shell, missing, there, interpreter, unknown, no_package = await _use(
        backend,
        SandboxCall("shell", "cat x; tr a b < x", {"x": b"1\n"}, root=few),
        SandboxCall("python", "import mpmath, numpy", root=few),
        SandboxCall("python", "import mpmath; print(mpmath.mpf(2))", root=few),
        SandboxCall("shell", "cat /opt/python/bin/python3* /opt/site/mpmath/libmp/* /etc/* /sys/kernel/*", root=few),
        SandboxCall("shell", "true", root=Root(("bash", "no-such-program"), ())),
        SandboxCall("python", "1", root=Root((), ("no_such_package",))),
    )
    assert (shell.stdout, shell.rc == 0) == ("1\n", False)
    assert (missing.rc, "ModuleNotFoundError" in missing.stderr) == (1, True), missing.stderr
    assert there.stdout == "2.0\n"
    assert (interpreter.stdout, interpreter.rc == 0) == ("", False)
    assert {unknown.state, no_package.state} == {ToolState.REFUSED}
    assert "no-such-program" in unknown.reason
    assert "no_such_package" in no_package.reason


async def test_more_files_than_a_work_folder_holds_end_the_call() -> None:
    (result,) = await _use("bwrap-cold", SandboxCall("python", "for n in range(10**6): open(str(n), 'w')", wall_s=20))
    assert (result.state, result.reason.partition(";")[0]) == (ToolState.MEMORY, "more than 2600 files")
    assert (len(result.files), "files were left out" in result.reason) == (2048, True)


async def test_a_bad_call_is_refused_and_a_full_line_says_busy(backend: str) -> None:
    (bad,) = await _use(backend, SandboxCall("python", "1", {"../x": b""}))
    assert bad.state is ToolState.REFUSED
    sandbox = KINDS[backend](SETTINGS.model_copy(update={"calls": 1, "queue": 1}), root=LEAN)
    try:
        ended = await asyncio.gather(*(sandbox.call(ONE) for _ in range(4)))
    finally:
        await sandbox.close()
    assert sorted(one.state.value for one in ended) == ["busy", "busy", "ok", "ok"]
    with pytest.raises(SandboxUnavailableError, match="closed"):
        await sandbox.call(ONE)


async def test_every_container_is_hardened(engine: Engine) -> None:
    before = len(engine.asked)
    for name in ("zygote-docker", "docker-cold"):
        assert [one.stdout for one in await _use(name, ONE)] == ["1\n"]
    runs = [words for words in engine.asked[before:] if words[0] == "run"]
    kills = {words[1] for words in engine.asked[before:] if words[0] == "kill"}
    assert len(runs) == 2
    assert {words[words.index("--name") + 1] for words in runs} <= kills, "killed by name, not by its client"
    gvisor = docker.once(SETTINGS.model_copy(update={"runtime": "runsc"}), "x", 256)
    assert gvisor[gvisor.index("--runtime") + 1] == "runsc"


def _flags() -> list[str]:
    words = docker.once(SETTINGS, "x", 256)[2:]
    return [word for word in words[: words.index(SETTINGS.image)] if word.startswith("-")]


def test_an_engine_that_misses_a_flag_would_say_so(engine: Engine) -> None:
    """The fake is strict: without any one of our flags, or with one more, it does not start the container."""
    whole = docker.once(SETTINGS, "x", 256)
    for flag in dict.fromkeys(_flags()):
        if flag != "--env":
            _refused(list(_without(whole, flag)), flag)
    _refused([*whole[:2], "--privileged", *whole[2:]], "--privileged")
    _refused([*whole[:2], "--volume", "/:/host", *whole[2:]], "--volume")


def _without(words: list[str], flag: str) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word != flag:
            yield word
        elif flag not in ("-i", "--rm", "--read-only"):
            next(rest)


def _refused(words: list[str], flag: str) -> None:
    ended = subprocess.run(words, capture_output=True, check=False, env=docker.environment(), stdin=subprocess.DEVNULL)
    assert (ended.returncode, ended.stdout) == (125, b""), f"{flag}: {ended.stderr!r}"


def test_the_profile_allows_what_is_needed_and_no_more() -> None:
    profile = json.loads(docker.profile())
    (rule,) = profile["syscalls"]
    assert (profile["defaultAction"], rule["action"]) == ("SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW")
    assert {"clone", "unshare", "mount", "execve", *seccomp.names()} <= set(rule["names"])
    never = "bpf ptrace keyctl setns userfaultfd init_module kexec_load perf_event_open process_vm_readv io_uring_setup"
    assert not set(never.split()) & set(rule["names"])


@SLOW
async def test_a_dead_container_costs_one_start(engine: Engine) -> None:
    sandbox = WarmContainer(SETTINGS, root=LEAN)
    try:
        assert (await sandbox.call(ONE)).stdout == "1\n"
        (first,) = engine.running
        slow = asyncio.create_task(
            sandbox.call(SandboxCall("python", "import time; time.sleep(1); print('again')", root=LEAN))
        )
        while sandbox._current is None or sandbox._current.idle.is_set():
            await asyncio.sleep(0.01)
        engine.kill()
        assert (await slow).stdout == "again\n", "run again from the start, in another container"
        assert engine.running != [first]
    finally:
        await sandbox.close()


async def test_calls_that_kill_their_container_are_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(queueing.Queued):
        name = "dying"
        tried = 0

        async def execute(self, call: SandboxCall) -> SandboxResult:
            self.tried += 1
            raise SandboxProcessError("it ended")

    dying = Dying(SETTINGS)
    result = await dying.call(SandboxCall("python", "1"))
    assert (result.state, result.reason, dying.tried) == (ToolState.SANDBOX_ERROR, "it ended", 2)


@SLOW
async def test_containers_are_replaced_on_schedule(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MOST_CALLS", 3)
    sandbox, seen = WarmContainer(SETTINGS, root=LEAN), set[str]()
    try:
        for _ in range(5):
            assert (await sandbox.call(ONE)).stdout == "1\n"
            seen |= set(engine.running)
    finally:
        await sandbox.close()
    assert len(seen) == 3, "each container serves its self-test and two calls"


HELLO = {"ready": True, "version": asking.version(), "executables": [], "modules": []}
LIES = {
    "nothing": b"",
    "noise": b"\xff\xfe\x00" * 100,
    "half a message": frames.pack(HELLO)[:-3],
    "a header without end": b"\xff\xff\xff\xff",
    "no object": b"\x00\x00\x00\x02[]",
    "sizes that are none": b"\x00\x00\x00\x10" + b'{"sizes": ["x"]}',
    "too much to come": b"\x00\x00\x00\x16" + b'{"sizes": [999999999]}',
    "another version": frames.pack({**HELLO, "version": "x"}),
    "not ready": frames.pack({**HELLO, "ready": False}),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_an_engine_that_lies_is_no_sandbox(engine: Engine, lie: bytes) -> None:
    engine.misbehave(says=lie.hex())
    with pytest.raises(SandboxUnavailableError, match="zygote-docker"):
        await open_sandbox(SandboxSettings(backend="zygote-docker"))


ANSWERS = {
    "nothing": b"",
    "noise": b"{" * 40,
    "no fields": frames.pack({"id": 0}),
    "an outcome of nobody": frames.pack({"id": 77, "error": ""}) + b"\xff\xff\xff\xff",
    "outputs that are missing": frames.pack({"id": 0, "files": [], "output_bytes": [0, 0]}),
    "an error": frames.pack({"id": 0, "error": "it broke"}),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_malformed_answer_says_nothing_about_the_code(tmp_path: Path, answer: bytes) -> None:
    said = tmp_path / "said"
    said.write_bytes(frames.pack(HELLO) + answer)
    link = await SandboxLink.open(["/bin/sh", "-c", f"cat {said}; read -r line"], {})
    try:
        with pytest.raises(SandboxProcessError):
            await link.ask(Request("python", b"1\n", {}, 5.0, 64), Root())
    finally:
        await link.close()
    assert link.dead


@SLOW
async def test_a_profile_that_is_refused_leads_to_one_container_a_call(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.misbehave(refuses_profiles=True)
    monkeypatch.setenv("PATH", str(engine.bin))
    sandbox = await open_sandbox(root=LEAN)
    try:
        assert isinstance(sandbox, ColdContainer)
        assert (await sandbox.call(ONE)).backend == "docker-cold"
    finally:
        await sandbox.close()
    (found,) = await survey(SandboxSettings(backend="zygote-docker"))
    assert (found.chosen, "custom seccomp profiles are not allowed" in found.why) == (False, True)


RESTRICTED = """#!{python} -I
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 2, 56), (0x20, 0, 0, 16), (0x45, 1, 0, 0x10000000), (0x06, 0, 0, 0x7FFF0000)]
packed = b"".join(struct.pack("HBBI", *one) for one in [*code, (0x06, 0, 0, 0x00050001)])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
if ctypes.CDLL(None).prctl(22, 2, ctypes.byref(Program(len(packed) // 8, packed))):
    sys.exit("no filter")
os.execv({bwrap!r}, ["bwrap", *sys.argv[1:]])
"""
"""Bubblewrap whose children may make no user namespaces, as where AppArmor takes them away."""


@SLOW
@pytest.mark.skipif(os.getuid() != 0, reason="bubblewrap itself needs what is taken from its children")
async def test_where_its_children_may_make_no_namespaces_bubblewrap_is_cold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text(RESTRICTED.format(python=sys.executable, bwrap=shutil.which("bwrap")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox = await open_sandbox(root=LEAN)
    try:
        assert (await sandbox.call(ONE)).backend == "bwrap-cold"
    finally:
        await sandbox.close()
    (warm,) = await survey(SandboxSettings(backend="zygote-bwrap"))
    assert (warm.chosen, "Operation not permitted" in warm.why) == (False, True), warm.why


async def test_nothing_there_is_no_sandbox_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError) as refused:
        await open_sandbox()
    words = ("zygote-bwrap: bubblewrap", "zygote-docker: docker is not on the PATH", "bwrap-cold:", "docker-cold:")
    assert [one for one in words if one not in refused.value.why] == []
    assert "apt-get install bubblewrap" in refused.value.fix
    assert "docker build" in refused.value.fix
    assert [one.chosen for one in await survey(SandboxSettings())] == [False] * 4


@pytest.mark.docker
@pytest.mark.parametrize("kind", [WarmContainer, ColdContainer])
async def test_a_real_engine(kind: type[WarmContainer] | type[ColdContainer]) -> None:
    """Wants the image ``agent0-sandbox``, made from this very tree."""
    sandbox = kind(SandboxSettings())
    try:
        await sandbox.start()
        results = await asyncio.gather(*(sandbox.call(SandboxCall("python", f"print({n})")) for n in range(8)))
        assert [one.stdout for one in results] == [f"{n}\n" for n in range(8)]
    finally:
        await sandbox.close()
