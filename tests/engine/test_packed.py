"""A model with packed matrices writes what it writes in single precision, but for rounding, whoever is beside it."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from agent0.errors import ConfigError, OperationError, TransientError
from agent0.events.values import Turn
from agent0.infra.engine import decoding, sampling
from agent0.infra.engine.adapter import Adapter, lora_settings, pack
from agent0.infra.engine.formats import packed_need, prefixes
from agent0.infra.engine.formats.packed_engine import PackedEngine
from agent0.infra.engine.formats.prefixes import BLOCK, Prefixes, joined
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.memory_need import packed, trained_precision
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.engine.sampling import Row
from agent0.infra.models.transformers import BASE, ENGINE, PACKED, Transformers
from agent0.ports.models import Sampling
from tests.adapters import adapter, tensors
from tests.engine.asking import user
from tests.engine.models import llama, saved
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
TRAINED = "trained"
TEXTS = ("What is 12+34?", "What is 12+34?", "Sort [3, 1, 2].", "Reverse 'abcdef' and say it twice, please.", "Hi")
NATS = {"bf16": 0.1, "int8": 0.2}
"""What the log-probability of a token may differ by on average; the base's own entropy is several nats."""


def requests(**sampling: Any) -> list[TurnRequest]:
    return [
        TurnRequest((user(text),), Sampling(**{"max_tokens": 12 + 9 * n, "seed": n} | sampling))
        for n, text in enumerate(TEXTS)
    ]


def same(answers: list[Written], others: list[Written]) -> None:
    for answer, other in zip(answers, others, strict=True):
        assert (answer.prompt, answer.ids, answer.finish) == (other.prompt, other.ids, other.finish)
        assert answer.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.fixture(scope="module")
def through_transformers() -> Engine:
    engine = Engine(str(BASE), through=True)
    engine.load_adapter(TRAINED, adapter(BASE))
    return engine


@pytest.mark.parametrize("name", ["", TRAINED])
def test_in_single_precision_every_token_is_that_of_transformers(through_transformers: Engine, name: str) -> None:
    engine = PackedEngine(str(BASE), precision="fp32")
    engine.load_adapter(TRAINED, adapter(BASE))
    for drawn in ({"temperature": 0.0}, {"temperature": 1.0}):
        same(engine.generate(requests(**drawn), name), through_transformers.generate(requests(**drawn), name))


def test_a_llama_without_biases_is_that_of_transformers(tmp_path: Path, through_transformers: Engine) -> None:
    tokenizer = through_transformers._chat._tokenizer
    folder = saved(tmp_path, tokenizer, hidden_size=32, intermediate_size=48)
    torch.manual_seed(1)
    model = llama(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.2, rope_parameters={"rope_type": "default", "rope_theta": 5e4},
        max_position_embeddings=400,
    )  # fmt: skip
    model.save_pretrained(folder)
    same(
        PackedEngine(str(folder), precision="fp32").generate(requests()),
        Engine(str(folder), through=True).generate(requests()),
    )


@pytest.mark.parametrize("name", ["", TRAINED])
@pytest.mark.parametrize("precision", list(NATS))
def test_packed_matrices_give_nearly_the_same_chances(precision: str, name: str) -> None:
    exact, engine = PackedEngine(str(BASE), precision="fp32"), PackedEngine(str(BASE), precision=precision)
    for each in (exact, engine):
        each.load_adapter(TRAINED, adapter(BASE, size=0.02))
    texts = ["The answer is 46.", "I cannot say.", "[1, 2, 3]"]
    chances, others = (each.likelihood((user("What is 12+34?"),), texts, name) for each in (exact, engine))
    differences = [abs(a.logprob - b.logprob) / a.tokens for a, b in zip(chances, others, strict=True)]
    assert 0 < max(differences) < NATS[precision]
    assert sorted(texts, key=lambda text: -chances[texts.index(text)].logprob) == sorted(
        texts, key=lambda text: -others[texts.index(text)].logprob
    )


