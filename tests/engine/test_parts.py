"""Text to tokens, sampling, adapters, batches, the objective: the engine in this process."""

import io
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from agent0.errors import DependencyError, OperationError, TransientError
from agent0.events.values import Turn
from agent0.infra.engine.adapter import Adapter, lora_settings, pack, unpack
from agent0.infra.engine.chat_template import Chat
from agent0.infra.engine.inference import ADAPTERS_KEPT, Engine
from agent0.infra.engine.turn_forms import Gap
from agent0.infra.engine.worker_process import Worker, _error_fields, _revived
from agent0.infra.models.transformers import Transformers
from agent0.infra.tiny.tokenizer import CONTROL, MARKUP, make_tokenizer
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.training.objectives import MinibatchRows
from agent0.training.objectives.policy_gradient import clipped_surrogate, likelihood, token_logprobs
from tests.engine.asking import QWEN, user, wanted
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
MODULE = pytest.mark.asyncio(loop_scope="module")


# --- text and tokens

CONVERSATION = (
    user("What is 12+34?"),
    Turn(
        role="assistant", content='<tool_call>\n{"name": "python", "arguments": {"code": "print(12+34)"}}\n</tool_call>'
    ),
    Turn(role="tool", content="46"),
    Turn(role="tool", content="[4, 6]"),
    Turn(role="assistant", content="\\boxed{46}"),
)


@pytest.mark.parametrize("template", ["own", "qwen"])
@pytest.mark.parametrize("turns", [CONVERSATION, (Turn(role="system", content="Be."), *CONVERSATION, user("Again?"))])
@pytest.mark.parametrize("with_tools", [False, True])
def test_tokens_are_those_of_the_chat_template(template: str, turns: tuple[Turn, ...], with_tools: bool) -> None:
    tokenizer = make_tokenizer(0)
    if template == "qwen":
        tokenizer.chat_template = QWEN
    from tests.conformance_model import TOOL

    described = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
    messages = [turn.model_dump(include={"role", "content"}) for turn in turns]
    text = tokenizer.apply_chat_template(
        messages,
        tools=[{"type": "function", "function": described}] if with_tools else None,
        add_generation_prompt=True,
        tokenize=False,
    )
    found = Chat(tokenizer).prompt(turns, (TOOL,) if with_tools else ())
    assert found == tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(found) == text


def test_sampled_ids_are_never_encoded_again(chat: Chat) -> None:
    ids = [*map(int, range(40, 50)), chat.stop]  # no encoder would write single bytes like this
    said = Turn(role="assistant", content=chat.decode(ids), token_ids=tuple(ids))
    before = chat.prompt((user("Hi"),))
    after = chat.prompt((user("Hi"), said, Turn(role="tool", content="1")))
    assert after[: len(before) + len(ids)] == before + ids
    assert after.count(chat.stop) == 3
    forced = said.model_copy(update={"content": "<tool_call>" + said.content})
    (call,) = chat._trusted.encode("<tool_call>").ids
    assert chat.prompt((user("Hi"), forced))[: len(before) + 12] == [*before, call, *ids]


@given(st.lists(st.sampled_from([*CONTROL, *MARKUP, "a", "7", "\n", "é", "|", "<"]), max_size=8).map("".join))
@settings(max_examples=25, deadline=None)
def test_text_of_others_never_becomes_a_mark(text: str) -> None:
    chat = Chat(_tokenizer())
    marks = set(_tokenizer().convert_tokens_to_ids(list(CONTROL + MARKUP)))
    plain = chat.prompt((user("x"), Turn(role="tool", content="x")))
    hostile = chat.prompt((user(text), Turn(role="tool", content=text)))
    assert [i for i in hostile if i in marks] == [i for i in plain if i in marks]
    written = chat._content(Turn(role="assistant", content=text), Gap(""), ())
    control = set(_tokenizer().convert_tokens_to_ids(list(CONTROL)))
    assert not control & set(written)
    assert _tokenizer().decode(written) == text


_kept: list[PreTrainedTokenizerFast] = []


def _tokenizer() -> PreTrainedTokenizerFast:
    if not _kept:
        _kept.append(make_tokenizer(0))
    return _kept[0]


def test_a_lesson_marks_what_the_assistant_writes(chat: Chat) -> None:
    ids, mask = chat.training_example(CONVERSATION)
    own = chat.decode([token for token, kept in zip(ids, mask, strict=True) if kept])
    assert own == CONVERSATION[1].content + "<|im_end|>" + CONVERSATION[4].content
    assert ids[-1] == chat.stop and mask[-1] == 1


def test_a_turn_ends_where_the_template_closes_it() -> None:
    """Base models name another end of text than the one their template closes turns with."""
    tokenizer = make_tokenizer(0)
    tokenizer.eos_token = "<|endoftext|>"
    chat = Chat(tokenizer)
    assert chat.stop == tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert chat.stops == {chat.stop, tokenizer.eos_token_id}


