"""A GGUF file's chat template is read before anything is loaded; of any other bytes it is said that they are none."""

import asyncio
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from agent0.assembly.validate.call_forms import with_tool_form
from agent0.assembly.validate.model_checks import models
from agent0.assembly.validate.template_check import calls_of_model, teaches_calls
from agent0.config.loading import load
from agent0.errors import DependencyError
from agent0.infra.weights.gguf_header import file_template
from agent0.settings import StudentConfig
from tests.test_form_trial import BLOCK, TEMPLATE, Habit, Opened

gguf = pytest.importorskip("gguf")
QWEN = TEMPLATE.read_text(encoding="utf-8")
TOKENS = ["a", "<s>", "</s>", "größe"]


def file(path: Path, template: str = QWEN, write: Callable[[object], None] = lambda _: None) -> Path:
    """A GGUF file of a tokenizer, without weights, as llama.cpp's own package writes it."""
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.5] * len(TOKENS))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(99)
    writer.add_add_bos_token(False)
    writer.add_rope_freq_base(1e6)
    if template:
        writer.add_chat_template(template)
    write(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_template_and_special_tokens_are_those_of_the_file(tmp_path: Path) -> None:
    assert file_template(file(tmp_path / "a.gguf")) == (QWEN, {"bos_token": "<s>", "eos_token": "</s>"})
    assert file_template(file(tmp_path / "b.gguf", ""))[0] == ""
    wide = file_template(file(tmp_path / "c.gguf", "größe π", lambda writer: writer.add_unk_token_id(3)))  # type: ignore[attr-defined]
    assert wide[0] == "größe π" and wide[1]["unk_token"] == "größe"


def test_the_form_that_a_file_teaches_is_told_as_of_a_folder(tmp_path: Path) -> None:
    path = file(tmp_path / "a.gguf")
    assert teaches_calls(path) and "10 of 10 read back" in calls_of_model(path)
    assert calls_of_model(file(tmp_path / "b.gguf", "")) == ""
    plain = file(tmp_path / "c.gguf", "{% for m in messages %}{{ m.content }}{% endfor %}")
    assert not teaches_calls(plain) and "go as text" in calls_of_model(plain)


def test_every_cut_of_a_file_is_named(tmp_path: Path) -> None:
    path = file(tmp_path / "a.gguf", "x" * 40)
    whole = path.read_bytes().rstrip(b"\0")
    for size in range(len(whole) - 40):
        path.write_bytes(whole[:size])
        with pytest.raises(DependencyError, match=r"The model a\.gguf"):
            file_template(path)


@pytest.mark.timeout(20)
def test_any_bytes_are_read_or_named(tmp_path: Path) -> None:
    path, draw = file(tmp_path / "a.gguf", "x" * 40), random.Random(1)
    whole = path.read_bytes()
    for _ in range(300):
        changed = bytearray(whole)
        for place in draw.choices(range(4, len(whole)), k=draw.randint(1, 4)):
            changed[place] = draw.choice((0, 1, 8, 9, 0x7F, 0xFF))
        path.write_bytes(changed)
        try:
            template, specials = file_template(path)
        except DependencyError:
            continue
        assert isinstance(template, str) and all(isinstance(one, str) for one in specials.values())
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k"
    for kind, most in ((8, 2**63), (0, 2**63), (9, 2**40), (77, 1)):
        path.write_bytes(head + struct.pack("<IIQ", 9, kind, most))
        with pytest.raises(DependencyError):
            file_template(path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGML" + bytes(40), b"PK\x03\x04" + bytes(40)])
def test_what_is_no_such_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(DependencyError) as caught:
        file_template(tmp_path / "a.gguf")
    assert caught.value.fix


async def test_a_model_in_a_file_is_tried_for_its_form(tmp_path: Path) -> None:
    student = StudentConfig(provider="llamacpp", model=str(file(tmp_path / "a.gguf")))
    settled, notice = await with_tool_form(student, Opened(Habit("I compute.", BLOCK)))
    assert settled.tool_form == "fence" and "5 of 5 in form fence" in notice
    plain = student.model_copy(update={"model": str(file(tmp_path / "b.gguf", ""))})
    assert await with_tool_form(plain, Opened(None)) == (plain, "")


def test_doctor_tells_of_a_file_what_it_tells_of_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")

    def told(path: Path) -> tuple[str, str]:
        own = {"run.student.provider": "llamacpp", "run.student.model": str(path), "home": str(tmp_path)}
        checks = asyncio.run(models(load("tiny", own, {})))
        return next((one.state, one.detail) for one in checks if one.name == "student model")

    state, detail = told(file(tmp_path / "a.gguf"))
    assert state == "ok" and "writes calls as <tool_call> with JSON, 10 of 10 read back" in detail
    (tmp_path / "b.gguf").write_bytes(b"GGUF and no more")
    state, detail = told(tmp_path / "b.gguf")
    assert state == "fail" and "b.gguf" in detail
