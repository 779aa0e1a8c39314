"""Memory and disk are weighed before a run starts by the formula of what it will do, not by the size of files alone."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.validate import requirements
from agent0.assembly.validate.requirements import REQUIREMENTS
from agent0.assembly.validate.room import Check, LocalModel, disk_need, generating, local_models, memory_needs, training
from agent0.config.loading import load
from agent0.infra.engine.formats import packed_need
from agent0.infra.engine.memory_need import Shape, need_to_generate, shape_of
from agent0.settings import Settings, StudentConfig
from benchmarks.memory import QWEN, qwen

GIB = 1 << 30
HALF_A_BILLION = Shape(
    weights=494_032_768, linear=357_826_560, ways=24 * 24_960, layers=24, hidden=896, intermediate=4864, cached=128,
    vocabulary=151_936, plain=False, packable=True, context=32_768,
)  # fmt: skip
"""Qwen2.5-0.5B."""


def weights(folder: Path, name: str) -> Path:
    """A folder with the sizes of a published model; of its weights the header only, and their room."""
    hidden, intermediate, layers, cached, vocabulary, tied = QWEN[name]
    config = {"architectures": ["Qwen2ForCausalLM"], "hidden_size": hidden, "intermediate_size": intermediate}
    config |= {"num_hidden_layers": layers, "num_attention_heads": hidden // 128, "vocab_size": vocabulary}
    config |= {"num_key_value_heads": cached // 128, "max_position_embeddings": 32_768}
    sizes = {"model.embed_tokens.weight": [vocabulary, hidden]} | (
        {} if tied else {"lm_head.weight": [vocabulary, hidden]}
    )
    inner = {"self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [cached, hidden]}
    inner |= {"self_attn.v_proj": [cached, hidden], "self_attn.o_proj": [hidden, hidden]}
    inner |= {"mlp.gate_proj": [intermediate, hidden], "mlp.up_proj": [intermediate, hidden]}
    inner |= {"mlp.down_proj": [hidden, intermediate]}
    sizes |= {f"model.layers.{n}.{key}.weight": size for n in range(layers) for key, size in inner.items()}
    header = json.dumps({key: {"dtype": "BF16", "shape": size, "data_offsets": [0, 0]} for key, size in sizes.items()})
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode())
        file.truncate(2 * qwen(name).weights)
    return folder


def held(home: Path, profile: str, **more: str) -> Settings:
    return load(profile, {"home": str(home), "nats.url": ""} | {k.replace("__", "."): v for k, v in more.items()}, {})


async def memory(settings: Settings) -> list[Check]:
    return [check for check in await REQUIREMENTS["gpu"](settings) if "memory" in check.name]


def card(patch: pytest.MonkeyPatch, *gib: float) -> None:
    async def cards() -> tuple[list[int], str]:
        return [int(size * GIB) for size in gib], "a card"

    patch.setattr(requirements, "_cards", cards)


async def test_a_card_that_holds_the_weights_and_not_the_training_is_too_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (weights(tmp_path / name, f"Qwen2.5-{name}-Instruct") for name in ("1.5B", "7B"))
    fits = held(tmp_path, "3070ti", run__student__model=str(small), run__teacher__model=str(small))
    not_ = held(tmp_path, "3070ti", run__student__model=str(large), run__teacher__model=str(large))
    card(monkeypatch, 8)
    assert [check.state for check in await memory(fits)] == ["ok"]
    (found,) = await memory(not_)
    assert sum(file.stat().st_size for file in large.glob("*.safetensors")) // 4 < 8 * GIB, "files alone would fit"
    assert found.state == "fail" and "generating needs" in found.detail and "training the student needs" in found.detail
    assert "8.0 GiB free" in found.detail and "quantization = 4bit" in found.fix
    card(monkeypatch, 24)
    assert [check.state for check in await memory(not_)] == ["ok"]


async def test_each_device_has_its_own_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = weights(tmp_path / "7B", "Qwen2.5-7B-Instruct")
    here = {"run__student__model": str(large), "run__teacher__model": str(large), "run__student__device": "cuda:1"}
    card(monkeypatch, 24, 8)
    assert [check.state for check in await memory(held(tmp_path, "3070ti", **here))] == ["fail", "ok"]
    on_cpu = here | {"run__student__device": "cpu", "run__teacher__device": "cpu"}
    monkeypatch.setattr(requirements, "_memory", lambda: 16 * GIB)
    assert [(check.name, check.state) for check in await memory(held(tmp_path, "3070ti", **on_cpu))] == [
        ("memory", "fail")
    ]
    monkeypatch.setattr(requirements, "_memory", lambda: 256 * GIB)
    assert [check.state for check in await memory(held(tmp_path, "3070ti", **on_cpu))] == ["ok"]


def test_a_server_of_ours_needs_its_slots_and_not_all_that_wait(tmp_path: Path) -> None:
    """Of a GGUF file: that, and keys and values in half precision."""
    weights(tmp_path / "small-float16", "Qwen2.5-1.5B-Instruct")
    (tmp_path / "small.gguf").write_bytes(bytes(1 << 20))
    shape = shape_of(tmp_path / "small-float16")
    actor = StudentConfig(provider="llamacpp", model=str(tmp_path / "small.gguf"), num_ctx=4096, parallel=4)
    few, many = (
        LocalModel("student", actor, tmp_path / "small-float16", True, None).to_generate(rows) for rows in (1, 500)
    )
    assert few == many and few.weights == 1 << 20
    assert few.activations == 2 * 2 * shape.cached * shape.layers * 4 * 4096
    folder = actor.model_copy(update={"model": str(tmp_path / "small-float16")})
    of_folder = LocalModel("student", folder, tmp_path / "small-float16", True, None).to_generate(1)
    assert (of_folder.weights, of_folder.activations) == (4 * shape.weights, 2 * few.activations)


@given(st.integers(1, 4000), st.integers(1, 20_000), st.integers(1, 20_000))
def test_long_turns_are_written_a_few_at_a_time_where_matrices_are_packed(rows: int, prompt: int, tokens: int) -> None:
    """Keys and values have a bound of their own; a turn that alone is beyond it is written alone."""
    shape = HALF_A_BILLION
    need = packed_need.need_to_generate(shape, rows=rows, prompt=prompt, tokens=tokens, precision="bf16")
    alone = packed_need.need_to_generate(shape, rows=1, prompt=prompt, tokens=tokens, precision="bf16")
    assert need.total <= max(alone.total, 6 * GIB)
    numbers = 2 * shape.cached * shape.layers
    at_once = packed_need.turns_at_once(numbers, prompt + tokens)
    assert at_once == 1 or 4 * numbers * at_once * (prompt + tokens) <= packed_need.KEYS


async def test_what_is_not_done_here_needs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM generates on its own card, and a run whose objective is none trains nothing."""
    large = weights(tmp_path / "7B", "Qwen2.5-7B-Instruct")
    served = held(tmp_path, "vllm", run__student__tokenizer=str(large), run__teacher__tokenizer=str(large))
    monkeypatch.setattr(requirements, "_memory", lambda: GIB)
    assert await memory(served) == [] and local_models(served) == []


