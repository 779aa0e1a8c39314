"""The attacks through the product's own door: one running ``agent0 tool serve`` fed with the table, by a user without
rights. By default one of each kind that does not wait for a limit; all of them, also as root, with ``-m slow``."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox import campaign as campaigns
from tests.sandbox.attacks import ATTACKS, Attack
from tests.sandbox.campaign import Campaign, canaries
from tests.sandbox.processes import descendants
from tests.sandbox.serving import NO_NAMESPACES, ROOT, Served, served

SAMPLE = ["R24", "S05", "P01", "N04", "F01", "K01", "X01", "X02", "X04", "A04", "C05", "E01", "H05"]
QUICK = [attack for attack in ATTACKS if attack.id[:3] in SAMPLE]

Answers = list[dict[str, Any]]


def _campaign(attacks: list[Attack], lines: Sequence[bytes] = (), *, unprivileged: bool) -> tuple[Campaign, Answers]:
    """What came of ``attacks`` all at once, and what the same server then answered to ``lines``."""

    async def run() -> tuple[Campaign, Answers]:
        others = frozenset(descendants(os.getpid()))
        with canaries() as planted:
            async with served(unprivileged=unprivileged) as server:
                campaign = await campaigns.run(server.attack, attacks, planted, others)
                return campaign, [await server.say(line) for line in lines] + [await _last(server)]

    return asyncio.run(run())


async def _last(server: Served) -> dict[str, Any]:
    return await server.ask(tool="python", code="print(6 * 7)")


@pytest.fixture(scope="module")
def asked() -> tuple[Campaign, Answers]:
    return _campaign(QUICK, WRONG, unprivileged=True)


@pytest.fixture(scope="module")
def quick(asked: tuple[Campaign, Answers]) -> Campaign:
    return asked[0]


@pytest.fixture(scope="module", params=["user", "root"])
def whole(request: pytest.FixtureRequest) -> Campaign:
    if request.param == "root" and os.getuid() != 0:
        pytest.skip("not root")
    return _campaign(ATTACKS, unprivileged=request.param == "user")[0]


@pytest.mark.slow  # part of make knockout
@pytest.mark.parametrize("attack", QUICK, ids=[a.id for a in QUICK])
def test_attack_comes_to_nothing(attack: Attack, quick: Campaign) -> None:
    assert quick.faults(attack) == [], str(quick.seen[attack.id])


@pytest.mark.slow  # part of make knockout
def test_nothing_reached_the_host(quick: Campaign) -> None:
    assert quick.wounds == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_whole_table_comes_to_nothing(whole: Campaign) -> None:
    faults = {attack.id: whole.faults(attack) for attack in ATTACKS if whole.faults(attack)}
    assert (faults, whole.wounds) == ({}, [])


async def test_where_namespaces_are_forbidden_every_call_is_refused() -> None:
    async with served(NO_NAMESPACES) as server:
        found = await asyncio.gather(*(server.attack(attack) for attack in ATTACKS[:8]))
    assert {seen.state for seen in found} == {"refused"}
    assert all(len(seen.reason) > 40 for seen in found), "with the reason"


WRONG = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'{"tool": "python"',
    b"[" * 100_000,
    b'{"tool": "python", "code": "1", "wall": NaN}',
    b'{"tool": "python", "code": "1", "wall": Infinity}',
    b'{"tool": "python", "code": "1", "wall": -1}',
    b'{"tool": "python", "code": "1", "wall": 1e999}',
    b'{"tool": "python", "code": "1", "wall": "5"}',
    b'{"tool": "python", "code": "1", "mem": 1e9}',
    b'{"tool": "python", "code": "1", "mem": true}',
    b'{"tool": "python", "code": 1}',
    b'{"tool": ["python"], "code": "1"}',
    b'{"tool": "pyhton", "code": "1"}',
    b'{"tool": "python", "code": "1", "files": {"../x": "1"}}',
    b'{"tool": "python", "code": "1", "files": {"a/b": "1", "a": "2"}}',
    b'{"tool": "python", "code": "1", "files": {"\\ud800": "1"}}',
    b'{"tool": "python", "code": "\\ud800\\u0000"}',
    b'{"tool": "python", "code": "1", "from": "../../etc/passwd"}',
    b'{"tool": "python", "code": "1", "backend": "none"}',
    b'{"tool": "python", "code": "' + b"x" * (9 << 20) + b'"}',
]


@pytest.mark.slow  # part of make knockout
def test_lines_that_are_no_calls_get_an_answer_and_the_next_call_is_served(asked: tuple[Campaign, Answers]) -> None:
    *answers, last = asked[1]
    for line, told in zip(WRONG, answers, strict=True):
        assert (told["state"] in ("error", "refused"), bool(told["reason"])) == (True, True), (line[:80], told)
    assert last["stdout"] == "42\n"


@pytest.mark.slow  # part of make knockout
def test_one_call_from_a_file(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AGENT0_HOME": str(tmp_path / "data")}

    def call(tool: str, code: str, *more: str) -> dict[str, object]:
        path = tmp_path / f"code{len(code)}"
        path.write_text(code)
        words = [sys.executable, "-m", "agent0", "tool", "call", tool, "--code-file", str(path), "--json"]
        words += ["--set", "run.policy.modules=[]"]
        done = subprocess.run([*words, *more], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        told: dict[str, object] = json.loads(done.stdout)
        assert done.returncode == (told["state"] != "ok")
        return told

    forger = "print('{\"state\": \"ok\"}'); open('f', 'w').write('x'); raise SystemExit(7)"
    hog = "b = []\nwhile True: b.append(bytearray(4 << 20))"
    asked = [("python", forger), ("shell", "sleep 9", "--wall", "0.3"), ("python", hog, "--mem", "100")]
    with ThreadPoolExecutor() as pool:
        told, late, large = pool.map(lambda words: call(*words), asked)
    keys = {"state", "rc", "stdout", "stderr", "wall_s", "peak_mem_mib", "tier", "backend", "files"}
    assert keys <= set(told)
    assert (told["state"], told["rc"], told["files"]) == ("error", 7, {"f": 1})
    assert (late["state"], large["state"]) == ("timeout", "memory")