def test_who_waits_for_a_place_gets_what_it_would_have_got_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all lengths, few places, every end makes room; also where all end at once."""
    engine = PackedEngine(str(BASE), precision="fp32")
    batch = [request for n in range(4) for request in requests(temperature=1.0, seed=n)]
    together = engine.generate(batch)
    for most in ({"SLOTS": 1}, {"SLOTS": 3}, {"SLOTS": 7}, {"KEYS": 1}, {"KEYS": 1 << 19}):
        with monkeypatch.context() as bounds:
            for name, value in most.items():
                bounds.setattr(packed_need, name, value)
            same(engine.generate(batch), together)


def test_a_cache_is_joined_behind_another() -> None:
    engine = PackedEngine(str(BASE), precision="fp32")
    weights, prompts = engine._base, [[5, 9, 11], [7] * 9, [3, 4]]
    with torch.inference_mode():
        whole, ends = decoding.read(weights, prompts)
        first, second = decoding.read(weights, prompts[:1]), decoding.read(weights, prompts[1:])
        joined, places = first[0].join(second[0]), torch.tensor([1, 2, 3])
        assert torch.allclose(torch.cat([first[1], second[1]]), ends, atol=1e-5)
        assert torch.allclose(decoding.step(weights, places, joined), decoding.step(weights, places, whole), atol=1e-5)


@pytest.mark.parametrize("lengths", [(3, 9, 1), (1, 1), (40, 2, 40)])
def test_what_prompts_begin_with_is_read_once_and_seen_by_all(lengths: tuple[int, ...]) -> None:
    engine, start = PackedEngine(str(BASE), precision="fp32"), [n % 400 + 9 for n in range(70)]
    prompts = [[*start, *(7 + 3 * n for _ in range(length))] for n, length in enumerate(lengths)]
    prompts.append(list(prompts[0]))
    with torch.inference_mode():
        apart, ends = decoding.read(engine._base, prompts)
        shared, others = decoding.read(engine._base, prompts, Prefixes())
        assert torch.allclose(ends, others, atol=1e-5)
        places = torch.arange(len(prompts)) + 5
        stem = decoding._beginning(engine._base, [tuple(prompt) for prompt in prompts], Prefixes())
        behind, last = decoding.read(engine._base, prompts, Prefixes(), stem)
        assert torch.allclose(ends, last, atol=1e-5)
        assert behind.stem_length == 2 * BLOCK and behind.longest == apart.longest - 2 * BLOCK, "kept once, not by row"
        for _ in range(2):
            first, *others = (decoding.step(engine._base, places, cache) for cache in (apart, shared, behind))
            assert all(torch.allclose(first, other, atol=1e-5) for other in others)


def test_a_long_beginning_changes_nothing_of_what_is_written_then_or_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that end, wait, and join others behind a beginning that is kept once; also of prompts that are all alike."""
    engine, exact = (kind(str(BASE), **{"precision": "fp32"}) for kind in (PackedEngine, Engine))
    start = user("Add what follows: 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14. " * 3)
    batch = [replace(each, turns=(start, *each.turns)) for each in requests(temperature=1.0)]
    monkeypatch.setattr(packed_need, "SLOTS", 3)
    for module in (decoding, prefixes):  # short, so that what was written is kept, too
        monkeypatch.setattr(module, "BLOCK", 2)
    alike = [replace(batch[0], sampling=replace(each.sampling, seed=7 * n)) for n, each in enumerate(batch)]
    for some in (batch, alike):
        answers = engine.generate(some)
        same(answers, exact.generate(some))
        following = [
            replace(each, turns=(*each.turns, Turn(role="assistant", content=answer.text), user("And then?")))
            for each, answer in zip(some, answers, strict=True)
        ]
        same(engine.generate(following), exact.generate(following))


def test_a_beginning_is_shared_in_whole_blocks() -> None:
    long, short = list(range(BLOCK)), list(range(BLOCK - 1))
    assert decoding._common([(*long, 1), (*long, 2, 3)]) == BLOCK
    assert decoding._common([(*long, 1), (*long, 1, 3)]) == BLOCK, "each has a token to read"
    assert decoding._common([(*short, 900), (*short, 901)]) == 0
    assert decoding._common([(*long, 1)]) == 0
    assert decoding._common([tuple(long), (*long, 5)]) == 0


