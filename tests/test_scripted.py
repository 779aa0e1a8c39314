"""The scripted model keeps the port's contract, plays both roles, and learns what it is rewarded for."""

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.errors import ConfigError, OperationError
from agent0.events.values import Artifact, Turn
from agent0.infra.models.scripted import END, ROLES, Scripted, ScriptedTrainer, decode, encode, skill_of
from agent0.ports.models import GenerateRequest, Model, Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render, styles
from agent0.rollout.teacher import read_proposal, request_turns
from agent0.rollout.trajectories import assemble
from agent0.settings import ActorConfig
from agent0.tasks.families import families
from tests.conformance_model import ModelConformance, ask
from tests.memory import MemoryArtifacts
from tests.world import own


@pytest.fixture
def artifacts() -> MemoryArtifacts:
    return MemoryArtifacts()


class TestScripted(ModelConformance):
    control_ids = frozenset({*ROLES.values(), END})

    @pytest.fixture
    def model(self, artifacts: MemoryArtifacts) -> Model:
        return Scripted(artifacts)


@settings(max_examples=25, deadline=None)
@given(st.text())
def test_tokens_are_text_and_no_text_is_a_control_token(text: str) -> None:
    ids = encode(text)
    assert decode(ids) == text
    assert all(i >= 256 for i in ids)


def _names_families(family: str, style: str) -> bool:
    entry = families(long=None)[family]
    return "{family}" in prompt(style, entry.domain, "teacher", long=entry.long).text


async def _ask_teacher(model: Model, family: str, level: int, seed: int, style: str = "compact") -> str:
    entry = families(long=None)[family]
    turns = request_turns(prompt(style, entry.domain, "teacher", long=entry.long), entry.domain, family, level)
    return (await model.generate(GenerateRequest(turns, Sampling(seed=seed)))).text


NAMED = [(family, style) for family in sorted(own()) for style in styles() if _names_families(family, style)]
"""Families, and styles whose request for a task names one: others ask for a topic, which is for language models."""


@pytest.mark.parametrize(("family", "style"), NAMED)
async def test_as_teacher_it_mostly_asks_for_what_was_wanted(
    artifacts: MemoryArtifacts, family: str, style: str
) -> None:
    entry = families(long=None)[family]
    model, levels = Scripted(artifacts), []
    for seed in range(40):
        proposal, problem = read_proposal(await _ask_teacher(model, family, 2, seed, style), entry.domain, family, 2)
        assert (proposal is None) == bool(problem)
        if proposal:
            assert proposal.family == family
            levels.append(proposal.level)
    assert len(levels) > 25
    assert levels.count(2) > len(levels) / 2


async def test_as_teacher_it_also_errs_and_repeats(artifacts: MemoryArtifacts) -> None:
    texts = [await _ask_teacher(Scripted(artifacts), "arithmetic", 3, seed) for seed in range(200)]
    readable = [text for text in texts if read_proposal(text, "math", "arithmetic", 3)[0]]
    assert 100 < len(readable) < len(texts)
    assert len(set(readable)) < len(readable)


@pytest.mark.parametrize("style", styles())
@pytest.mark.parametrize("family", sorted(own()))
async def test_as_student_it_calls_or_guesses(artifacts: MemoryArtifacts, family: str, style: str) -> None:
    entry, rng = families(long=None)[family], random.Random(1)
    question = entry.render(entry.sample(2, rng), rng)
    turns = render(prompt(style, entry.domain, "student", long=entry.long), {"question": question})
    model = Scripted(artifacts)
    seen = [parse_turn((await model.generate(GenerateRequest(turns, Sampling(seed=n)))).text) for n in range(40)]
    assert all(turn.calls or turn.answer for turn in seen)
    assert 0 < sum(bool(turn.calls) for turn in seen) < len(seen)


async def _tool_share(model: Model, adapter: Artifact | None) -> float:
    requests = [
        GenerateRequest(ask(f"What is {n}+3?", seed=n).turns, Sampling(seed=n), adapter=adapter) for n in range(200)
    ]
    turns = await asyncio.gather(*(model.generate(r) for r in requests))
    return sum(bool(parse_turn(t.text).calls) for t in turns) / len(turns)


async def _attempt(model: Model, question: str, seed: int) -> Sample:
    written = await model.generate(ask(question, seed=seed, max_tokens=200))
    trajectory, problem = assemble([written])
    assert trajectory, problem
    return Sample(trajectory, 1.0 if parse_turn(written.text).calls else -1.0)


async def test_reward_for_calling_tools_makes_it_call_them(artifacts: MemoryArtifacts) -> None:
    model, trainer = Scripted(artifacts), ScriptedTrainer(artifacts)
    samples = tuple([await _attempt(model, f"What is {n}+4?", n) for n in range(30)])
    job = TrainJob(samples, (), None, 1, {})
    first, again = await trainer.train(job), await trainer.train(job)
    assert first.adapter == again.adapter
    second = await trainer.train(TrainJob(samples, (), first.adapter, 2, {}))
    shares = [await _tool_share(model, adapter) for adapter in (None, first.adapter, second.adapter)]
    assert shares[0] < 0.4 < shares[1] < shares[2]
    blamed = tuple(Sample(s.trajectory, -s.advantage) for s in samples)
    unlearned = await trainer.train(TrainJob(blamed, (), second.adapter, 3, {}))
    assert skill_of(unlearned.adapter, artifacts) == 1


