"""A small model as a function is what transformers computes: logits, gradients, and every token that is written."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.values import Turn
from agent0.infra.engine import decoding
from agent0.infra.engine.inference import Engine, load
from agent0.infra.engine.qwen2_functional import Shape, logits, logprobs, parts_of, shape_of, weights_of
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.engine.sampling import Row
from agent0.infra.models.transformers import BASE
from agent0.infra.training.batches import Padded
from agent0.infra.training.forward import ADAPTER, forward_of
from agent0.ports.models import Sampling
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter
from tests.engine.asking import user
from tests.engine.models import qwen2, with_lora

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
TRAINED = "trained"


@pytest.fixture(scope="module")
def engines() -> tuple[Engine, Engine]:
    """The built-in model as a function and through transformers, both with a large adapter."""
    both = Engine(str(BASE)), Engine(str(BASE), through=True)
    for engine in both:
        engine.load_adapter(TRAINED, adapter(BASE))
    return both


def asked(texts: Sequence[str], **sampling: Any) -> list[TurnRequest]:
    return [
        TurnRequest((user(text),), Sampling(**{"max_tokens": 20 + 9 * n, "seed": n} | sampling))
        for n, text in enumerate(texts)
    ]


def tokens(length: int, rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 600, (rows, length), generator=torch.Generator().manual_seed(seed))


def padding(lengths: Sequence[int], *, left: bool) -> torch.Tensor:
    seen = torch.tensor([[1] * length + [0] * (max(lengths) - length) for length in lengths])
    return seen.flip(1) if left else seen


@pytest.mark.parametrize("name", ["", TRAINED])
@pytest.mark.parametrize("left", [False, True])
def test_logits_are_those_of_transformers(engines: tuple[Engine, Engine], name: str, left: bool) -> None:
    fast, through = engines
    lengths = (9, 70, 1, 33)
    ids, seen = tokens(70, 4), padding(lengths, left=left)
    weights = fast._function(name)
    assert weights and through._function(name) is None
    with torch.inference_mode(), through._using(name):
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        wanted = through._model(input_ids=ids, attention_mask=seen, position_ids=positions).logits
        found = logits(weights, ids, seen)
    assert float(((found - wanted).abs() * seen[..., None]).max()) < 1e-4
    assert float((found * (1 - seen[..., None])).abs().max()) == 0


CALLED = (
    user("What is 12+34?"),
    Turn(
        role="assistant", content='<tool_call>\n{"name": "python", "arguments": {"code": "print(12+34)"}}\n</tool_call>'
    ),
    Turn(role="tool", content="46"),
)
TEXTS = ("What is 12+34?", "What is 12+34?", "Sort [3, 1, 2].", "Reverse 'abcdef' and say it twice, please.", "Hi")


@pytest.mark.parametrize("name", ["", TRAINED])
@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.0}, {"temperature": 1.0}, {"temperature": 0.7}, {"temperature": 1.2, "top_p": 0.9}]
)
def test_every_token_is_that_of_transformers(
    engines: tuple[Engine, Engine], name: str, sampling: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal prompts, later turns, forced beginnings, rows that end early, and prompts read in parts."""
    monkeypatch.setattr(decoding, "READ", 60)
    batch = [*asked(TEXTS, **sampling), TurnRequest(CALLED, Sampling(**{"max_tokens": 90, "seed": 7} | sampling))]
    batch.append(replace(batch[2], prefill="\\boxed{"))
    fast, through = (engine.generate(batch, name) for engine in engines)
    same(fast, through)


def test_greedy_and_drawn_share_a_batch(engines: tuple[Engine, Engine]) -> None:
    batch = asked(TEXTS, temperature=0.0)[:2] + asked(TEXTS, temperature=0.6, top_p=0.8)[2:]
    same(*(engine.generate(batch, TRAINED) for engine in engines))


