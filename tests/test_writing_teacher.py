"""A teacher that is a model and writes a ladder's tasks itself: what it is asked, what its text is worth, what it is
trained on and how, and that its variants differ in nothing else."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError, OperationError
from agent0.events.checkpoints import CheckpointTrained, TeacherJudged, TrainingRequested
from agent0.events.runs import IterationMeasured
from agent0.events.tasks import TaskRequested
from agent0.events.values import Task, Trajectory
from agent0.experiments.ablation_runs import requested_compute
from agent0.experiments.ablation_study import study_of_file
from agent0.infra.engine.chat_template import chat_of
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.transformers import packaged
from agent0.infra.training.launch.recipe import Recipe, schedule
from agent0.ports.models import GenerateRequest, Generation, Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.rewards import receipt
from agent0.rewards.features import RewardContext, compute_features
from agent0.rollout.prompts import prompt
from agent0.rollout.teacher import exploring_bias, read_proposal, request_turns
from agent0.run.lifecycle import RunState
from agent0.run.monitors import guards
from agent0.run.monitors.iteration_metrics import measure
from agent0.settings import ActorConfig, GuardConfig, RunConfig, TeacherConfig
from agent0.state.run_state import TaskState
from agent0.tasks.curriculum.sampler import ANY_LEVEL, allocate
from agent0.training.gate import permuted
from agent0.training.objectives.policy_gradient import entropy_bonus
from agent0.training.scored_trajectory import ScoredTrajectory
from agent0.training.selection import select
from tests.play import play
from tests.test_climb import ByRole, little
from tests.world import ports, started

OURS = load("climb-teacher", {}, {}).run
FOLDER = packaged("climb_teacher")
ASKED = request_turns(prompt("compact", "math", "teacher"), "math", "reversal", ANY_LEVEL)


# --- what it is asked, and how its text is read


def test_requests_name_a_family_and_no_level() -> None:
    state = RunState(run="r", seq=1, config=OURS, config_sha="", iteration=3)
    assert allocate(state) == [("math", "reversal", ANY_LEVEL)] * OURS.tasks
    two = OURS.curriculum.model_copy(update={"families": ("reversal", "digit_sums")})
    both = replace(state, config=OURS.model_copy(update={"curriculum": two}))
    assert Counter(name for _, name, _ in allocate(both)) == {"reversal": 16, "digit_sums": 16}
    assert ASKED[-1].content == "Ask math reversal any"


@pytest.mark.parametrize(
    ("text", "level"),
    [("Reverse 4821.", 4), ("Mirror 0000000.", 7), ("Reverse .", None), ("Reverse 12 34.", None), ("482", None)],
)
def test_the_level_is_what_it_wrote(text: str, level: int | None) -> None:
    task, problem = read_proposal(text, "math", "reversal", ANY_LEVEL)
    assert (task.level if task else None, bool(problem)) == (level, level is None)


def test_the_first_requests_of_an_iteration_explore() -> None:
    config = TeacherConfig(explore=0.25, bias=((".", -1.5),))
    assert [slot for slot in range(32) if exploring_bias(config, slot, 32)] == list(range(8))
    assert not exploring_bias(TeacherConfig(bias=((".", -1.5),)), 0, 32)


def test_its_base_writes_short_strings_and_a_bias_against_ending_longer_ones() -> None:
    engine = Engine(str(FOLDER))

    def lengths(bias: tuple[tuple[str, float], ...]) -> list[int]:
        made = engine.generate([TurnRequest(ASKED, Sampling(1.0, 1.0, 44, seed, bias)) for seed in range(60)])
        found = [read_proposal(one.text, "math", "reversal", ANY_LEVEL)[0] for one in made if one.finish == "stop"]
        assert all(math.isfinite(p) for one in made for p in one.logprobs)
        return [task.level for task in found if task]

    plain, longer = lengths(()), lengths(((".", -3.0),))
    assert len(plain) > 54 and max(plain) <= 8
    assert sum(longer) / len(longer) > sum(plain) / len(plain) + 0.5
    with pytest.raises(OperationError, match="no single token"):
        lengths((("reversal 12", 1.0),))


def test_a_bias_leaves_the_rows_beside_it_as_they_are() -> None:
    engine, free = Engine(str(FOLDER)), TurnRequest(ASKED, Sampling(1.0, 1.0, 44, 5))
    biased = TurnRequest(ASKED, Sampling(1.0, 1.0, 44, 6, (("7", 50.0), (".", -50.0))))
    alone, (beside, sevens) = engine.generate([free])[0], engine.generate([free, biased])
    assert beside.ids == alone.ids and set(sevens.text[-20:]) == {"7"}
    assert max(sevens.logprobs[-20:]) > -1e-6, "those of the distribution that was drawn from"


# --- what it earns


def earned(digits: str | None, rate: float | None, reason: str = "") -> float:
    question = f"Reverse {digits}."
    proposal = Task(domain="math", family="reversal", level=1, question=question, canonical=question)
    held = TaskState(0, "math", "reversal", 0, proposal=proposal if digits else None, accepted=not reason)
    run = RunState(run="r", seq=1, config=OURS, config_sha="", tasks={"t": held})
    names = frozenset({"digit_share"})
    facts = {"solve_rate": rate, "accepted": not reason, "reason": reason}
    facts |= compute_features("teacher", names, RewardContext(run, OURS.rewards, held))
    parts, total = receipt("teacher", facts | {"novelty": 1.0, "useful_calls": None}, OURS.rewards.weights)
    assert {part.name for part in parts} == {"variance", "validity", "digit_skew"}
    return total if any(part.value is not None for part in parts) else math.nan


def test_it_earns_for_the_frontier_and_loses_for_one_digit_and_for_no_task() -> None:
    assert [earned("4821", rate) for rate in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0.0, 0.75, 1.0, 0.75, 0.0]
    assert earned("77777777", 0.5) == pytest.approx(0.5) and earned("777777123456", 0.5) == pytest.approx(1.0)
    assert earned("7777771234", 0.5) == pytest.approx(0.9), "six of ten alike"
    assert earned("7777", 0.5) == 1.0, "too short to say"
    assert earned(None, None, "malformed") == earned("12", None, "duplicate") == -0.5
    assert math.isnan(earned("4821", None, "reserved")), "which it cannot know"


# --- what it is trained on


def written(n: int, reward: float | None, iteration: int = 0, author: str = "base") -> ScoredTrajectory:
    path = Trajectory(token_ids=(1, 10 + n), mask=(0, 1), logprobs=(0.0, -1.0))
    return ScoredTrajectory(f"e{iteration}-{n:02}", f"t{n}", author, path, reward, None, iteration=iteration)


def chosen(trajectories: list[ScoredTrajectory], **recipe: Any) -> list[tuple[str, float]]:
    plain = {"objective": "awr", "beta": 0.5, "window": 8, **recipe}
    config = RunConfig.model_validate({"training": {"teacher": plain}})
    found = select("teacher", trajectories, (), author="teacher-3", config=config, seed=1)
    return [(name, sample.weight) for name, sample in zip(found.used, found.samples, strict=True)]


def test_weights_are_those_of_advantage_weighted_regression() -> None:
    """By hand: rewards 0, 0, 0, 1 have mean 1/4 and deviation sqrt(3)/4, so advantages -0.577 and 1.732, and weights
    exp(-1.155) = 0.315 and exp(3.464) = 31.9, cut at 20; their mean is 5.236."""
    found = chosen([written(n, float(n == 3)) for n in range(4)])
    assert [weight for _, weight in found] == pytest.approx([0.0602] * 3 + [3.8194], abs=2e-3)


def test_each_iteration_is_its_own_baseline_whoever_wrote_it() -> None:
    early = [written(n, reward) for n, reward in enumerate((0.0, 1.0))]
    late = [written(n, reward, 1, "teacher-0") for n, reward in enumerate((5.0, 6.0))]
    found = dict(chosen([*early, *late, written(9, None, 1), written(8, 3.0, 2)]))
    assert found["e0-00"] == pytest.approx(found["e1-00"]) and found["e0-01"] == pytest.approx(found["e1-01"])
    assert found.keys() == {"e0-00", "e0-01", "e1-00", "e1-01"}, "nothing unscored, no group without contrast"
    assert not chosen([*early, *late], objective="grpo", window=1), "what others wrote is of no use to a gradient"


def test_what_was_asked_may_be_the_baseline() -> None:
    """Two easy requests and two hard ones: what answers the better of each is worth alike."""
    found = [written(n, reward) for n, reward in enumerate((0.0, 0.2, 0.8, 1.0))]
    prompts = [
        one.trajectory.model_copy(update={"token_ids": (n // 2, 9)}) for n, one in enumerate(found) if one.trajectory
    ]
    asked = [replace(one, trajectory=path) for one, path in zip(found, prompts, strict=True)]
    alike = dict(chosen(asked, baseline="request"))
    assert alike["e0-00"] == pytest.approx(alike["e0-02"], rel=1e-3) and alike["e0-01"] > 10 * alike["e0-00"]
    apart = dict(chosen(asked))
    assert apart["e0-02"] > 2 * apart["e0-01"]


def test_permuted_rewards_stay_in_their_iteration_and_are_the_same_in_every_window() -> None:
    rng = random.Random(2)
    held = [written(n, rng.random() if n % 5 else None, iteration) for iteration in (0, 1) for n in range(40)]
    whole, part = permuted(held, 3), permuted(held[40:], 3)
    assert whole[40:] == part and whole != permuted(held, 4)
    for place in (slice(0, 40), slice(40, 80)):
        assert Counter(one.reward for one in whole[place]) == Counter(one.reward for one in held[place])
    assert sum(one.reward == other.reward for one, other in zip(whole, held, strict=True)) < 30
    assert [one.reward is None for one in whole] == [one.reward is None for one in held]


def test_minibatches_are_drawn_by_weight_and_then_count_alike() -> None:
    path = Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, -1.0))
    named = [path.model_copy(update={"token_ids": (1, n)}) for n in (5, 6, 7)]
    held = tuple(Sample(one, weight=weight) for one, weight in zip(named, (0.0, 1.0, 3.0), strict=True))
    recipe = Recipe(objective="awr", steps=50, minibatch=32)
    batches = [batch for _, batch in schedule(TrainJob(held, (), None, 1, {}), recipe)]
    drawn = Counter(sample.trajectory.token_ids[1] for batch in batches for sample in batch)
    assert drawn[5] == 0 and drawn[7] / drawn[6] == pytest.approx(3.0, rel=0.25)
    assert {sample.weight for batch in batches for sample in batch} == {1.0}


def test_the_bonus_is_the_entropy_among_the_named_tokens() -> None:
    from agent0.infra.engine.inference import load as load_model
    from agent0.infra.engine.qwen2_functional import chances, parts_of, shape_of, weights_of

    model, _ = load_model(str(FOLDER), "cpu", "")
    chat, shape, parts = chat_of(FOLDER), shape_of(model), parts_of(model)
    assert shape and parts
    digits = torch.tensor([chat.token_of(one) for one in "0123456789"])
    ids = torch.tensor([[*chat.prompt(ASKED), *chat.written("Reverse 4821.")]])
    mask = torch.zeros_like(ids)
    mask[:, -6:] = 1
    with torch.no_grad():
        _, found = chances(weights_of(shape, *parts), ids, torch.ones_like(ids), mask, among=digits)
        logits = model(input_ids=ids).logits[0, :-1][:, digits]
    assert found is not None
    chance = torch.softmax(logits, -1)
    expected = torch.cat([torch.zeros(1), -(chance * chance.log()).sum(-1)]) * mask[0]
    assert torch.allclose(found[0], expected, atol=1e-4) and found[0, -2] > 2.0 > math.log(5)
    paid = entropy_bonus(found, mask, torch.tensor([2.0]))
    assert float(paid) == pytest.approx(2 * float(expected.sum()), rel=1e-4)


# --- the guard


def texts(*digits: str, rate: float = 0.5, config: RunConfig = OURS) -> dict[str, float]:
    tasks = {}
    for n, one in enumerate(digits):
        question = f"Reverse {one}."
        held = Task(domain="math", family="reversal", level=len(one), question=question, canonical=question)
        tasks[f"t{n}"] = TaskState(n, "math", "reversal", 0, True, held, accepted=True, solve_rate=rate, text=question)
    tasks["bad"] = TaskState(99, "math", "reversal", 0, True, None, "no task", rejected=True, text="Reverse")
    return measure(RunState(run="r", seq=1, config=config, config_sha="", tasks=tasks))


def test_an_iteration_of_its_text_in_numbers() -> None:
    found = texts("0123456789", "01234", "01234")
    assert found["written_level"] == pytest.approx(20 / 3, abs=1e-6) and found["readable"] == 0.75
    assert found["different_texts"] == 0.75 and found["half_solved"] == 1.0 and found["learnable"] == 1.0
    bits = 15 / 20 * math.log2(20 / 3) + 5 / 20 * math.log2(20)
    assert found["digit_entropy"] == pytest.approx(bits, abs=1e-5)
    other = OURS.model_copy(update={"curriculum": OURS.curriculum.model_copy(update={"kind": "uniform"})})
    assert not {"digit_entropy", "written_level"} & texts("0123456789", config=other).keys(), "it was asked for these"


def test_an_alarm_stands_where_text_collapses_onto_few_digits_and_pays() -> None:
    healthy = texts("0123456789", "9876543210", rate=0.75)
    poor, rich = (texts("2225154777555922222277", "77755522", rate=rate) for rate in (1.0, 0.5))
    watch, plan = guards()["skew"], GuardConfig()
    assert watch([healthy, healthy, rich], plan) and not watch([healthy, healthy, healthy], plan)
    assert not watch([healthy, healthy, poor], plan), "it is not paid: it will go by itself"
    assert not watch([rich, rich], plan), "it was no better at first"
    assert not watch([healthy, {}], plan)


# --- settings


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"training.teacher.objective": "grpo"}, "steps has no effect"),
        ({"training.teacher.objective": "grpo", "training.teacher.steps": "0"}, "window does not fit"),
        ({"training.student.window": "5"}, "window does not fit"),
        ({"training.student.gate": "odd"}, "run.training.student.gate"),
        ({"training.student.baseline": "request"}, "inside their task"),
        ({"teacher.provider": "sampler", "training.teacher.enabled": "false"}, "explore has no effect"),
        (
            {"teacher.provider": "sampler", "training.teacher.enabled": "false", "teacher.explore": "0"},
            "kind = teacher does not fit",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_name(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_names(load("climb-teacher", {f"run.{key}": value for key, value in settings.items()}, {}).run)


def test_variants_ask_for_equal_attempts_and_steps() -> None:
    study = study_of_file((Path(__file__).parents[1] / "studies" / "teacher.toml").read_text(), "teacher.toml")
    plans = {
        one.name: load("climb-teacher", {f"run.{k}": v for k, v in one.settings.items()}, {}).run
        for one in study.variants
    }
    for plan in plans.values():
        assert plan.training.student == OURS.training.student and plan.evaluation == OURS.evaluation
    assert {tuple(requested_compute(plan).values()) for plan in plans.values()} == {(60, 32, 4, 7680)}
    trained = {name for name, plan in plans.items() if plan.training.teacher.enabled}
    assert trained == {"trained", "permuted", "permuted-tasks"} and len(study.seeds) == 5
    assert OURS.iterations * OURS.training.teacher.steps >= 200


# --- the loop


class Writer:
    """A teacher that writes random strings of digits, some of them no task."""

    name = "writer"

    async def generate(self, request: GenerateRequest) -> Generation:
        rng = random.Random(request.sampling.seed)
        text = f"Reverse {rng.randrange(10**5, 10**9)}." if rng.random() < 0.9 else "Reverse"
        return Generation(text, token_ids=(5, 6), logprobs=(-1.0, -1.0), prompt_ids=(1,), model=self.name)


async def test_a_teacher_is_trained_each_iteration_and_its_student_each_fourth() -> None:
    plain = little().model_dump() | {"iterations": 8, "tasks": 6, "attempts": 2}
    plain["curriculum"]["kind"] = "teacher"
    plain["training"]["student"] |= {"every": 4, "window": 4}
    plain["training"]["teacher"] = {"objective": "awr", "beta": 0.5, "window": 3, "steps": 2, "minibatch": 4}
    plain["rewards"]["weights"] = {"variance": 1.0, "novelty": 0.3}
    held = ports()
    held["models"] = ByRole(held["models"].open(ActorConfig()), Writer())
    recorded = await play(started(RunConfig.model_validate(plain)), held)
    events = [one.event for one in recorded]
    assert {e.level for e in events if isinstance(e, TaskRequested)} == {ANY_LEVEL}
    wanted = [e for e in events if isinstance(e, TrainingRequested)]
    assert [e.iteration for e in wanted if e.role == "student"] == [3, 7]
    assert [e.iteration for e in wanted if e.role == "teacher"] == list(range(8))
    begun = {e.iteration: e.after for e in wanted if e.role == "teacher"}
    assert begun[2] == begun[0] < begun[3] < begun[4], "three iterations, its own among them"
    assert next(e.after for e in wanted if e.role == "student" and e.iteration == 7) == begun[6]
    made = [e for e in events if isinstance(e, CheckpointTrained) and e.role == "teacher" and e.adapter]
    assert made and max(e.samples for e in made) > 6, "of more than one iteration"
    judged = [e for e in events if isinstance(e, TeacherJudged)]
    assert {e.checkpoint for e in judged} <= {e.checkpoint for e in made} and judged
    measured = [e.measures for e in events if isinstance(e, IterationMeasured)]
    assert len(measured) == 8 and all(5 < one["written_level"] < 10 for one in measured)