async def test_shuffled_rewards_teach_it_nothing_in_the_mean(artifacts: MemoryArtifacts) -> None:
    model, trainer, rng = Scripted(artifacts), ScriptedTrainer(artifacts), random.Random(0)
    samples = [await _attempt(model, f"What is {n}+5?", n) for n in range(40)]
    lessons = []
    for seed in range(40):
        rewards = [s.advantage for s in samples]
        rng.shuffle(rewards)
        given_at_random = tuple(Sample(s.trajectory, r) for s, r in zip(samples, rewards, strict=True))
        lessons.append((await trainer.train(TrainJob(given_at_random, (), None, seed, {}))).metrics["lesson"])
    assert abs(sum(lessons)) < 20


async def test_it_answers_what_its_tool_printed(artifacts: MemoryArtifacts) -> None:
    turns = (*ask("What is 12+30?").turns, Turn(role="assistant", content="x"), Turn(role="tool", content="x = [42]"))
    written = await Scripted(artifacts).generate(GenerateRequest(turns))
    assert parse_turn(written.text).answer == "42"


async def test_foreign_adapters_and_variants_are_refused(artifacts: MemoryArtifacts) -> None:
    foreign = artifacts.put(b"PK")
    with pytest.raises(OperationError, match="not the scripted"):
        await Scripted(artifacts).generate(GenerateRequest(ask().turns, adapter=foreign))
    with pytest.raises(ConfigError, match="no variant"):
        Scripted(artifacts, ActorConfig(model="gpt"))
    assert (await Scripted(artifacts, ActorConfig(model="latency=0.01")).generate(ask())).usage.wall_s >= 0.01


LONG = [entry.name for entry in families(long=True).values()]


def _long_question(family: str, seed: int = 7) -> tuple[str, tuple[str, ...]]:
    entry, rng = families(long=True)[family], random.Random(seed)
    params = entry.sample(2, rng)
    assert entry.script
    return entry.render(params, rng), entry.script(params)


async def _played(model: Model, family: str, style: str, seed: int, adapter: Artifact | None = None) -> list[str]:
    """What it writes turn by turn; its tools answer nothing of use."""
    question, script = _long_question(family)
    words = prompt(style, families(long=True)[family].domain, "student", long=True)
    turns = [*render(words, {"question": question, "domain": "math"})]
    said: list[str] = []
    while len(said) < len(script) and not (said and parse_turn(said[-1]).answer):
        sampling = Sampling(seed=1000 * seed + len(said), max_tokens=96)
        said.append((await model.generate(GenerateRequest(tuple(turns), sampling, adapter=adapter))).text)
        turns += [Turn(role="assistant", content=said[-1]), Turn(role="tool", content="7")]
    return said


def _skilled(artifacts: MemoryArtifacts, skill: int) -> Artifact:
    return artifacts.put(json.dumps({"skill": skill}).encode())


@pytest.mark.parametrize("style", styles())
@pytest.mark.parametrize("family", LONG)
async def test_a_long_task_is_played_turn_by_turn(artifacts: MemoryArtifacts, family: str, style: str) -> None:
    """A turn fits into the tokens that a turn has by default, wherever examples stand before the question."""
    model, perfect = Scripted(artifacts), _skilled(artifacts, 40)
    _, script = _long_question(family)
    assert await _played(model, family, style, 0, perfect) == list(script)


@pytest.mark.parametrize("family", LONG)
async def test_slips_are_in_what_is_submitted_and_rarer_with_skill(artifacts: MemoryArtifacts, family: str) -> None:
    model, slips = Scripted(artifacts), []
    _, script = _long_question(family)
    for skill in (0, 2, 40):
        runs = [await _played(model, family, "compact", seed, _skilled(artifacts, skill)) for seed in range(24)]
        assert runs[0] == await _played(model, family, "compact", 0, _skilled(artifacts, skill))
        tried = [run for run in runs if len(run) > 1]
        assert len(tried) > 8
        slips.append(sum(a != b for run in tried for a, b in zip(run, script, strict=True)) / len(tried))
        for run in tried:
            for said, meant in zip(run, script, strict=True):
                assert _without_submissions(said) == _without_submissions(meant)
    assert slips[0] > slips[1] > slips[2] == 0


def _without_submissions(text: str) -> list[tuple[str, object]]:
    return [(c.name, c.arguments) for c in parse_turn(text).calls if c.name != "submit_answer"]


async def test_a_beginner_often_guesses_the_answer_of_a_long_task(artifacts: MemoryArtifacts) -> None:
    model = Scripted(artifacts)
    shares = []
    for skill in (0, 3):
        runs = [await _played(model, "chain", "compact", seed, _skilled(artifacts, skill)) for seed in range(60)]
        shares.append(sum(len(run) == 1 for run in runs) / len(runs))
    assert 0.2 < shares[0] < 0.6 and shares[1] < shares[0]


async def test_forced_to_begin_with_a_call_it_begins_the_script_with_one(artifacts: MemoryArtifacts) -> None:
    question, script = _long_question("ledger")
    request = GenerateRequest(ask(question).turns, Sampling(max_tokens=96), prefill="<tool_call>")
    written = await Scripted(artifacts).generate(request)
    assert written.text == script[0][script[0].find("<tool_call>") :]