def same(fast: list[Written], through: list[Written]) -> None:
    for one, other in zip(fast, through, strict=True):
        assert (one.prompt, one.ids, one.finish, one.text) == (other.prompt, other.ids, other.finish, other.text)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_a_long_turn_outgrows_its_room_and_its_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody stops: rows leave one by one at their limits, some at the end of the context, and room is made often."""
    monkeypatch.setattr(decoding, "ROOM", 3)
    batch = [wanted for n in range(6) for wanted in asked([f"{'x' * 60 * n}?"], max_tokens=30 * n + 1, seed=n)]
    fast, through = Engine(str(folder)), Engine(str(folder), through=True)
    for engine in (fast, through):
        engine._chat.stops = frozenset()
    together = fast.generate(batch)
    same(together, through.generate(batch))
    assert [len(one.ids) for one in together] == [1, 31, 61, 91, 121, 400 - len(together[5].prompt)]
    for one, wanted in zip(together, batch, strict=True):
        same([one], fast.generate([wanted]))


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=40).map(sorted))
def test_rows_side_by_side_are_alike_and_none_is_lost(lengths: list[int]) -> None:
    rows = [Row(Written([0] * length), Sampling(1.0, 1.0, 1), 1) for length in lengths]
    parts = [[len(row.written.prompt) for row in part] for part in decoding.alike(rows)]
    assert [length for part in parts for length in part] == lengths
    assert all(part and part[-1] <= 2 * part[0] + decoding.APART for part in parts)


def test_what_was_drawn_is_as_likely_to_the_trainer(folder: Path) -> None:
    """The importance ratio of the first step is 1: sampled log-probabilities, computed again in training."""
    torch.manual_seed(0)
    base, _ = load(str(BASE), "cpu", "")
    model: Any = with_lora(base, 8, 16)
    engine = Engine(str(BASE))
    engine.load_adapter(TRAINED, adapter(BASE))
    trained = {
        name.replace(f".{TRAINED}.", f".{ADAPTER}."): one
        for name, one in engine._model.state_dict().items()
        if f".{TRAINED}." in name
    }
    assert not model.load_state_dict(trained, strict=False).unexpected_keys
    forward = forward_of(model, nullcontext)
    for heat in (1.0, 0.7):
        written = engine.generate(asked(TEXTS, temperature=heat), TRAINED)
        longest = max(len(one.prompt + one.ids) for one in written)
        rows = [[*one.prompt, *one.ids, *[0] * (longest - len(one.prompt + one.ids))] for one in written]
        seen = padding([len(one.prompt + one.ids) for one in written], left=False)
        own = padding([len(one.prompt) for one in written], left=False)
        mask = seen - torch.nn.functional.pad(own, (0, longest - own.shape[1]))
        found = forward(Padded(torch.tensor(rows), seen, mask, torch.zeros(seen.shape)), heat)[0].detach()
        told = torch.tensor([number for one in written for number in one.logprobs])
        assert float((found[mask.bool()] - told).abs().max()) < 1e-5
        assert not bool(found[~mask.bool()].any())


@pytest.mark.parametrize("twice", [False, True])
def test_gradients_are_those_of_transformers(folder: Path, twice: bool) -> None:
    """In double precision: of every LoRA weight, whichever tokens are asked for."""
    base, _ = load(str(folder), "cpu", "")
    shape = shape_of(base)
    torch.manual_seed(1)
    model: Any = with_lora(base, 4, 8).double()
    own = [one for one in model.parameters() if one.requires_grad]
    with torch.no_grad():
        for one in own:
            one.add_(torch.randn_like(one) * 0.05)
    ids, seen = tokens(21, 3), padding((21, 4, 13), left=False)
    mask = seen * (torch.rand(seen.shape) < 0.6)
    parts = parts_of(model, ADAPTER)
    assert shape and parts
    found = logprobs(weights_of(shape, *parts), ids, seen, mask, 0.8, twice=twice)
    wanted = token_logprobs(model(input_ids=ids, attention_mask=seen).logits, ids, 0.8) * mask
    assert torch.allclose(found, wanted, atol=1e-5)  # angles are in single precision
    factors = torch.randn(seen.shape, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad((found * factors).sum(), own),
        torch.autograd.grad((wanted * factors).sum(), own),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-5 * float(other.abs().max()))


ODD: list[dict[str, Any]] = [
    {"hidden_act": "gelu"},
    {"attention_dropout": 0.1},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}},
    {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0},
]
SMALL: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SMALL |= {"num_key_value_heads": 1}


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: next(iter(odd)))
def test_what_is_not_plain_goes_through_transformers(odd: dict[str, Any]) -> None:
    assert isinstance(shape_of(qwen2(**SMALL)), Shape)
    assert shape_of(qwen2(**SMALL, **odd)) is None
    assert shape_of(qwen2(**SMALL).bfloat16()) is None


@pytest.mark.parametrize(
    "changes", [{}, {"tie_word_embeddings": False}, {"rope_parameters": {"rope_theta": 7e5, "rope_type": "default"}}]
)
def test_other_plain_models_are_computed_alike(changes: dict[str, Any]) -> None:
    """Heads of their own for keys and values, a head of its own, other angles."""
    torch.manual_seed(0)
    model = qwen2(**SMALL | {"num_key_value_heads": 2, "initializer_range": 0.5} | changes).eval()
    shape, parts = shape_of(model), parts_of(model)
    assert shape and parts
    ids, seen = tokens(9, 3) % 32, padding((9, 5, 7), left=False)
    with torch.no_grad():
        wanted = model(input_ids=ids, attention_mask=seen).logits
        assert torch.allclose(logits(weights_of(shape, *parts), ids, seen), wanted * seen[..., None], atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"use_rslora": True}, True),
        ({"target_modules": ["q_proj"]}, True),
        ({"bias": "lora_only"}, False),
        ({"lora_dropout": 0.1}, False),
        ({"use_dora": True}, False),
        ({"target_modules": ["q_proj", "lm_head"]}, False),
        ({"target_modules": ["q_proj", "embed_tokens"]}, False),
    ],
)
def test_adapters_that_are_more_than_pairs_go_through_transformers(changes: dict[str, Any], known: bool) -> None:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(**{"r": 2, "target_modules": ["q_proj", "down_proj"], "init_lora_weights": False, **changes})
    model: Any = get_peft_model(qwen2(**SMALL, tie_word_embeddings=False), config)
    parts, ids = parts_of(model, ADAPTER), tokens(6, 1) % 32
    assert (parts is not None) == known
    if parts:
        shape = shape_of(model.get_base_model())
        assert shape
        with torch.no_grad():
            found = logits(weights_of(shape, *parts), ids, torch.ones_like(ids))
            assert torch.allclose(found, model(input_ids=ids).logits, atol=1e-5)


def test_every_adapter_has_weights_of_its_own() -> None:
    engine, batch = Engine(str(BASE)), asked(TEXTS[:2], temperature=0.0)
    told = [engine.generate(batch)[0].logprobs]
    for seed in (0, 1):
        engine.load_adapter(f"a{seed}", adapter(BASE, seed))
        told.append(engine.generate(batch, f"a{seed}")[0].logprobs)
    assert told[0] != told[1] != told[2] != told[0]
    assert engine.generate(batch)[0].logprobs == told[0]
