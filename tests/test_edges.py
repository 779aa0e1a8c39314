"""Edges between one decision and the next, where other tests stay on one side."""

import asyncio
import json
import random
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from scipy import stats

from agent0.errors import ConfigError
from agent0.evaluation.benchmark_scores import tally
from agent0.evaluation.benchmarks import benchmarks, chosen, drawn
from agent0.evaluation.benchmarks.adversarial import huge
from agent0.evaluation.benchmarks.challenges import RULES
from agent0.evaluation.protocol import EvaluationProtocol
from agent0.events.base import record
from agent0.events.benchmarks import ItemScored
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Task, Usage
from agent0.experiments.ablation_results import outcome_of
from agent0.experiments.ablation_runs import chosen_variants, runs_of_study, seeds_of
from agent0.experiments.ablation_study import AblationStudy, Variant
from agent0.experiments.stored_verdicts import differences, stored
from agent0.grading.answer_types import kinds, named
from agent0.grading.math.undone import UNDONE
from agent0.rewards.features import RewardContext, features
from agent0.rewards.red_team.students import printed
from agent0.rewards.red_team.undone import copies
from agent0.settings import RewardConfig, RunConfig, VerificationConfig
from agent0.state.run_state import AttemptState, RunState, TaskState, ToolCallRecord
from agent0.stats.across_seeds import share_below
from agent0.tasks.curriculum.difficulty import grade
from agent0.tasks.families import families
from agent0.tasks.splits import heldout
from agent0.verification.programs import Problem
from agent0.verification.programs.judged import values
from agent0.verification.verdicts import attempts_to_verify
from agent0.verification.verifiers import compare_answer, verifier_for
from tests.world import NOON, KnowingSandbox


@pytest.mark.parametrize(
    ("question", "level"),
    [
        ("Sort [1,2].", 1),
        ("Sort [1,2,3].", 1),
        ("Sort [1,2,3,4].", 2),
        ("Reverse [1,2,3].", 1),
        ("Largest minus smallest of [1,2,3].", 3),
        ("How many different in [1,2].", 3),
        ("Sum of [1,2,3,4,5,6].", 4),
        ("Sum of [1,2,3,4,5,6,7].", 4),
    ],
)
def test_a_list_is_as_hard_as_its_length_and_its_operation(question: str, level: int) -> None:
    entry = families()["lists"]
    params = entry.parse(question)
    assert params and entry.level(params) == level


def test_a_policy_prints_what_it_was_given() -> None:
    assert printed("7") == ToolCallRecord("python", {"code": "print('7')"}, True, "7\n")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} or \boxed{2}", "2"),
        (r"\boxed{1} or \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("none", None),
    ],
)
def test_a_teachers_answer_is_its_last_box(text: str, answer: str | None) -> None:
    held = TaskState(0, "math", "open", 1, text=text)
    context = RewardContext(RunState("r", 1, RunConfig(), "", tasks={"t": held}), RewardConfig(), held)
    assert features("teacher")["teacher_answer"](context) == answer
    assert features("teacher")["well_formed"](context) is False
    assert features("teacher")["teacher_text"](replace(context, task=replace(held, text="x"))) == "x"


def test_a_function_to_write_has_its_inputs_and_ten_seconds() -> None:
    entry = benchmarks()["coding"]
    assert entry.make
    for item in entry.make(10, 3):
        data = json.loads(item.data)
        asked = [values.unpack(call) for call in data["calls"]]
        assert (item.problem, item.gold, data["rule"]) == (Problem("", "", "solve", wall_s=10.0), "solve", "equal")
        assert all(name == "solve" and len(given) == 1 and not named for name, given, named in asked) and asked


def test_a_reply_without_a_program_is_wrong_before_any_sandbox() -> None:
    entry, sandbox = benchmarks()["coding"], KnowingSandbox()
    assert entry.make
    (item,) = entry.make(1, 3)
    found = asyncio.run(entry.judge(item, " \n", None, sandbox))  # type: ignore[arg-type]
    assert (found.correct, found.reason, sandbox.calls) == (False, "no program", [])


