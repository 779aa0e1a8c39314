"""What training and history are told, by hand: gates, what was learned from whom, manifests, forks, redaction."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.errors import Agent0Error, ConfigError, LogError
from agent0.events.base import Event, Recorded, effect_id, record, sha256
from agent0.events.checkpoints import CheckpointTrained, TrainingRequested
from agent0.events.runs import RunStarted
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Artifact, Task, Trajectory, Turn
from agent0.ports.training import TrainingExample
from agent0.provenance.fork_history import DEEPEST, Branches, Stretch, ancestry, past_of, read_branch, read_whole
from agent0.provenance.redaction import Redaction, set_aside, tombstone
from agent0.run.canaries import canaries
from agent0.run.iteration_measures import MEANING
from agent0.run.monitors.iteration_metrics import measure
from agent0.settings import RunConfig
from agent0.state.run_state import AttemptState, Checkpoint, RunState, TaskState, ValidationScore
from agent0.stats.claims import Claim, Scored, claims, step_by_step
from agent0.stats.paired_tests import agreeing, compare
from agent0.tasks.families import families
from agent0.training.diet import AS_DRAWN, ONCE, Diet, diet_of, total
from agent0.training.gate import gated, permuted
from agent0.training.manifest import adapter_metadata, canonical, dataset_sha, example_sha, lineage_of
from agent0.training.scored_trajectory import ScoredTrajectory, solution_pattern

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def told(work: Any, kind: type[Agent0Error] = ConfigError) -> tuple[str, str, str]:
    with pytest.raises(kind) as found:
        work()
    return found.value.what, found.value.why, found.value.fix


def scored(
    name: str, iteration: int = 0, reward: float | None = None, right: bool = False, **more: Any
) -> ScoredTrajectory:
    return ScoredTrajectory(name, more.pop("group", name), "", more.pop("path", None), reward, None, right,
                            iteration=iteration, **more)  # fmt: skip


# --- training


def test_permuted_rewards_stay_within_their_iteration() -> None:
    held = [scored(f"e{n}", n % 2, float(n)) for n in range(12)] + [scored("none", 0)]
    dealt = permuted(held, 3)
    assert [replace(one, reward=None) for one in dealt] == [replace(one, reward=None) for one in held]
    for iteration in (0, 1):
        before, after = ([one.reward for one in them if one.iteration == iteration and one.reward is not None]
                         for them in (held, dealt))  # fmt: skip
        assert sorted(before) == sorted(after) and before != after
    assert dealt[-1].reward is None and permuted([], 3) == []
    again = {one.event_id: one for one in permuted(held[::-1], 3)}
    assert all(again[one.event_id] == one for one in dealt), "whatever the order"
    assert permuted(held, 4) != dealt


def path(*own: int) -> Trajectory:
    return Trajectory(token_ids=(9, *own), mask=(0, *(1 for _ in own)), logprobs=(0.0, *(-1.0 for _ in own)))


def test_a_gate_accepts_by_verdict_or_majority() -> None:
    held = [scored(f"e{n}", 0, right=n < 30) for n in range(100)]
    assert gated(held, "verified", 5) == held
    mixed = gated(held, "permuted", 5)
    assert sum(one.success for one in mixed) == 30 and mixed != held
    answers = ["7", "7.0", " 7", "8", None]  # of five programs, no two alike
    group = [scored(f"m{n}", group="g", answer=text, path=path(n)) for n, text in enumerate(answers)]
    others = [scored("n", group="h"), *(scored(f"k{text}", group="k", answer=text, path=path(1)) for text in "12")]
    by_most = gated([*group, *others, scored("l", group="l", answer="3")], "majority", 5)
    assert [one.success for one in by_most] == [True] * 3 + [False] * 5 + [True]


def test_a_pattern_is_family_level_and_how() -> None:
    one = scored("e", family="f", level=3, tools=("a", "b"))
    assert solution_pattern(one) == "f/3/a>b" and solution_pattern(replace(one, signature="s")) == "f/3/s"


def test_canaries_are_drawn_from_the_upper_half_with_a_right_and_a_wrong_answer() -> None:
    ladders = [family for family in families().values() if family.ladder]
    found = list(canaries(families().values(), 6, 12, "k"))
    assert len(found) == 24 and [one.right for one in found] == [True, False] * 12
    assert [one.family for one in found[::2]] == [ladders[n % len(ladders)].name for n in range(12)]
    assert all(one.verdicts == (one.right, one.right) and not one.fault for one in found)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert all(one.answer != other.answer for one, other in pairs)
    longer = [len(other.answer) - len(one.answer) for one, other in pairs]
    turns = [n // len(ladders) % 3 for n in range(12)]  # a sign replaced, one more, one less where there are several
    assert all(by in ((0,), (1,), (-1, 0))[turn] for by, turn in zip(longer, turns, strict=True))
    assert set(longer) == {0, 1, -1}
    unchecked = [replace(ladder, check=None) for ladder in ladders]
    assert [one.verdicts for one in canaries(unchecked, 6, 12, "k")] == [one.verdicts for one in found]
    assert list(canaries([], 6, 12, "k")) == [] and list(canaries(ladders, 0, 2, "k")) != found[:4]
    assert [one.answer for one in canaries(ladders, 6, 12, "l")] != [one.answer for one in found]


def event(one: Event, name: str) -> Recorded:
    return record(one, run="r", time=NOON, id=name)


def attempt(name: str, student: str = "base") -> TaskAttempted:
    return TaskAttempted.model_construct(attempt=name, task="t", student=student)


def test_a_diet_says_whose_words_were_learned() -> None:
    written = {
        "e1": event(attempt("a1"), "e1"), "e2": event(attempt("a2", "stranger"), "e2"),
        "e3": event(attempt("a3"), "e3"), "p1": event(TaskProposed.model_construct(task="t", teacher="base"), "p1"),
    }  # fmt: skip
    trained = CheckpointTrained(
        checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=3,
        metrics={"own_tokens": 5.0, "taught_tokens": 2.0, "made_tokens": 1.0},
    )  # fmt: skip
    events = ["e1", "e1", "e2", "e3", "gone", "p1"]

    def diet(one: CheckpointTrained) -> Diet:
        return diet_of(one, events, written, lambda _: path(1, 2), {"a1": True, "a3": False}, ["base"])

    assert diet(trained) == Diet("student-0", "student", 5, 2, 1, AS_DRAWN, answers=5, wrong=1, strange=2)
    bare = trained.model_copy(update={"metrics": {}})
    assert diet(bare) == Diet("student-0", "student", 8, 0, 0, ONCE, answers=5, wrong=1, strange=2)
    assert asdict(total([diet(trained), diet(bare)])) == {
        "checkpoints": 2, "tokens": 16, "own": 13, "taught": 2, "other": 1, "wrong": 2, "strange": 4,
        "own_share": 13 / 16, "taught_share": 2 / 16, "other_share": 1 / 16,
    }  # fmt: skip
    assert total([]).own_share is None and total([]).tokens == 0


def test_an_adapter_says_what_it_follows_from() -> None:
    adapter = Artifact(sha256="b" * 64, size=1)
    request = TrainingRequested(
        checkpoint="student-1", role="student", iteration=1, parent="student-0", parent_adapter=adapter, after=0,
        until=9, replay_after=0, seed=3, state_sha="",
    )  # fmt: skip
    inputs = {"checkpoint": "student-1", "parent": "student-0", "parent_adapter": "b" * 64, "dataset": "d",
              "seed": "3", "recipe": '{"a":1,"b":2}'}  # fmt: skip
    said = adapter_metadata(request, {"b": 2, "a": 1}, "d")
    assert said == {**inputs, "lineage": sha256(canonical(inputs))} and said["lineage"] == lineage_of(said)
    assert all(lineage_of(inputs | {name: "other"}) != said["lineage"] for name in inputs)
    first = request.model_copy(update={"parent_adapter": None})
    assert adapter_metadata(first, {}, "d")["parent_adapter"] == ""
    assert dataset_sha({"a": 1, "until": 3}) == dataset_sha({"until": 4, "a": 1}) == sha256(b'{"a":1}')
    turn = Turn(role="assistant", content="x")
    assert example_sha(TrainingExample((turn,))) == sha256(canonical([turn.model_dump(mode="json")]))


# --- claims


def test_claims_are_made_step_by_step_and_against_the_first() -> None:
    base, one, two, other = Scored("base", "0" * 9), Scored("s0", "1" * 9), Scored("s1", "1" * 9), Scored("x", "1")
    up, same = compare([0.0] * 9, [1.0] * 9), compare([1.0] * 9, [1.0] * 9)
    both = agreeing(up, 2 * up.p)
    gained = Claim("s0", "base", agreeing(up, up.p), up.p)
    assert claims([(base, one), (base, other), (Scored("e", ""), base)]) == [gained, None, None]
    assert gained.verdict == "improved" and claims([]) == []
    assert step_by_step([base, one, two]) == [
        (None, None),
        (Claim("s0", "base", both, 2 * up.p), Claim("s0", "base", both, 2 * up.p)),
        (Claim("s1", "s0", agreeing(same, 1.0), 1.0), Claim("s1", "base", both, 2 * up.p)),
    ]
    assert step_by_step([]) == [] and step_by_step([base]) == [(None, None)]


# --- forks and redaction


class Told:
    """A history of runs by name."""

    def __init__(self, **runs: Sequence[Recorded]) -> None:
        self.runs = runs

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        for one in self.runs.get(run, ()):
            if (not types or one.type in types) and one.seq > after and (not until or one.seq <= until):
                yield one


def begun(run: str, seq: int, parent: str = "", parent_seq: int = 0, redone: Sequence[str] = ()) -> Recorded:
    start = RunStarted.model_construct(parent=parent, parent_seq=parent_seq, redone=tuple(redone))
    return record(start, run=run, time=NOON).model_copy(update={"seq": seq})


def done(run: str, seq: int, task: str) -> Recorded:
    one = TaskProposed.model_construct(task=task, teacher="base")
    return record(one, run=run, time=NOON).model_copy(update={"seq": seq})


LOG = Told(
    a=[begun("a", 1), done("a", 2, "t1"), done("a", 3, "t2"), done("a", 4, "t3")],
    b=[begun("b", 5, "a", 3, ["t2"]), done("b", 6, "t4"), done("b", 7, "t5")],
    c=[begun("c", 8, "b", 6, ["t1"]), done("c", 9, "t6")],
)


async def test_a_fork_has_its_parents_past_without_what_was_asked_again() -> None:
    assert await ancestry(LOG, "c") == (
        Stretch("a", 3, frozenset({"t1", "t2"})), Stretch("b", 6, frozenset({"t1"})), Stretch("c"),
    )  # fmt: skip
    assert await ancestry(LOG, "nobody") == (Stretch("nobody"),)

    async def seqs(events: AsyncIterator[Recorded]) -> list[int]:
        return [one.seq async for one in events]

    assert await seqs(read_branch(LOG, "c")) == [1, 5, 6, 8, 9] == await seqs(Branches(LOG).read("c"))
    assert await seqs(read_branch(LOG, "b")) == [1, 2, 5, 6, 7]
    assert await seqs(read_branch(LOG, "b", ["TaskProposed"], 1, 6)) == [2, 6]
    assert await seqs(read_branch(LOG, "b", after=3)) == [5, 6, 7] == await seqs(Branches(LOG).read("b", after=3))
    assert await seqs(past_of(LOG, "c")) == [1, 2, 3, 5, 6] and await seqs(past_of(LOG, "a")) == []
    assert await seqs(read_whole(LOG, "c", 8)) == [1, 2, 3, 5, 6, 8]
    circle = Told(x=[begun("x", 1, "x")])
    with pytest.raises(LogError) as refused:
        await ancestry(circle, "x")
    error = refused.value
    assert (error.what, error.why, error.fix) == (
        "Run x has more than 100 parents.", "No fork does that.", "Was the log altered?",
    )  # fmt: skip
    deep = Told(**{f"r{n}": [begun(f"r{n}", 1, f"r{n - 1}" if n else "")] for n in range(DEEPEST + 1)})
    assert len(await ancestry(deep, f"r{DEEPEST - 1}")) == DEEPEST


def test_redactions_are_ids_and_patterns_and_each_must_find_something() -> None:
    assert told(lambda: Redaction.of(["ok", "("])) == (
        "--redact '(' is no regular expression.", "missing ), unterminated subpattern at position 0.", "",
    )  # fmt: skip
    assert told(lambda: Redaction.of(["a*"])) == ("--redact 'a*' finds everything.", "", "Name a task, or some text.")
    both = Redaction.of(["t1", "se+cret"])
    assert both.takes({"type": "X", "task": "t1"}, b"") == {"t1"}
    assert both.takes({"type": "X", "task": "-", "data": {"cause_task": "t1"}}, b"") == {"t1"}
    assert both.takes({"type": "X", "data": {"a": ["\u0073ecret"]}}, b"seecret t1") == {"se+cret", "t1"}
    for kept in ("LogSealed", "LogContinued", "EventRedacted"):
        assert both.takes({"type": kept, "task": "t1"}, b"secret") == frozenset()
    assert Redaction.of([]).takes({"type": "X"}, b"") == frozenset() == both.takes({"type": "X", "data": 3}, b"no")
    assert (
        both.finds(b'{"\\u0073ecret": 1}') == {"se+cret"} == both.finds(b"a secret") and both.finds(b"") == frozenset()
    )
    both.require_found({"t1", "se+cret", "more"})
    assert told(lambda: both.require_found({"t1"})) == (
        "--redact 'se+cret' finds nothing.", "No task has that id, and no event or artifact holds such a text.",
        "See: agent0 task list RUN",
    )  # fmt: skip


def test_a_tombstone_keeps_the_envelope_and_a_digest() -> None:
    raw = {"id": "i", "type": "TaskProposed", "run": "r", "task": "t", "attempt": "-", "time": "now", "cause": "c",
           "handler": "h", "code_rev": "v", "data": {"secret": 1}}  # fmt: skip
    digest = sha256(b"body")
    head = {name: raw[name] for name in ("run", "task", "attempt", "time", "cause", "handler", "code_rev")}
    assert json.loads(tombstone(raw, b"body", 7, "forgotten")) == {
        "id": "i", "type": "EventRedacted", "version": 1, **head,
        "data": {"sha256": digest, "was": "TaskProposed", "why": "forgotten"},
    }  # fmt: skip
    assert json.loads(tombstone(raw, b"body", 7, "elsewhere")) == {
        "id": effect_id(digest, "elsewhere", 7), "type": "EventRedacted", "version": 1, "run": "log", "task": "-",
        "attempt": "-", "time": "now", "data": {"sha256": digest, "was": "", "why": "elsewhere"},
    }  # fmt: skip
    said = done("r", 3, "t")
    assert set_aside(7, b"body", said) == b""


# --- measures of an iteration


def asked(slot: int, family: str, rate: float | None, *answers: str | None, **more: Any) -> TaskState:
    task = Task(question=f"add 11{slot}", domain="math", family=family, level=slot + 1, canonical=f"c{slot}")
    made = {
        f"a{n}": AttemptState(n, answer, True, correct=answer == "1", tokens=10 * (n + 1), mean_logprob=-0.5,
                              tool_ok=n % 2, reward=0.25 * n)
        for n, answer in enumerate(answers)
    }  # fmt: skip
    plain = {"accepted": True, "proposal": task, "novelty": 0.25, "solve_rate": rate, "text": "same"}
    return TaskState(slot, "math", family, slot + 1, attempts=made, **{**plain, **more})


def test_an_iteration_has_all_its_measures() -> None:
    tasks = {
        "t0": asked(0, "f", 0.5, "1", "2"), "t1": asked(1, "f", 0.0, "2", "3", novelty=0.75),
        "t2": asked(2, "g", 1.0, "1", None, text="other"), "t3": asked(3, "h", None, accepted=False, proposal=None),
    }  # fmt: skip
    state = RunState("r", 1, RunConfig(attempts=2), "", tasks=tasks)
    assert measure(state) == {
        "tasks": 4.0, "accepted": 0.75, "novelty": 0.416667, "families": 1.889882, "largest_family": 0.666667,
        "attempts": 6.0, "answered": 0.833333, "surprise": 0.5, "tokens": 15.0, "tool_use": 0.5,
        "student_reward": 0.125, "solve_rate": 0.5, "solved": 0.666667, "frontier": 0.333333, "label_accuracy": 1.0,
        "variety": 1.0, "unread": 0.0,
    }  # fmt: skip
    scored_ = replace(state, promoted=(Checkpoint("base", None, ValidationScore(0.375)),))
    assert measure(scored_)["validation"] == 0.375
    assert "label_accuracy" not in measure(replace(state, config=RunConfig(attempts=1)))
    assert measure(RunState("r", 1, RunConfig(), "")) == {"tasks": 0.0, "attempts": 0.0}
    writes = RunConfig.model_validate({"attempts": 2, "curriculum": {"kind": "teacher"}})
    more = measure(replace(state, config=writes))
    assert {name: value for name, value in more.items() if name not in measure(state)} == {
        "written_level": 2.0, "readable": 0.75, "different_texts": 0.5, "digit_entropy": 0.986427,
        "half_solved": 0.333333, "learnable": 0.333333,
    }  # fmt: skip
    assert set(more) <= set(MEANING)


def test_ladders_have_heights_and_canaries() -> None:
    ladder = {"kind": "frontier", "domains": ["math"], "families": ["reversal"], "mastered": 1}
    climbs = RunConfig.model_validate({"curriculum": ladder, "attempts": 1})
    tasks = {f"t{n}": asked(n % 2, "reversal", float(n % 2 == 0), "1") for n in range(20)}
    state = RunState("r", 1, climbs, "", tasks=tasks)
    found = measure(state)
    assert {name: found[name] for name in ("frontier_level", "taught_rate", "verifier_faults")} == {
        "frontier_level": 1.0, "taught_rate": 1.0, "verifier_faults": 0.0,
    }  # fmt: skip
    assert (found["gate_right"], found["gate_wrong"]) == (1.0, 0.0)
    few = measure(replace(state, tasks=dict(list(tasks.items())[:18])))
    assert "taught_rate" not in few and "frontier_level" not in few, "nine of a level are too few"
