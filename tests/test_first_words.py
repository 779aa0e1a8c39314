"""A server that takes a call and writes nothing shows within seconds, long before the call's time is over."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from agent0.assembly.log import waits
from agent0.assembly.log.carriers import carrying
from agent0.assembly.runtime.progress import Pace
from agent0.cli.runs.live import describe
from agent0.infra.models.calls import first_words
from agent0.infra.models.ollama.provider import Ollama
from agent0.settings import Settings, StudentConfig
from tests.conformance_model import ask
from tests.memory import MemoryArtifacts
from tests.ollama_wire import serving
from tests.terminal import agent0 as call

SMALL = ("--profile", "scripted", "--tasks", "2", "--iterations", "1", "--detach")


async def test_a_server_that_hangs_is_named_while_it_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_words, "SHOWN_S", 0.0)
    with serving(MemoryArtifacts(), stall=threading.Event()) as server:
        model = Ollama(StudentConfig(timeout_s=600), server.url)
        asked = asyncio.ensure_future(model.generate(ask("What is 1+1?")))
        while not server.asked:
            await asyncio.sleep(0.01)
        first_words.write(tmp_path)
        said = waits.waits(tmp_path)
        assert said == f"the first token of qwen2.5:7b at {server.url}, 0 s"
        assert server.stall
        server.stall.set()
        await asked
        first_words.write(tmp_path)
        assert waits.waits(tmp_path) == "" and first_words.text() == ""
        await model.close()


def test_what_a_process_that_is_gone_waited_for_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / first_words.FOLDER).mkdir()
    left = tmp_path / first_words.FOLDER / "1.json"
    left.write_text('{"waits": "the first token of m at u, 9 s"}')
    assert first_words.read(tmp_path) == "the first token of m at u, 9 s"
    os.utime(left, (0, 0))
    assert first_words.read(tmp_path) == ""
    left.write_text("half")
    assert first_words.read(tmp_path) == ""


def test_every_screen_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    assert call("run", "start", *SMALL, home=home).code == 0
    (home / first_words.FOLDER).mkdir()
    (home / first_words.FOLDER / "1.json").write_text('{"waits": "the first token of m at http://u, 9 s"}')
    with carrying(Settings(home=home), 9):
        for words in (("run", "why"), ("run", "show"), ("run", "list"), ("status",)):
            assert "the first token of m at http://u, 9 s" in call(*words, home=home).out, words
        why = call("run", "why", home=home).out
    assert ": it runs, it waits for " in why and " s ago: no sign that anything went badly." in why
    assert "First bad step" not in why and "To mend it" not in why
    assert "the run is stopped: no process executes it" in call("run", "why", home=home).out
    pace = Pace("tasks", 0, 1, 8, 0.1, None, waits="waits for the first token of m at http://u, 9 s")
    assert describe(pace).endswith("waits for the first token of m at http://u, 9 s")
