"""``agent0 bench fetch`` against a real server: the right bytes are kept, and nothing else ever is."""

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent0.evaluation.benchmarks import benchmarks, read_items
from agent0.evaluation.benchmarks.rows import upstream
from agent0.evaluation.benchmarks.rows.upstream import SOURCES, PinnedFile, Upstream
from tests.terminal import Said, agent0

ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="needs the benchmark rows beside the checkout")
TEXT = json.dumps({"question": "1+1?", "answer": "One and one.\n#### 1,002"}) + "\n"
PINNED = PinnedFile("someone/rows", "0" * 40, "test.jsonl", hashlib.sha256(TEXT.encode()).hexdigest())


class Server:
    """Answers every path with what ``reply`` does; counts what is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reply: Any = partial(body, data=TEXT.encode())
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                owner.reply(self)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def body(handler: BaseHTTPRequestHandler, data: bytes, told: int = 0, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("content-length", str(told or len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def onward(handler: BaseHTTPRequestHandler, location: str) -> None:
    handler.send_response(302)
    handler.send_header("location", location)
    handler.send_header("content-length", "0")
    handler.end_headers()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setitem(upstream.SOURCES, "gsm8k", Upstream("gsm8k_test.jsonl", (PINNED,)))
    held = Server()
    yield held
    held.close()


def fetch(server: Server, folder: Path, *more: str) -> Said:
    return agent0("bench", "fetch", "gsm8k", "--data", str(folder), "--mirror", server.url, *more, home=folder / "home")


def test_what_is_pinned_is_fetched_once_and_reads_as_rows(server: Server, tmp_path: Path) -> None:
    said = fetch(server, tmp_path, "--json")
    assert (said.code, said.json[0]["rows"]) == (0, 1), said.err
    assert said.err.index("Licence: MIT (OpenAI)") >= 0
    assert server.asked == [f"/someone/rows/{'0' * 40}/test.jsonl"]
    (item,) = read_items(benchmarks()["gsm8k"], (tmp_path / "gsm8k_test.jsonl").read_text(), "rows")
    assert (item.gold, item.id) == ("1002", "gsm8k/test/0")
    assert "there already" in fetch(server, tmp_path).err
    assert len(server.asked) == 1
    assert fetch(server, tmp_path, "--again").code == 0
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        (partial(body, data=TEXT.encode() + b" "), 1, "is not the file that is meant"),
        (partial(body, data=TEXT.encode()[:40], told=len(TEXT)), 5, "is not available"),
        (partial(body, data=b"nothing", status=404), 5, "answered 404"),
        (partial(onward, location="file:///etc/passwd"), 1, "no address to follow"),
        (partial(onward, location="gopher://127.0.0.1/"), 1, "no address to follow"),
        (partial(onward, location="/again"), 5, "redirects"),
    ],
)
def test_nothing_else_is_kept(server: Server, tmp_path: Path, reply: Any, code: int, told: str) -> None:
    server.reply = reply
    kept = tmp_path / "gsm8k_test.jsonl"
    kept.write_text("what was there")
    said = fetch(server, tmp_path, "--again")
    assert (said.code, told in said.err) == (code, True), said.err
    assert kept.read_text() == "what was there"
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == [kept.name]


def test_without_a_network_the_error_says_what_to_do(server: Server, tmp_path: Path) -> None:
    server.close()
    said = fetch(server, tmp_path)
    assert (said.code, "Check the network" in said.err) == (5, True), said.err


def test_rows_of_another_form_are_not_kept(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"problem": "1+1?", "target": "2"}).encode()
    pinned = replace(PINNED, sha256=hashlib.sha256(text).hexdigest())
    monkeypatch.setitem(upstream.SOURCES, "gsm8k", Upstream("gsm8k_test.jsonl", (pinned,)))
    server.reply = partial(body, data=text)
    said = fetch(server, tmp_path)
    assert (said.code, "not written as expected" in said.err) == (1, True), said.err
    assert not (tmp_path / "gsm8k_test.jsonl").exists()


@needs_rows
def test_a_packed_file_as_it_was_published(server: Server, tmp_path: Path) -> None:
    server.reply = partial(body, data=(ROWS / "HumanEvalPlus-Mini.jsonl.gz").read_bytes())
    words = ("bench", "fetch", "humanevalplus", "--data", str(tmp_path), "--mirror", server.url, "--json")
    said = agent0(*words, home=tmp_path / "home")
    assert (said.code, said.json[0]["rows"]) == (0, 164), said.err


def test_what_may_not_be_passed_on_says_so_and_what_is_made_has_no_address(server: Server, tmp_path: Path) -> None:
    server.reply = partial(body, data=b"", status=404)
    words = ("--data", str(tmp_path), "--mirror", server.url)
    assert "do not pass its rows on" in agent0("bench", "fetch", "aime24", *words, home=tmp_path).err
    made = agent0("bench", "fetch", "adversarial", *words, home=tmp_path)
    assert (made.code, "made from a seed" in made.err) == (2, True), made.err


def test_every_source_is_a_benchmark_s_and_pinned() -> None:
    for name, source in SOURCES.items():
        assert source.name in benchmarks()[name].files
        for file in source.files:
            assert (len(file.commit), len(file.sha256)) == (40, 64)
            assert file.url().startswith("https://raw.githubusercontent.com/")