def test_a_model_without_a_template_is_refused() -> None:
    tokenizer = make_tokenizer(0)
    tokenizer.chat_template = None
    with pytest.raises(OperationError, match="chat template"):
        Chat(tokenizer)


def test_a_template_that_drops_turns_is_refused(chat: Chat) -> None:
    tokenizer = make_tokenizer(0)
    tokenizer.chat_template = "{{ messages[-1].content }}"
    with pytest.raises(OperationError, match="drops turn 0"):
        Chat(tokenizer).prompt((user("a"), user("b")))


# --- decoding


@pytest.mark.parametrize("heat", [0.0, 0.7, 1.0])
def test_logprobs_are_those_of_the_model(engine: Engine, heat: float) -> None:
    """Teacher forcing over the whole sequence gives what decoding step by step with a cache gave."""
    batch = [
        wanted("What is 1+2?", 1, temperature=heat),
        wanted("Reverse 'ABCDEFG'.", 2, temperature=heat, max_tokens=30),
    ]
    for written in engine.generate(batch):
        ids = torch.tensor([written.prompt + written.ids])
        with torch.no_grad():
            logits = engine._model(input_ids=ids).logits
        expected = token_logprobs(logits, ids, heat or 1.0)[0, len(written.prompt) :]
        assert written.logprobs == pytest.approx(expected.tolist(), abs=1e-3)
        if heat == 0:
            assert logits[0, len(written.prompt) - 1 : -1].argmax(-1).tolist() == written.ids


def test_neighbours_do_not_matter(engine: Engine) -> None:
    batch = [wanted("What is " + "+".join("9" * (n + 1)) + "?", n, max_tokens=3 + 5 * n) for n in range(8)]
    together = engine.generate(batch)
    alone = [engine.generate([one])[0] for one in batch]
    assert [w.ids for w in together] == [w.ids for w in alone]
    assert {len(w.ids) for w in together} != {12}


def test_a_small_nucleus_is_greedy(engine: Engine) -> None:
    greedy = engine.generate([wanted("Sort [3,1].", temperature=0.0)])[0]
    narrow = engine.generate([wanted("Sort [3,1].", seed, top_p=1e-6) for seed in range(4)])
    assert {tuple(w.ids) for w in narrow} == {tuple(greedy.ids)}
    wide = engine.generate([wanted("Sort [3,1].", seed, top_p=0.9) for seed in range(4)])
    assert len({tuple(w.ids) for w in wide}) > 1


def test_a_context_that_is_full_ends_the_turn(engine: Engine) -> None:
    nearly, beyond = engine.generate([wanted("x" * 385, max_tokens=50), wanted("x" * 800, max_tokens=50)])
    assert nearly.finish == "length" and 0 < len(nearly.ids) < 50
    assert beyond.finish == "length" and beyond.ids == [] and beyond.text == ""


def test_only_a_few_adapters_are_kept(engine: Engine) -> None:
    plain = engine.generate([wanted("What is 1+2?")])[0]
    for n in range(ADAPTERS_KEPT + 2):
        engine.load_adapter(f"a{n}", pack(_random_adapter(engine, n)))
        assert engine.generate([wanted("What is 1+2?")], f"a{n}")[0].logprobs != plain.logprobs
    assert not engine.has_adapter("a0") and not engine.has_adapter("a1") and engine.has_adapter("a2")
    assert engine.generate([wanted("What is 1+2?")])[0].logprobs == pytest.approx(plain.logprobs, abs=1e-5)


def _random_adapter(engine: Engine, seed: int) -> Adapter:
    generator = torch.Generator().manual_seed(seed)
    sizes = {"q_proj": (32, 32), "k_proj": (32, 16), "v_proj": (32, 16), "o_proj": (32, 32)}
    sizes |= {"gate_proj": (32, 48), "up_proj": (32, 48), "down_proj": (48, 32)}
    weights = {}
    for layer in range(2):
        for name, (wide, tall) in sizes.items():
            room = "self_attn" if name in ("q_proj", "k_proj", "v_proj", "o_proj") else "mlp"
            path = f"base_model.model.model.layers.{layer}.{room}.{name}"
            weights[f"{path}.lora_A.weight"] = torch.randn(4, wide, generator=generator)
            weights[f"{path}.lora_B.weight"] = torch.randn(tall, 4, generator=generator)
    return Adapter(lora_settings(4, 8), weights, {"seed": str(seed)})


def test_an_adapter_of_another_model_is_refused(engine: Engine) -> None:
    found = _random_adapter(engine, 0)
    odd = replace(found, weights={"base_model.model.elsewhere.lora_A.weight": torch.ones(4, 4)})
    with pytest.raises(OperationError, match="does not fit"):
        engine.load_adapter("odd", pack(odd))
    assert not engine.has_adapter("odd")