def test_the_formula_that_weighs_is_that_of_the_page(tmp_path: Path) -> None:
    """By the files of a model as by its published sizes, which docs/results/memory.md is of."""
    settings = held(tmp_path, "24gb", run__student__model=str(weights(tmp_path / "7B", "Qwen2.5-7B-Instruct")))
    (one,) = [one for one in local_models(settings) if one.role == "student"]
    assert one.shape and one.recipe
    for mine, page in (
        (one.to_generate(8).total, generating(qwen("Qwen2.5-7B-Instruct"), one.actor, 8).total),
        (one.to_train(), training(qwen("Qwen2.5-7B-Instruct"), one.actor, one.recipe).total),
    ):
        assert mine == pytest.approx(page, rel=0.01)


@pytest.mark.parametrize("asked", [{"run__curriculum__long": "0.1"}, {"run__questions__file": "."}])
def test_long_tasks_are_weighed_by_the_turns_that_they_may_take(asked: dict[str, str], tmp_path: Path) -> None:
    named = {
        "run__student__model": str(weights(tmp_path / "7B", "Qwen2.5-7B-Instruct")),
        "run__student__max_turns": "2",
    }
    more = {"run__student__max_turns": "8", "run__student__long_factor": "1"}
    needs = []
    for extra in ({}, {**asked, "run__student__long_factor": "4"}, more):
        settings = held(tmp_path, "24gb", **{**named, **extra})
        (student,) = [model for model in local_models(settings) if model.role == "student"]
        needs.append((student.to_generate(8).total, student.to_train(), disk_need(settings)))
    assert needs[1] == needs[2] and all(long > short for long, short in zip(needs[1], needs[0], strict=True))


