"""The proxy process: what it is given, how it ends, and that no setting opens what is closed."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from agent0.assembly.runtime.port_openers import open_port
from agent0.config.loading import load
from agent0.events.values import ToolState
from agent0.infra.web import proxy as web
from agent0.infra.web.proxy import WebProxy
from agent0.ports.web import WebRequest
from agent0.settings import WebSettings
from tests.memory import MemoryArtifacts
from tests.web.conftest import OPEN
from tests.web.servers import Asked, Say, reply, serving

ROOT = Path(__file__).parents[2]
ON = WebSettings(enabled=True, timeout_s=5, max_bytes=10_000)


def asking(port: int, method: str = "GET", body: bytes = b"") -> WebRequest:
    url = f"http://x.127-0-0-1.test:{port}/"
    return WebRequest(url, method, body=body, hosts=(f"*.test:{port}",), methods=("GET", "POST"))


async def test_requests_are_made_at_once_and_told_apart() -> None:
    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await reply(asked.body)(asked, writer)

    proxy = WebProxy(ON, worker=OPEN)
    async with serving(say) as served:
        bodies = [f"{number}".encode() for number in range(100)]
        told = await asyncio.gather(*(proxy.fetch(asking(served.port, "POST", body)) for body in bodies))
    await proxy.close()
    assert [one.body for one in told] == bodies
    assert {one.state for one in told} == {ToolState.OK}
    assert told[0].headers == {"content-type": "text/plain"}
    assert (told[0].status, told[0].url) == (200, f"http://x.127-0-0-1.test:{served.port}/")


async def test_it_has_an_environment_of_its_own_and_no_file_but_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT0_WEB__SEARCH_KEY", "hidden")
    monkeypatch.setenv("SECRET", "hidden")
    proxy = WebProxy(WebSettings(enabled=True, search="brave", search_key="hidden-key"), worker=OPEN)  # type: ignore[arg-type]
    async with serving(reply()) as served:
        await proxy.fetch(asking(served.port))
    process = psutil.Process(proxy.pid)
    assert process.environ().keys() <= {"PYTHONPATH", "LANG", "LC_CTYPE", "MALLOC_ARENA_MAX"}
    assert "hidden" not in " ".join([*process.cmdline(), *process.environ().values()])
    assert process.open_files() == []
    assert process.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_AS)[0] < 2 << 30
    await proxy.close()


async def test_no_process_runs_before_it_is_needed_or_after_it_was_closed() -> None:
    proxy = WebProxy(ON, worker=OPEN)
    assert proxy.pid is None
    async with serving(reply()) as served:
        await proxy.fetch(asking(served.port))
        pid = proxy.pid
        assert pid is not None
        await proxy.close()
        await proxy.close()
        assert (proxy.pid, psutil.pid_exists(pid)) == (None, False)
        told = await proxy.fetch(asking(served.port))
    assert (told.state, proxy.pid, len(served.asked)) == (ToolState.ERROR, None, 1)


def killing(proxy: WebProxy, times: int) -> Say:
    """Kill the process ``times`` times, then answer."""
    left = [times]

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if left[0]:
            left[0] -= 1
            assert proxy.pid
            os.kill(proxy.pid, signal.SIGKILL)
            return
        await reply(b"again")(asked, writer)

    return say


async def test_where_it_dies_a_safe_request_is_made_once_more() -> None:
    proxy = WebProxy(ON, worker=OPEN)
    async with serving(killing(proxy, 1)) as served:
        told = await proxy.fetch(asking(served.port))
        assert (told.state, told.body, len(served.asked)) == (ToolState.OK, b"again", 2)
    async with serving(killing(proxy, 2)) as served:
        told = await proxy.fetch(asking(served.port))
        assert (told.state, len(served.asked)) == (ToolState.ERROR, 2)
        assert "ended in the middle" in told.reason
        assert (await proxy.fetch(asking(served.port))).body == b"again"
    await proxy.close()


async def test_where_it_dies_a_request_that_may_have_had_effects_is_not_repeated() -> None:
    proxy = WebProxy(ON, worker=OPEN)
    async with serving(killing(proxy, 1)) as served:
        told = await proxy.fetch(asking(served.port, "POST"))
        assert (told.state, len(served.asked)) == (ToolState.ERROR, 1)
    await proxy.close()


async def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = WebProxy(ON.model_copy(update={"timeout_s": 2.0}), worker=OPEN)
    async with serving(reply()) as served:
        assert (await proxy.fetch(asking(served.port))).state is ToolState.OK

    async def stop(asked: Asked, writer: asyncio.StreamWriter) -> None:
        assert proxy.pid
        os.kill(proxy.pid, signal.SIGSTOP)

    async with serving(stop) as served:
        monkeypatch.setattr(web, "SLACK_S", 0.1)
        told = await proxy.fetch(asking(served.port))
    assert (told.state, proxy.pid) == (ToolState.TIMEOUT, None)
    assert "was ended" in told.reason
    monkeypatch.undo()
    async with serving(reply()) as served:
        assert (await proxy.fetch(asking(served.port))).state is ToolState.OK
    await proxy.close()


async def test_a_request_that_nobody_waits_for_is_given_up() -> None:
    gone, here = asyncio.Event(), asyncio.Event()
    proxy = WebProxy(ON.model_copy(update={"timeout_s": 60}), worker=OPEN)

    async def watch(asked: Asked, writer: asyncio.StreamWriter) -> None:
        here.set()
        while not writer.is_closing():  # the other end went
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await asyncio.sleep(0.01)
        gone.set()

    async with serving(watch) as served:
        waiting = asyncio.create_task(proxy.fetch(asking(served.port)))
        await here.wait()
        waiting.cancel()
        async with asyncio.timeout(20):
            await gone.wait()
        assert proxy.pid is not None
    await proxy.close()


PARENT = """
import asyncio
from agent0.ports.web import WebRequest
from agent0.settings import WebSettings
from agent0.infra.web.proxy import WebProxy

