"""`agent0 chat`: with whom, by which tools, what is shown, and that nothing is lost or kept that should not be."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.models.chat import ChatSession, HeardModel
from agent0.cli.models import chat
from agent0.cli.models.named_model import model_flags
from agent0.config.loading import load
from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.student import Conditions, specs_of
from agent0.rollout.workspace_store import Scratch
from agent0.settings import StudentConfig
from tests.kept_open import one_sandbox
from tests.memory import TrustingSandbox
from tests.terminal import agent0
from tests.test_student import CALL, Playback

PYTHON = specs_of(("python",))
BLOCK = "I compute.\n```python\nprint(6*7)\n```"
QUESTION = "What is 12+30?"


def session(model: Any, **student: Any) -> ChatSession:
    config = StudentConfig(max_tokens=200, **student)
    return ChatSession(Conditions(model, config, TrustingSandbox(), Scratch(), seed=3), "math")


async def told(model: Any, text: str = "", **options: Any) -> tuple[list[str], Generation]:
    """What is heard of a turn of ``model``, and the turn."""
    heard: list[str] = []
    options = {"tools": PYTHON, "form": "fence", "cuts": True} | options
    listener = HeardModel(model, hear=heard.append, **options)
    return heard, await listener.generate(GenerateRequest((Turn(role="user", content=text),)))


class Letters:
    """Writes ``text`` letter by letter."""

    name, streams = "letters", True

    def __init__(self, text: str) -> None:
        self.text, self.written = text, 0

    async def generate(self, request: GenerateRequest) -> Generation:
        assert request.listen
        for length in range(1, len(self.text) + 1):
            self.written = length
            request.listen(self.text[:length])
            await asyncio.sleep(0)
        return Generation(self.text, model=self.name)


class Waiting:
    """Never answers, and calls ``asked`` when it is asked."""

    name = "waiting"

    def __init__(self, asked: Callable[[], None]) -> None:
        self.asked = asked

    async def generate(self, request: GenerateRequest) -> Generation:
        asyncio.get_running_loop().call_soon(self.asked)
        return await asyncio.Future[Generation]()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT0_HOME", str(tmp_path / "home"))
    yield tmp_path


async def test_a_chat_is_one_conversation_with_budgets_for_each_question() -> None:
    model = Playback([f"Tools.\n{CALL}", "\\boxed{42}", "It was 42.", f"Again.\n{CALL}", "\\boxed{42}"])
    chatting, calls = session(model, max_calls=1, tool_form="template"), list[Any]()
    first = await chatting.ask(QUESTION, calls.extend)
    assert (first.end, [use.result.output for use in calls]) == ("answered", ["42"])
    assert (await chatting.ask("What was it?", calls.extend)).end == "no_answer"
    last = await chatting.ask("And again?", calls.extend)
    assert (last.answer, len(calls)) == ("42", 2)
    roles = [turn.role for turn in model.asked[-1].turns if turn.role != "system"]
    assert roles[-9:] == ["user", "assistant", "tool", "assistant", "user", "assistant", "user", "assistant", "tool"]
    chatting.reset()
    model.texts = ["\\boxed{1}"] * 9
    await chatting.ask("Anew?", calls.extend)
    assert QUESTION not in str(model.asked[-1].turns)


async def test_without_tools_the_prompt_names_none() -> None:
    model = Playback(["It is 42."])
    await session(model, tools=()).ask(QUESTION, lambda _: None)
    assert not model.asked[0].tools and "tool" not in model.asked[0].turns[0].content


async def test_a_turn_is_heard_up_to_its_call_and_not_waited_for_beyond() -> None:
    """A turn in which a call is only part of the text is heard whole."""
    model = Letters(f"{BLOCK}\n```output\n41\n```\nIt is \\boxed{{41}}")
    heard, turn = await told(model)
    assert "".join(heard) == turn.text == BLOCK and model.written == len(BLOCK)
    heard, turn = await told(model, cuts=False)
    assert "".join(heard) == BLOCK and turn.text == model.text
    heard, turn = await told(model, form="template")
    assert "".join(heard) == turn.text == model.text
    heard, turn = await told(Playback([BLOCK + "\n41"]))
    assert "".join(heard) == turn.text == BLOCK, "of a model that does not stream, too"


async def test_ctrl_c_ends_a_reply_and_an_error_is_said_but_neither_ends_the_chat(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines: Iterator[str | None] = iter([QUESTION, "", "/other", "/reset", QUESTION, QUESTION, "/quit", "never read"])
    waiting, playing = session(Waiting(lambda: os.kill(os.getpid(), signal.SIGINT))), session(Playback(["\\boxed{1}"]))

    class Failing:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def reset(self) -> None:
            self.asked.append("reset")

        async def ask(self, question: str, report: Callable[[Sequence[Any]], None]) -> Any:
            self.asked.append(question)
            if len(self.asked) == 1:
                return await waiting.ask(question, report)
            if len(self.asked) == 3:
                raise OperationError("The conversation is too long.", fix="Forget it: /reset")
            return await playing.ask(question, report)

    failing: Any = Failing()
    await chat.converse(failing, chat.ReplyPrinter(), lambda: next(lines))
    assert failing.asked == [QUESTION, "reset", QUESTION, QUESTION] and next(lines) == "never read"
    assert waiting._progress is None, "what was ended is forgotten"
    err = capsys.readouterr().err
    assert "Ended" in err and "error: The conversation is too long. Forget it: /reset" in err and "/quit." in err


async def test_a_terminal_is_read_until_its_end(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C drops the line that is typed, Ctrl-D ends the chat; a model's file is called by its name."""
    typed: list[str | BaseException] = ["What is 3+4?", KeyboardInterrupt(), "", EOFError(), "never read"]

    def input_(_: str) -> str:
        line = typed.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr("builtins.input", input_)
    own = {"home": str(place / "home"), "run.student.temperature": "0", "run.student.model": "latency=0"}
    with one_sandbox():
        await chat._talk(load("scripted", own, {}), None)
        out, err = capsys.readouterr()
        assert "| 7\n\\boxed{7}\n" in out and err.startswith("scripted latency=0, tools python, sympy.")
        assert typed == ["never read"]
        typed[:] = [EOFError()]
        await chat._talk(load("scripted", own, {}), None, "first/student-1")
    assert "first/student-1 on scripted latency=0, tools python, sympy." in capsys.readouterr().err