def test_what_is_kept_of_long_answers() -> None:
    long = "+".join(["1"] * 150)
    found = asyncio.run(compare_answer("0" * 250 + "150", long, KnowingSandbox(), "value"))  # type: ignore[arg-type]
    assert (found.correct, found.reason, len(found.expected or ""), len(found.got or "")) == (False, UNDONE, 200, 200)


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_samples_of_an_item_are_counted(samples: int) -> None:
    facts = {
        "benchmark": "b",
        "mode": "plain",
        "answer": "1",
        "reason": "",
        "end": "answered",
        "wall_s": 1.0,
    }
    items = [
        ItemScored.model_validate(facts | {"item": f"b/{n}", "sample": sample, "correct": sample == 0})
        for n in range(2)
        for sample in range(samples)
    ]
    found = tally(items)
    assert (found.samples, found.n, found.correct, found.accuracy) == (samples, 2, 2, pytest.approx(1 / samples))
    assert found.wall_s == 2 * samples and found.undecided == 0


def test_a_runs_cost_is_what_its_events_spent_and_how_long_it_took() -> None:
    times = [NOON + timedelta(seconds=seconds) for seconds in (0, 5, 90)]
    usage = Usage(prompt_tokens=3, completion_tokens=4, wall_s=0.5)
    wrote = TaskProposed(
        task="t", iteration=0, slot=0, text="", problem="no", usage=usage, teacher="base", proposal=None, prompt="p"
    )
    ends = CheckpointTrained(
        checkpoint="s",
        role="student",
        iteration=0,
        parent="base",
        adapter=None,
        metrics={"steps": 6.0},
        wall_s=1.5,
        samples=1,
    )
    events = [record(one, run="r", time=at) for one, at in zip((wrote, wrote, ends), times, strict=True)]
    found = outcome_of("a", 1, "s", 2, events)
    spent = {"attempts": 0, "tokens": 14, "model_s": 1.0, "steps": 6, "learned_tokens": 0, "training_s": 1.5}
    spent |= {"wall_s": 90.0}
    assert (found.cost, found.run, found.student, found.iterations) == (spent, "r", "s", 2)


ENDED = {"end": "answered", "turns": 1, "tool_calls": 0, "tool_ok": 0, "prompt": "p"}


def test_one_item_is_drawn_and_none_means_all() -> None:
    entry = benchmarks()["adversarial"]
    items = [replace(entry.make(1, 0)[0], id=str(n)) for n in range(4)] if entry.make else []
    assert [len(drawn(entry, items, n, 3)) for n in (0, 1, 3, 4, 9)] == [4, 1, 3, 4, 4]
    assert drawn(entry, items, 3, 3) == drawn(entry, items, 3, 3)


def test_a_rate_at_the_border_of_the_band_is_inside() -> None:
    assert [grade(solved, 4, (0.25, 0.75)).grade for solved in range(5)] == [
        "hard",
        "frontier",
        "frontier",
        "frontier",
        "easy",
    ]


def test_a_variant_that_is_none_is_told_which_there_are() -> None:
    study = AblationStudy("?", (Variant("even"), Variant("plain")))
    with pytest.raises(ConfigError) as found:
        chosen_variants(study, ["odd"])
    assert ", ".join(variant.name for variant in study.variants) in str(found.value.__dict__)


def test_greedy_is_one_attempt() -> None:
    plan = EvaluationProtocol(12, 7, levels=(2, 3))
    assert (plan.attempts, plan.temperature, plan.forced_tool) == (1, 0.0, False)


def test_what_a_call_prints_is_copied_rather_than_the_call() -> None:
    task = heldout("test", 1, 1, ("math",), names=("arithmetic",))[0]
    entry = families()["arithmetic"]
    expression = entry.call(task.params)[1]["code"].removeprefix("print(").removesuffix(")")
    assert list(copies(task, entry))[1] == expression