def test_an_adapter_is_the_same_bytes_and_comes_back(engine: Engine) -> None:
    adapter = _random_adapter(engine, 3)
    again = unpack(pack(adapter))
    assert pack(again) == pack(adapter)
    assert again.metadata == {"seed": "3"} and again.settings == adapter.settings


def _tar(*entries: tuple[str, bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no tar at all",
        _tar(("../../evil", tarfile.REGTYPE, b"x")),
        _tar(("adapter_config.json", tarfile.SYMTYPE, b"")),
        _tar(("adapter_model.bin", tarfile.REGTYPE, b"cos\nsystem\n(S'id'\ntR.")),
        _tar(("adapter_config.json", tarfile.REGTYPE, b'{"peft_type": "PROMPT_TUNING"}')),
        _tar(("adapter_config.json", tarfile.REGTYPE, b'{"peft_type": "LORA"}'),
             ("adapter_model.safetensors", tarfile.REGTYPE, b"\x80\x04.")),
    ],
)  # fmt: skip
def test_what_is_no_adapter_is_refused(data: bytes) -> None:
    with pytest.raises(OperationError, match="no adapter"):
        unpack(data)


# --- processes


def test_errors_cross_the_process_whole() -> None:
    for error in (DependencyError("x", "y", "z"), OperationError("a", "b"), TransientError("t")):
        again = _revived(*_error_fields(error))
        assert type(again) is type(error) and str(again) == str(error)
    odd = _revived(*_error_fields(ZeroDivisionError("by zero")))
    assert isinstance(odd, TransientError) and "by zero" in str(odd)


async def test_the_childs_environment_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT0_NATS_PASSWORD", "canary-7f3")
    worker = Worker("collections:Counter", {"a": 2})
    assert await worker.call("total") == 2
    found = Path(f"/proc/{worker.pid}/environ").read_bytes()
    arguments = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
    assert b"PATH=" in found and b"canary" not in found + arguments
    with pytest.raises(TransientError, match="AttributeError"):
        await worker.call("nothing")
    await worker.close()
    assert worker.pid is None
    with pytest.raises(TransientError, match="closed"):
        await worker.call("total")


@pytest.mark.parametrize("left", [(), ("config.json",), ("config.json", "tokenizer.json", "tokenizer_config.json")])
def test_a_missing_model_says_what_to_do(tmp_path: Path, left: tuple[str, ...], folder: Path) -> None:
    for name in left:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    for opener in (
        lambda: Transformers(tmp_path, MemoryArtifacts(), name="x"),
        lambda: LoraTrainer(tmp_path, MemoryArtifacts()),
    ):
        with pytest.raises(DependencyError, match="Name a folder"):
            opener()


def test_a_broken_model_is_a_dependency_that_is_away(tmp_path: Path, folder: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DependencyError, match=str(tmp_path)):
        Engine(str(tmp_path))


def test_importing_the_ports_is_light() -> None:
    heavy = "any(m in sys.modules for m in ('torch', 'transformers'))"
    code = f"import sys, infra.models.transformers, infra.training.lora_trainer; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the objective


def test_the_surrogate_is_the_formula() -> None:
    new, old = torch.tensor([[0.0, -0.5, -1.0]]), torch.tensor([[0.0, -1.0, -0.5]])
    mask = torch.tensor([[0, 1, 1]])
    up, down = torch.tensor([1.0]), torch.tensor([-1.0])
    one = torch.ones(1)
    rise, fall = 2.718281828**0.5, 2.718281828**-0.5
    gained = clipped_surrogate(MinibatchRows(new, old, mask, up, one, torch.tensor([0.3])), clip_low=0.2)
    assert float(gained.loss) == pytest.approx(-(1.3 + fall), abs=1e-5)
    assert (
        float(gained.metrics["ratio"]) == pytest.approx(rise + fall, abs=1e-5)
        and int(gained.metrics["clip_share"]) == 1
    )
    lost = clipped_surrogate(MinibatchRows(new, old, mask, down, one * 2, torch.tensor([0.3])), clip_low=0.2)
    assert float(lost.loss) == pytest.approx(2 * (rise + 0.8), abs=1e-5)


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.floats(-3, 3), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_tool_output_gets_no_gradient(own: list[bool], advantage: float, seed: int) -> None:
    torch.manual_seed(seed)
    logprobs = (-torch.rand(1, 6)).requires_grad_()
    mask = torch.tensor([own]).int()
    one = torch.ones(1)
    rows = MinibatchRows(logprobs, -torch.rand(1, 6), mask, torch.tensor([advantage]), one, one)
    found = clipped_surrogate(rows, clip_low=0.2)
    (found.loss + likelihood(logprobs, mask, torch.ones(1))).backward()
    assert logprobs.grad is not None
    assert bool((logprobs.grad[mask == 0] == 0).all()) and bool(torch.isfinite(logprobs.grad).all())
    if advantage > 0:
        assert bool((logprobs.grad[mask == 1] < 0).all())


# --- training