def test_the_built_in_model_replies(place: Path) -> None:
    told = agent0("chat", "tiny", "--once", QUESTION, "--temperature", "0", "--json")
    assert told.code == 0, told.err
    assert told.json["end"] == "answered" and told.json["answer"] in told.json["turns"][-1]
    assert not (place / "home").exists() or not list((place / "home").rglob("*.db")), "nothing is recorded"


def test_calls_run_in_the_sandbox_and_are_shown_with_their_output(place: Path) -> None:
    told = agent0("chat", "--provider", "scripted", "--temperature", "0", stdin="What is 3+4?\n")
    assert told.code == 0, told.err
    assert "print(3+4)" in told.out and "\n| python: ok\n| 7\n\\boxed{7}\n" in told.out
    fewer = agent0("chat", "--provider", "scripted", "--tools", "sympy", "--temperature", "0", stdin="What is 3+4?")
    assert "| python: error\n| There is no tool named 'python'. The tools are: sympy.\n" in fewer.out
    assert "| python: ok" not in agent0("chat", "--provider", "scripted", "--no-tools", stdin="What is 3+4?").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nobody", "--once", "hm"), 1, "no model or checkpoint 'nobody'"),
        (("qwen3-0.6b", "--once", "hm"), 5, "agent0 model get qwen3-0.6b"),
        (("missing.gguf", "--once", "hm"), 5, "There is no file"),
        (("tiny",), 2, "A chat needs a question"),
        (("tiny", "--once", "hm", "--tools", "abacus"), 2, "no tool named abacus"),
        ((".", "--once", "hm"), 5, "config.json"),
    ],
)
def test_bad_input_is_one_line(place: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    told = agent0("chat", *arguments)
    assert told.code == code and words in told.err and len(told.err.splitlines()) == 1, told.err


def test_a_model_that_is_named_alone_brings_its_provider(place: Path) -> None:
    (place / "small.gguf").touch()
    (place / "folder").mkdir()
    named = {name: model_flags(name, None, "student")["run__student__provider"] for name in ("tiny", "climb", "other")}
    assert named == {"tiny": "tiny", "climb": "tiny", "other": None}
    for name, provider in (("small.gguf", "llamacpp"), ("folder", "transformers")):
        flags = model_flags(name, None, "student", "teacher")
        assert {flags[f"run__{role}__provider"] for role in ("student", "teacher")} == {provider}
        assert flags["run__teacher__model"] == str(place / name)
    assert model_flags("small.gguf", "ollama", "student")["run__student__model"] == "small.gguf"