def test_rules_that_are_given_say_what_is_unchecked() -> None:
    task = Task(question="Why?", domain="math", family="open", level=1, canonical="open why?")
    tried = {f"a{n}": AttemptState(n, answer="1", attempted=True) for n in range(2)}
    held = TaskState(0, "math", "open", 1, proposal=task, attempts=tried)
    run = RunState("r", 1, RunConfig(), "", tasks={"t": held})
    facts = {"task": "t", "attempt": "a1", "iteration": 0, "number": 1, "student": "base", "answer": "1"}
    event = TaskAttempted.model_validate(facts | ENDED)
    for rules in (
        None,
        VerificationConfig(),
        VerificationConfig(unchecked="panel"),
        VerificationConfig(unchecked="consistency"),
    ):
        known = (rules or VerificationConfig()).unchecked
        wanted = ["a0", "a1"] if verifier_for(task, known).collective else ["a1"]
        assert list(attempts_to_verify(event, run, rules)) == wanted
        assert attempts_to_verify(event, replace(run, tasks={}), rules) == {}


def test_errors_name_what_there_is() -> None:
    with pytest.raises(ConfigError) as found:
        named("odd")
    assert found.value.fix == "" and all(kind in str(found.value.__dict__) for kind in kinds())
    with pytest.raises(ConfigError) as found:
        chosen(["gsm8k", "odd"])
    assert (found.value.args[0].partition(".")[0], found.value.fix) == (
        "There is no benchmark 'odd'",
        "See: agent0 bench list",
    )
    with pytest.raises(ConfigError) as found:
        runs_of_study("s" * 30, {"a" * 40: RunConfig()}, [0])
    assert found.value.fix == "Choose a shorter --name."


@pytest.mark.parametrize("degrees", range(1, 13))
def test_the_shares_below_are_those_of_students_distribution(degrees: int) -> None:
    for t in (-3.0, -0.5, 0.0, 0.7, 2.5):
        assert share_below(t, degrees) == pytest.approx(stats.t.cdf(t, degrees), abs=1e-12)


def test_a_bracket_makes_an_expression_hard_however_short() -> None:
    entry = families()["boolean"]
    for text, level in (("(1<2 and 3<4) or 5<6", 4), ("1<2 and 3<4 or 5<6", 2)):
        assert entry.level({"expression": text}) == level


def test_golds_of_exact_arithmetic_are_exact() -> None:
    asked: set[str] = set()
    for seed in range(40):
        item = huge(random.Random(seed))
        words = re.match(
            r"What is (?:the (remainder|last digit) of )?(\d+) (\+|-|\*|to the power of) (\d+)"
            r"(?: divided by (\d+))?\?\s",
            item.question,
        )
        assert words, item.question
        left, right = int(words[2]), int(words[4])
        value = {"+": left + right, "-": left - right, "*": left * right}.get(words[3])
        value = pow(left, right, 10) if value is None else value % int(words[5]) if words[5] else value
        assert item.gold == str(value)
        asked.add(words[3])
    assert len(asked) == 4


async def test_stored_verdicts_are_compared_as_they_were_stored() -> None:
    task = heldout("test", 1, 1, ("math",))[0]
    right = families()[task.family].solve(families()[task.family].parse(task.question) or {})
    row = {"domain": task.domain, "task": task.canonical, "question": task.question}
    greedy = row | {"answer": "no", "correct": True, "tried": ["no", right], "within": 0}
    voted = row | {"answers": [right, None], "correct": [None, False], "most": right, "most_correct": True}
    content = "\n".join(json.dumps(one) for one in (greedy, voted)).encode()
    found = await differences(stored(content), KnowingSandbox())
    assert [(one.attempt, one.was, one.rejudged) for one in found] == [
        ("greedy", True, False),
        ("sampled 2", False, True),
        ("0", None, True),
    ]


def test_seeds_that_are_none_are_said() -> None:
    for text, message in (("x", "'x' is no seed."), ("-1", "'-1' is no seed.")):
        with pytest.raises(ConfigError) as found:
            seeds_of(text)
        assert found.value.args[0].startswith(message)
    with pytest.raises(ConfigError) as found:
        runs_of_study("s", {"a": RunConfig()}, [])
    assert found.value.args[0].startswith("There is no seed.")


def test_only_brackets_are_counted_as_brackets() -> None:
    assert [RULES["depths"].reference(text, weight=3) for text in ("X", "(X)", "[X(x)]", "(", "(]")] == [
        0,
        1,
        7,
        -1,
        -1,
    ]