async def main():
    proxy = WebProxy(WebSettings(enabled=True), worker=("tests.web.open_worker",))
    await proxy.fetch(WebRequest("http://x.10-0-0-1.test/", hosts=("*.test",)))
    print(proxy.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_it_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


async def test_what_is_switched_off_is_refused_without_a_process() -> None:
    proxy = WebProxy(WebSettings())
    told = await proxy.fetch(WebRequest("https://example.org/", hosts=("example.org",)))
    assert (told.state, "web.enabled" in told.reason) == (ToolState.REFUSED, True)
    state, reason, hits = await proxy.search("x", 5)
    assert (state, "web.search" in reason, hits, proxy.pid) == (ToolState.REFUSED, True, [], None)


async def test_a_request_that_is_far_too_long_is_refused_without_a_process() -> None:
    proxy = WebProxy(ON)
    told = [
        await proxy.fetch(WebRequest("http://example.org/" + "a" * (1 << 20), hosts=("example.org",))),
        await proxy.fetch(WebRequest("http://example.org/", body=bytes(10_001), hosts=("example.org",))),
    ]
    assert ([one.state for one in told], proxy.pid) == ([ToolState.REFUSED] * 2, None)


async def test_no_setting_lets_the_product_reach_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything that can be set is set as open as it goes, by variables, flags and a file, and so is the allowlist."""
    async with serving(reply(b"secret")) as served:
        port = served.port
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("AGENT0_HOME", str(tmp_path))
        for name in ("NO_PROXY", "no_proxy", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        hosts = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "x.127-0-0-1.test"]
        flags = {
            "web.enabled": "true",
            "web.redirects": "20",
            "web.search": "searxng",
            "web.search_url": f"http://127.0.0.1:{port}",
        }
        settings = load("scripted", flags)
        opened = await open_port("web", settings, MemoryArtifacts())
        for host in hosts:
            listed = (f"{host}:{port}", host, "*.test", f"*.test:{port}")
            told = await opened.fetch(WebRequest(f"http://{host}:{port}/", hosts=listed))
            assert told.state in (ToolState.REFUSED, ToolState.ERROR)
            assert told.body == b""
        assert served.connections == 0
        await opened.close()
    fields = {"enabled", "timeout_s", "max_bytes", "redirects", "search", "search_url", "search_key"}
    assert set(WebSettings.model_fields) == fields, "look whether the new one opens anything, then add it here"


def test_the_product_makes_its_guard_in_one_place_and_reads_no_environment() -> None:
    made = []
    for path in ROOT.joinpath("infra/web").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Guard", "main", "WebProxy"):
                made.append((path.name, ast.unparse(node)))
            assert getattr(node, "attr", "") not in ("environ", "getenv")
    assert sorted(made) == [("proxy_process.py", "Guard()"), ("proxy_process.py", "main()")]