@pytest.mark.parametrize("budget", [1 << 30, 1 << 18, 0])
def test_later_turns_go_on_from_what_was_read_and_written(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is kept, each turn is what an engine that keeps nothing writes; with room, only what is new is read."""
    plain, engine = (PackedEngine(str(BASE), precision="fp32") for _ in range(2))
    engine._prefixes = Prefixes(budget)
    monkeypatch.setattr(plain, "_decode", partial(_forgetting, plain))
    for each in (plain, engine):
        each.load_adapter(TRAINED, adapter(BASE))
    conversations = [(user(f"{text} " + "Explain each step that you take. " * 4),) for text in TEXTS]
    for turn in range(3):
        for name in ("", TRAINED):
            asked = [TurnRequest(turns, Sampling(max_tokens=24, seed=turn)) for turns in conversations]
            answers = engine.generate(asked, name)
            same(answers, plain.generate(asked, name))
        conversations = [
            (*turns, Turn(role="assistant", content=answer.text), user("And then?"))
            for turns, answer in zip(conversations, answers, strict=True)
        ]
    assert engine._prefixes._size <= budget
    if budget == 1 << 30:
        chains = [engine._prefixes.longest(answer.prompt) for answer in answers]
        assert all(len(answer.prompt) - BLOCK * len(c) <= BLOCK for answer, c in zip(answers, chains, strict=True))


def _forgetting(engine: PackedEngine, rows: Sequence[Row], name: str) -> None:
    decoding.write(engine._under(name), rows, engine._chat.stops)


@given(st.lists(st.tuples(st.sampled_from(["", "a"]), st.lists(st.integers(0, 1), max_size=5)), max_size=12))
def test_kept_blocks_are_those_of_the_text_and_the_adapter(texts: list[tuple[str, list[int]]]) -> None:
    """Of every text that was kept the whole blocks are there, with its own numbers, until the budget is spent."""
    prefixes = Prefixes(40 * BLOCK * 4)
    for number, (prefixes.adapter, blocks) in enumerate(texts):
        ids = [token for token in blocks for _ in range(BLOCK)]
        layer = torch.tensor(ids, dtype=torch.float32).view(1, -1, 1) + (100.0 if prefixes.adapter else 0.0)
        prefixes.keep(ids, [layer])
        chain = prefixes.longest([*ids, 7])
        assert len(chain) == len(blocks), number
        for block, (tokens,) in zip(joined(chain), [layer] if chain else [], strict=True):
            assert torch.equal(block[0, 0], tokens[: len(blocks) * BLOCK])
        assert prefixes._size <= 40 * BLOCK * 4


def test_what_is_no_pair_is_refused() -> None:
    engine = PackedEngine(str(BASE), precision="int8")
    pairs = tensors(BASE)
    name = next(iter(pairs))
    settings = lora_settings(8, 16)
    bad = {
        "It holds more than pairs": {**pairs, "base_model.model.model.norm.weight": torch.ones(3)},
        "size": {**pairs, name: pairs[name][:, :-1]},
    }
    for weights in bad.values():
        with pytest.raises(OperationError, match="does not fit this model") as caught:
            engine.load_adapter("bad", pack(Adapter(settings, weights, {})))
        assert str(caught.value).endswith("Name the model that it was trained on.") and "\n" not in str(caught.value)
    assert not engine.has_adapter("bad")


def test_only_what_is_computed_there_is_packed(tmp_path: Path) -> None:
    assert packed(BASE, "cpu", "", "int8")
    assert not packed(BASE, "cpu", "", "auto"), "a small model is a function of its weights"
    config = json.loads((BASE / "config.json").read_bytes())
    for odd in ({"hidden_act": "gelu"}, {"use_sliding_window": True}, {"architectures": ["GPT2LMHeadModel"]}):
        (tmp_path / "config.json").write_text(json.dumps(config | odd))
        with pytest.raises(ConfigError, match=r"not computed in int8.*precision at auto"):
            packed(tmp_path, "cpu", "", "int8")
    with pytest.raises(ConfigError, match="on cuda"):
        packed(BASE, "cuda", "", "int8")
    assert trained_precision("cpu", "int8") == "fp32"


async def test_the_provider_computes_in_the_format_that_is_asked_for(tmp_path: Path) -> None:
    targets = {}
    for precision in ("auto", "int8"):
        model = Transformers(BASE, MemoryArtifacts(), name="base", precision=precision)
        targets[precision] = model._worker._target
        await model.close()
    assert targets == {"auto": ENGINE, "int8": PACKED}


@given(
    st.integers(1, 3000),
    st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_a_token_drawn_by_blocks_is_the_one_at_that_height(size: int, draws: list[float], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    chances = torch.rand(len(draws), size, generator=generator, dtype=torch.float64) ** 8
    heights = torch.tensor(draws, dtype=torch.float64)
    tokens, heap = sampling._uncut_by_blocks(chances, heights), chances.cumsum(-1)
    level = heights * heap[:, -1]
    above, below = heap.gather(-1, tokens[:, None])[:, 0], pad(heap, (1, 0)).gather(-1, tokens[:, None])[:, 0]
    slack = 1e-9 * heap[:, -1]
    assert bool((above >= level - slack).all()), "no token beyond the height"
    assert bool((below <= level + slack).all())


def finished(
    engine: PackedEngine, asked: dict[int, TurnRequest], joining: dict[int, TurnRequest]
) -> dict[int, Written]:
    """``joining`` come one by one, each with a call; all are written to their ends."""
    answers = engine.advance(asked)
    still, coming = {*asked} - {*answers}, dict(joining)
    while still or coming:
        fresh = dict([coming.popitem()]) if coming else {}
        ended = engine.advance(fresh, still)
        answers |= ended
        still = (still | {*fresh}) - {*ended}
    return answers


@pytest.mark.parametrize(("slots", "drawn", "first"), [(128, 1.0, (0, 1, 2, 6)), (128, 0.0, (0,)), (2, 1.0, (6, 0))])
def test_turns_that_join_others_are_written_as_alone(
    slots: int, drawn: float, first: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever they come, of whatever length, behind a common beginning or another one; and then the next turns."""
    monkeypatch.setattr(packed_need, "SLOTS", slots)
    engine, exact = PackedEngine(str(BASE), precision="fp32"), Engine(str(BASE))
    long = Turn(role="system", content="Count to a hundred, and say each number twice, once as a word. " * 6)
    plain = requests(temperature=drawn)
    behind = [replace(each, turns=(long, *each.turns)) for each in requests(temperature=drawn)]
    for _ in range(2):
        batch = [*behind, *plain]
        numbered = dict(enumerate(batch))
        answers = finished(engine, {number: numbered.pop(number) for number in first}, numbered)
        same([answers[number] for number in range(len(batch))], exact.generate(batch))
        plain, behind = (
            [
                replace(each, turns=(*each.turns, Turn(role="assistant", content=answer.text), user("And then?")))
                for each, answer in zip(some, map(answers.__getitem__, numbers), strict=True)
            ]
            for some, numbers in ((plain, range(len(behind), len(batch))), (behind, range(len(behind))))
        )


def test_what_few_and_those_who_join_them_begin_with_is_kept_once_from_then_on() -> None:
    engine = PackedEngine(str(BASE), precision="fp32")
    weights, start = engine._base, [n % 400 + 9 for n in range(2 * BLOCK + 3)]
    prompts, places = [[*start, 7], [*start, 8, 9]], torch.tensor([5, 6])
    with torch.inference_mode():
        apart, shared = (decoding.read(weights, prompts)[0] for _ in range(2))
        stem = shared.share(2 * BLOCK)
        assert decoding.length_of(stem) == shared.stem_length == 2 * BLOCK and shared.longest == 5
        for _ in range(3):
            states, others = (decoding.step(weights, places, cache) for cache in (apart, shared))
            assert torch.allclose(states, others, atol=1e-5)


def test_what_a_worker_has_lost_is_told_and_what_nobody_waits_for_is_forgotten() -> None:
    engine = PackedEngine(str(BASE), precision="fp32")
    batch = dict(enumerate(requests()))
    assert len(engine.advance(batch)) < len(batch)
    with pytest.raises(TransientError, match="has lost turns"):
        engine.advance({}, (99,))
    fresh = {100: requests()[3]}
    answers = finished(engine, fresh, {})
    assert {*answers} == {100} and not engine._open.turns


def test_texts_behind_beginnings_of_their_own_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many fit into a pass; what is kept of each is what is kept of it alone."""
    engine, rng = PackedEngine(str(BASE), precision="fp32"), random.Random(3)
    texts = [[rng.randrange(9, 400) for _ in range(length)] for length in (40, 97, 70, 33, 131)]
    with torch.inference_mode():
        exact, ends = decoding.read(engine._base, [[*text, 7, 8, 9] for text in texts])
        for most in (1, 64, 200, 1 << 11):
            monkeypatch.setattr(decoding, "READ", most)
            prefixes, passes = Prefixes(), list[int]()
            decoding.read(engine._base, texts[:4], prefixes)
            monkeypatch.setattr(decoding, "_read", partial(_counted, decoding._read, passes))
            cache, last = decoding.read(engine._base, [[*text, 7, 8, 9] for text in texts], prefixes)
            monkeypatch.undo()
            assert torch.allclose(last, ends, atol=1e-5)
            assert all(
                torch.allclose(one, other, atol=1e-5)
                for row in range(len(texts))
                for one, other in zip(cache.row(row), exact.row(row), strict=True)
            )
            assert len(passes) == {1: 5, 1 << 11: 1}.get(most, len(passes)) and sum(passes) == 5


def _counted(read: Any, passes: list[int], weights: Any, parts: Any) -> Any:
    passes.append(sum(len(texts) for _, texts in parts))
    return read(weights, parts)
