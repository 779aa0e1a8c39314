"""Simulates runs of teacher and student policies and compares the rewards they are assigned.

A set is simulated as its authors use it. Where the verifier decides, tasks are screened as in a run and labels are the
verifier's verdicts. Where the majority decides, every task is attempted and the label is the most frequent answer.
"""

import math
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from agent0.events.base import Event
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskRejected
from agent0.events.values import Role
from agent0.grading.normal_form import normal_form, same
from agent0.rewards import reward_sets
from agent0.rewards.assign import assigned_rewards
from agent0.rewards.red_team import (
    HONEST,
    Attempt,
    HonestAttempt,
    Proposal,
    Student,
    Teacher,
    about,
    student_policies,
    teacher_policies,
)
from agent0.rewards.red_team.undone import verdicts
from agent0.settings import RewardConfig, RunConfig
from agent0.state.reward_history import RewardHistory, with_receipt
from agent0.state.run_state import AttemptState, RunState, TaskState, ToolCallRecord, attempt_id, task_id
from agent0.tasks.families import families
from agent0.tasks.screening import Archive, Decision, Proposed, decide_batch
from agent0.tasks.splits import split_key, split_of, task_with
from agent0.turns.observations import plain_output

DIMENSIONS = 512
LIMIT = 0.97
TOLERANCE = 1e-9
FAMILIES = ("arithmetic", "counting", "linear", "lists", "modular", "ranking", "strings")


@dataclass(frozen=True)
class Size:
    """The size of one simulated run: iterations, tasks per iteration, attempts per task."""

    iterations: int = 3
    tasks: int = 12
    attempts: int = 8


@dataclass(frozen=True)
class PolicyReward:
    """A policy's mean reward beside that of the honest policy, over ``receipts`` receipts."""

    role: Role
    policy: str
    mean: float
    honest: float
    receipts: int
    about: str

    @property
    def exploits(self) -> bool:
        """Whether its mean reward is above that of the honest policy."""
        return self.mean > self.honest + TOLERANCE


def play_policies(rules: RewardConfig, seed: int = 0, size: Size = Size()) -> list[PolicyReward]:
    """Play every policy under ``rules``: teachers against an honest student, students against an honest teacher.

    Returns one row per policy, teachers first, the honest one first in each role.
    """
    out = []
    for role, names in (("teacher", list(teacher_policies())), ("student", list(student_policies()))):
        totals = {name: _totals(rules, role, name, seed, size) for name in names}
        honest = fmean(totals[HONEST])
        for name, rewards_earned in totals.items():
            out.append(PolicyReward(role, name, fmean(rewards_earned), honest, len(rewards_earned), about(role, name)))  # type: ignore[arg-type]
    return out


def _totals(rules: RewardConfig, role: str, name: str, seed: int, size: Size) -> list[float]:
    teacher = teacher_policies()[name if role == "teacher" else HONEST]
    student = student_policies()[name if role == "student" else HONEST]
    return [receipt.total for receipt in scored_receipts(rules, teacher, student, seed, size) if receipt.role == role]


def scored_receipts(
    rules: RewardConfig, teacher: Teacher, student: Student, seed: int, size: Size
) -> list[RewardAssigned]:
    """Receipts of a simulated run of ``teacher`` and ``student``; those without any scored part are left out."""
    plan = {"iterations": size.iterations, "tasks": size.tasks, "attempts": size.attempts}
    config = RunConfig(seed=seed, rewards=rules, **plan)
    state = RunState(run="hack", seq=1, config=config, config_sha="")
    simulation = _Simulation(reward_sets()[rules.set].label == "verifier", teacher, student, seed, size)
    out: list[RewardAssigned] = []
    for iteration in range(size.iterations):
        state = replace(state, iteration=iteration, tasks=simulation.tasks(iteration))
        for event, resolved in simulation.events(state):
            receipts = assigned_rewards(event, replace(state, just_settled=resolved))
            ledger = state.ledger
            for each in receipts:
                ledger = with_receipt(ledger or RewardHistory(), each)
            state = replace(state, ledger=ledger)
            out += [each for each in receipts if any(part.value is not None for part in each.parts)]
    return out


