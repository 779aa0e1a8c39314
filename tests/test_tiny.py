"""The built-in model: how it is taught, and that what is packaged does what its card says."""

import hashlib
import json
import random
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path

import pytest
import pytest_asyncio

from agent0.events.values import Task, Turn
from agent0.infra.engine.chat_template import chat_of
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.transformers import BASE, FOLDER, tiny
from agent0.infra.tiny.build import build
from agent0.infra.tiny.courses import DEFAULT_MIX, MIXES, Mix, read_mix
from agent0.infra.tiny.examples import TAUGHT, Phase, call_text, climb_example, tool_example, training_examples
from agent0.infra.training import course_replay
from agent0.ports.models import Model, Sampling
from agent0.rollout.prompts import prompt, render
from agent0.tasks.families import families
from agent0.tasks.splits import heldout, split_of, task_of
from tests.conformance_model import ModelConformance
from tests.memory import MemoryArtifacts

MICRO = Mix((Phase(2, 0.01, 0.01, (1, 1, 1, 1), 0.5, 0.2), Phase(1, 0.01, 0.001, (1, 0, 0, 0), 0.5, 0.2)), batch=4)


@pytest.mark.asyncio(loop_scope="class")
class TestTiny(ModelConformance):
    """The conformance suite of the ``Model`` port."""

    control_ids = chat_of(BASE).stops

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def model(cls) -> AsyncIterator[Model]:
        held = tiny(MemoryArtifacts(), max_batch=12)
        yield held
        await held.close()


@pytest.fixture(scope="module")
def base() -> Engine:
    return Engine(str(BASE))


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return heldout("validation", 90, seed=11)


def asked(task: Task, heat: float, prefill: str = "", seed: int = 0) -> TurnRequest:
    turns = render(prompt("compact", task.domain, "student"), {"question": task.question})
    return TurnRequest(turns, Sampling(heat, 1.0, 64, seed=seed), (), prefill)


def test_only_training_tasks_are_taught() -> None:
    phase = Phase(1, 0.1, 0.1, (1, 1, 1, 1), tool=0.5, teacher=0.3)
    kinds = set()
    for turns in islice(training_examples(phase, random.Random(3), tool_example), 400):
        questions = [turn.content for turn in turns if turn.role in ("user", "assistant")]
        found = [t for q in questions for entry in families().values() if (t := task_of(entry, q))]
        assert len(found) == 1 and split_of(found[0].canonical) == "train"
        kinds.add((found[0].family, "".join(turn.role[0] for turn in turns)))
    assert {name for name, _ in kinds} == set(TAUGHT)
    assert {roles for _, roles in kinds} == {"ua", "uata"}