def test_what_is_kept_of_earlier_turns_is_weighed(tmp_path: Path) -> None:
    actor, shape = held(tmp_path, "qwen").run.student, replace(qwen("Qwen2.5-1.5B-Instruct"), packable=True)
    few, many = (generating(shape, actor, 64, kept << 20).activations for kept in (0, 1024))
    assert many - few == GIB


def test_a_role_is_weighed_in_the_precision_that_it_is_trained_in(tmp_path: Path) -> None:
    (student,) = [one for one in local_models(held(tmp_path, "tiny")) if one.role == "student"]
    assert student.recipe
    recipe, needs = student.recipe.model_copy(update={"rank": 16}), {}
    for trained in ("", "int8", "fp32"):
        actor = student.actor.model_copy(update={"precision": "int8", "train_precision": trained})
        shape = replace(qwen("Qwen2.5-1.5B-Instruct"), packable=True)
        needs[trained] = training(shape, actor, recipe).weights, generating(shape, actor, 8).weights
    assert needs[""] == needs["int8"]
    assert needs["fp32"][0] > 2 * needs["int8"][0] and needs["fp32"][1] == needs["int8"][1]


async def test_disk_is_asked_for_what_the_run_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = weights(tmp_path / "7B", "Qwen2.5-7B-Instruct")
    settings = held(tmp_path, "24gb", run__student__model=str(large), run__teacher__model=str(large))
    longer = held(
        tmp_path, "24gb", run__student__model=str(large), run__teacher__model=str(large), run__iterations="20"
    )
    adapter = 4 * 32 * shape_of(large).ways
    assert disk_need(longer) - disk_need(settings) > 10 * adapter > 2 * GIB
    continued = settings.run.training.student.model_copy(update={"optimizer_state": "continued"})
    plan = settings.run.training.model_copy(update={"student": continued})
    run = settings.run.model_copy(update={"training": plan})
    further = disk_need(settings.model_copy(update={"run": run})) - disk_need(settings)
    assert further == run.iterations * 2 * adapter, "twice the adapter, of one role"
    usage = shutil.disk_usage(tmp_path)
    for free, state in ((3 * GIB, "fail"), (12 * GIB, "warn"), (40 * GIB, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        found = {check.name: check for check in await REQUIREMENTS["data folder"](settings)}
        assert found["disk space"].state == state, found
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=600 << 20))
    found = {check.name: check for check in await REQUIREMENTS["data folder"](held(tmp_path, "scripted"))}
    assert found["disk space"].state == "warn", "a scripted run writes a few MiB"


def test_a_small_model_is_weighed_as_it_is_computed(tmp_path: Path) -> None:
    shape = Shape(655_000, 565_000, 9_000, 3, 128, 384, 32, 700, plain=True)
    plain = {"rows": 64, "prompt": 140, "tokens": 20, "precision": "fp32", "quantized": False}
    function, through = (need_to_generate(shape, **plain, function=f) for f in (True, False))  # type: ignore[arg-type]
    assert function.weights > through.weights, "its weights are held twice"
    assert function.total < 0.7 * through.total, "prompts are read in parts"


@pytest.mark.parametrize(
    ("profile", "student", "teacher"),
    [("3070ti", "1.5B", "1.5B"), ("24gb", "7B", "3B"), ("80gb", "7B", "7B"), ("vllm", "7B", "7B")],
)
def test_the_pages_say_what_is_asked_for(profile: str, student: str, teacher: str, tmp_path: Path) -> None:
    key = "tokenizer" if profile == "vllm" else "model"
    folders = {name: weights(tmp_path / name, f"Qwen2.5-{name}-Instruct") for name in {student, teacher}}
    own = {f"run__student__{key}": str(folders[student]), f"run__teacher__{key}": str(folders[teacher])}
    text = (Path(__file__).parents[1] / "docs/guide/profiles.md").read_text()
    page = text.partition(f"\n## {profile}\n")[2].partition("\n## ")[0]
    (said,) = re.findall(r"(\d+) GB for a run", page)
    assert math.ceil(disk_need(held(tmp_path, profile, **own)) / 1e9) == int(said)
    if profile != "vllm":
        most = max(memory_needs(held(tmp_path, profile, **own))["cuda"].values())
        assert f"by the formula {most / GIB:.1f} GiB" in page