class _Simulation:
    """The tasks of a simulated run, the attempts at them, and their labels."""

    def __init__(self, verified: bool, teacher: Teacher, student: Student, seed: int, size: Size) -> None:
        self._verified, self._teacher, self._student = verified, teacher, student
        self._seed, self._size = seed, size
        self._honest: list[Proposal] = []
        self._accepted: list[tuple[str, list[float]]] = []
        self._decisions: dict[str, Decision] = {}

    def tasks(self, iteration: int) -> dict[str, TaskState]:
        """The tasks of one iteration by id, attempts and verdicts included."""
        proposals = {}
        for slot in range(self._size.tasks):
            self._honest.insert(0, _drawn(random.Random(f"{self._seed} {iteration} {slot}")))
            rng = random.Random(f"{self._seed} teacher {iteration} {slot}")
            proposals[task_id(iteration, slot)] = self._teacher(rng, self._honest)
        self._decisions = self._screened(proposals)
        return {name: self._task_state(name, slot, proposal) for slot, (name, proposal) in enumerate(proposals.items())}

    def events(self, state: RunState) -> list[tuple[Event, str]]:
        """The events that complete a task or an attempt, each with the task it resolved (empty: none)."""
        out: list[tuple[Event, str]] = []
        for name, task in state.tasks.items():
            if task.rejected:
                why = self._decisions[name]
                rejected = TaskRejected(
                    task=name,
                    iteration=state.iteration,
                    slot=task.slot,
                    reason=why.reason or "malformed",
                    novelty=why.novelty,
                )
                out.append((rejected, ""))
            for number, (attempt, attempt_state) in enumerate(task.attempts.items()):
                verdict = ResultVerified(
                    task=name,
                    attempt=attempt,
                    iteration=state.iteration,
                    correct=attempt_state.correct,
                    verifier=attempt_state.judge,
                    reason="",
                )
                out.append((verdict, name if number == len(task.attempts) - 1 else ""))
        return out

    def _screened(self, proposals: dict[str, Proposal]) -> dict[str, Decision]:
        if not self._verified:
            return {n: Decision(n, s, None if p.task else "malformed") for s, (n, p) in enumerate(proposals.items())}
        proposed = [
            Proposed(n, slot, p.task.domain if p.task else "", p.task) for slot, (n, p) in enumerate(proposals.items())
        ]
        vectors = {name: _vector(p.task.question) for name, p in proposals.items() if p.task}
        near = {n: max((_dot(v, old) for _, old in self._accepted), default=0.0) for n, v in vectors.items()}
        archive = Archive(frozenset(canonical for canonical, _ in self._accepted), len(self._accepted), near)
        decisions = {each.task: each for each in decide_batch(proposed, archive, vectors, LIMIT)}
        for name, decision in decisions.items():
            task = proposals[name].task
            if decision.reason is None and task:
                self._accepted.append((task.canonical, vectors[name]))
        return decisions

    def _task_state(self, name: str, slot: int, proposal: Proposal) -> TaskState:
        decision = self._decisions[name]
        task = proposal.task
        task_state = TaskState(
            slot,
            task.domain if task else "",
            task.family if task else "",
            task.level if task else 1,
            proposed=True,
            proposal=task,
            text=proposal.text,
            novelty=decision.novelty,
            accepted=decision.reason is None,
            rejected=decision.reason is not None,
        )
        return replace(task_state, attempts=self._attempts(name, proposal)) if task_state.accepted else task_state

    def _attempts(self, name: str, proposal: Proposal) -> dict[str, AttemptState]:
        attempts = []
        for number in range(self._size.attempts):
            rng = random.Random(f"{self._seed} {name} {number}")
            attempts.append(self._student(rng, _honest_solution(rng, proposal)))
        labels = _labels(attempts, proposal, self._verified)
        return {
            attempt_id(name, number): _state(number, attempt, proposal.padding, label)
            for number, (attempt, label) in enumerate(zip(attempts, labels, strict=True))
        }


def _drawn(rng: random.Random) -> Proposal:
    """An honest teacher's proposal: never a task reserved for held-out sets, which earns no reward."""
    family = families()[rng.choice(FAMILIES)]
    while True:
        params = family.sample(rng.randint(1, family.levels), rng)
        if split_of(split_key(family, params)) == "train":
            break
    question, right = family.render(params, rng), family.solve(params)
    task = task_with(family, question, params)
    others = tuple(f"{right}{digit}" for digit in range(1, 6))
    return Proposal(question, task, right, rng.uniform(0.25, 0.75), others)


def _honest_solution(rng: random.Random, proposal: Proposal) -> HonestAttempt:
    """An honest attempt: the right answer or another one, by calls that compute it; two where it first tries."""
    twice = rng.random() < 0.5
    right = proposal.answer is not None and rng.random() < proposal.chance
    answer = proposal.answer if right and proposal.answer is not None else rng.choice(proposal.others)
    family = families().get(proposal.task.family) if proposal.task else None
    name, arguments = (
        family.call(proposal.task.params) if family and proposal.task else ("python", {"code": "f(x)+g(x)"})
    )
    last = ToolCallRecord(name, arguments, True, f"{answer}\n")
    first = ToolCallRecord("python", {"code": "print(len(str(2**9)) + len('check'))"}, True, "8\n")
    return HonestAttempt(proposal, answer, (first, last) if twice else (last,))


def _labels(attempts: Sequence[Attempt], proposal: Proposal, verified: bool) -> list[bool | None]:
    if verified:
        return (
            verdicts(proposal.task, [attempt.answer for attempt in attempts])
            if proposal.task
            else [None] * len(attempts)
        )
    counts = Counter(normal_form(attempt.answer) for attempt in attempts if attempt.answer is not None)
    top = counts.most_common(1)[0][0] if counts else None
    return [attempt.answer is not None and normal_form(attempt.answer) == top for attempt in attempts]


def _state(number: int, attempt: Attempt, padding: tuple[ToolCallRecord, ...], label: bool | None) -> AttemptState:
    calls = (*padding, *attempt.calls)
    good = [call for call in calls if call.ok]
    return AttemptState(
        number,
        answer=attempt.answer,
        attempted=True,
        tool_calls=len(calls),
        tool_ok=len(good),
        parse_errors=attempt.errors,
        grounded=attempt.answer is not None and any(same(attempt.answer, plain_output(call.output)) for call in good),
        tokens=attempt.tokens,
        correct=label,
        verified=True,
        judge="played",
        calls=calls,
    )


def _vector(text: str) -> list[float]:
    """Hashed words and trigrams, of unit length."""
    out = [0.0] * DIMENSIONS
    for start in range(len(text)):
        for size in (1, 3, 5):
            out[zlib.crc32(text[start : start + size].encode()) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(x * x for x in out)) or 1.0
    return [x / length for x in out]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