def test_the_same_seed_builds_the_same_model(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = build(tmp_path / "a", seed=1, mix=MICRO, progress=lambda done, total, _: seen.append((done, total)))
    again, other = (build(tmp_path / str(seed), seed=seed, mix=MICRO) for seed in (1, 2))
    assert first.sha256 == again.sha256 != other.sha256
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert first.steps == 3 and 600_000 < first.parameters < 750_000
    written = Engine(str(first.path)).generate(
        [TurnRequest((Turn(role="user", content="Hi"),), Sampling(max_tokens=3))]
    )[0]
    assert len(written.ids) in (1, 2, 3)


def test_a_mix_is_read_from_json(tmp_path: Path) -> None:
    assert read_mix(BASE / "provenance.json") == DEFAULT_MIX
    file = tmp_path / "mix.json"
    file.write_text('{"phases": [{"steps": 1, "speed": 2}]}')
    with pytest.raises((TypeError, KeyError)):
        read_mix(file)


def test_the_package_is_small_and_says_what_it_is() -> None:
    provenance = json.loads((BASE / "provenance.json").read_text(encoding="utf-8"))
    weights = BASE / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == provenance["sha256"]
    assert sum(file.stat().st_size for file in BASE.iterdir()) < 3_000_000
    assert not [file.name for file in BASE.iterdir() if file.suffix in (".bin", ".pt", ".py", ".pkl")]
    card = (BASE / "README.md").read_text(encoding="utf-8")
    assert "guesses more than it should" in card and "*elicits*" in card


def test_it_guesses_unless_it_must_call(base: Engine, tasks: list[Task]) -> None:
    free = base.generate([asked(task, 0.0) for task in tasks])
    assert sum(written.text.startswith("\\boxed{") for written in free) > 0.8 * len(tasks)
    sampled = base.generate([asked(task, 1.0, seed=n) for n, task in enumerate(tasks * 4)])
    calls = sum(written.text.startswith("<tool_call>") for written in sampled) / len(sampled)
    assert 0.03 < calls < 0.5, calls
    known = families()
    forced = base.generate([asked(task, 0.0, "<tool_call>") for task in tasks])
    exact = [w.text == call_text(known[t.family], t.params) for w, t in zip(forced, tasks, strict=True)]
    assert sum(exact) > 0.5 * len(tasks), sum(exact) / len(tasks)


def test_it_reads_what_its_tool_printed(base: Engine, tasks: list[Task]) -> None:
    known, conversations = families(), []
    for task in tasks:
        said = Turn(role="assistant", content=call_text(known[task.family], task.params))
        output = Turn(role="tool", content=known[task.family].solve(task.params))
        conversations.append(TurnRequest((*asked(task, 0.0).turns, said, output), Sampling(0.0, max_tokens=64)))
    answers = [written.text for written in base.generate(conversations)]
    right = [a == f"\\boxed{{{c.turns[-1].content}}}" for a, c in zip(answers, conversations, strict=True)]
    assert sum(right) > 0.75 * len(tasks), sum(right) / len(tasks)


def test_it_asks_what_its_families_can_read(base: Engine) -> None:
    known = families()
    cells = [(known[name], level) for name in TAUGHT for level in (1, 2, 3)]
    wanted = []
    for seed, (entry, level) in enumerate(cells):
        values = {"domain": entry.domain, "family": entry.name, "level": level}
        turns = render(prompt("compact", entry.domain, "teacher"), values)
        wanted.append(TurnRequest(turns, Sampling(1.0, 1.0, 64, seed=seed)))
    written = base.generate(wanted)
    read = [task_of(entry, w.text) is not None for w, (entry, _) in zip(written, cells, strict=True)]
    assert sum(read) > 0.5 * len(cells), [w.text for w in written]


# --- the course that climbs

CLIMB = FOLDER / "climb"
SHORT = Mix((Phase(3, 0.002, 0.001, (1.0,) * 6, tool=0.0, teacher=0.0),), batch=32, course="climb")


def test_only_the_six_lowest_levels_are_taught_and_what_is_kept_was() -> None:
    """And no form of a held-out set; what is kept for replay are conversations that the course makes."""
    kept = [example.turns for example in course_replay.read(CLIMB)]
    phase, rng = MIXES["climb"].phases[0], random.Random(1)
    for turns in (*kept, *islice(training_examples(phase, rng, climb_example), 300)):
        task = task_of(families()["reversal"], turns[0].content)
        assert task and 1 <= task.level <= 6 and split_of(task.canonical) == "train"
        assert turns[1].content == f"\\boxed{{{task.params['digits'][::-1]}}}"
    assert len(kept) == len(set(kept)) == json.loads((CLIMB / "provenance.json").read_text())["kept"] > 900


def test_a_base_that_climbs_is_built_alike_with_what_it_was_taught_beside_it(tmp_path: Path) -> None:
    first, again = (build(tmp_path / name, seed=1, mix=SHORT) for name in "ab")
    other = build(tmp_path / "c", seed=2, mix=SHORT)
    assert first.sha256 == again.sha256 != other.sha256
    assert 300_000 < first.parameters < 400_000
    assert sum(file.stat().st_size for file in CLIMB.iterdir()) < 1_000_000
    taught = [course_replay.read(one.path) for one in (first, again, other)]
    assert taught[0] == taught[1] != taught[2]
    assert json.loads((first.path / "provenance.json").read_text())["stretch"] == 2.0


def test_the_packaged_base_reverses_what_it_was_taught_and_not_what_is_twice_as_long() -> None:
    engine, solved = Engine(str(CLIMB)), dict[int, float]()
    for level in (5, 6, 12):
        tasks = heldout("validation", 30, 3, ("math",), names=("reversal",), levels=(level,))
        written = engine.generate([asked(task, 0.0) for task in tasks])
        right = [w.text == f"\\boxed{{{t.params['digits'][::-1]}}}" for w, t in zip(written, tasks, strict=True)]
        solved[level] = sum(right) / len(right)
    assert min(solved[5], solved[6]) > 0.8 and solved[12] < 0.1, solved
