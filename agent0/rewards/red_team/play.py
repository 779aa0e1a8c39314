"""Plays policies through the real rewards and says what each is paid.

A set is played where its authors have it. Where the verifier's word counts, tasks are screened as in a run, and right
is what the task's own verifier says. Where the majority's does, every task is put to the student, and right is what
most attempts say.
"""

import math
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from agent0.grading.normal_form import normal_form, same
from agent0.rewards import registered, reward_sets
from agent0.rewards.assign import payouts
from agent0.rewards.red_team import (
    HONEST,
    Attempt,
    Found,
    Proposal,
    Student,
    Teacher,
    about,
    student_policies,
    teacher_policies,
)
from agent0.rewards.red_team.undone import verdicts
from agent0.rollout.student import plain_output
from agent0.settings import RewardConfig, RunConfig
from agent0.state.reward_history import Ledger, entered
from agent0.state.run_state import AttemptState, Made, RunState, TaskState, attempt_id, task_id
from agent0.tasks.families import families
from agent0.tasks.screening import Archive, Decision, Proposed, decide_batch
from agent0.tasks.splits import split_key, split_of, task_with
from events.base import Event
from events.tasks import ResultVerified, RewardAssigned, TaskRejected
from events.values import Role

DIMENSIONS = 512
LIMIT = 0.97
TOLERANCE = 1e-9
FAMILIES = ("arithmetic", "counting", "linear", "lists", "modular", "ranking", "strings")


@dataclass(frozen=True)
class Size:
    """Of one play."""

    iterations: int = 3
    tasks: int = 12
    attempts: int = 8


@dataclass(frozen=True)
class Paid:
    """A policy's mean pay beside that of the honest one, over as many receipts; ``more``: cheating pays."""

    role: Role
    policy: str
    mean: float
    honest: float
    receipts: int
    about: str

    @property
    def more(self) -> bool:
        """Whether it is paid more than honest work."""
        return self.mean > self.honest + TOLERANCE


def suite(rules: RewardConfig, seed: int = 0, size: Size = Size()) -> list[Paid]:
    """Every policy's pay under ``rules``: teachers before an honest student, students under an honest teacher."""
    out = []
    for role, names in (("teacher", list(teacher_policies())), ("student", list(student_policies()))):
        pay = {name: _pay(rules, role, name, seed, size) for name in names}
        honest = fmean(pay[HONEST])
        out += [Paid(role, name, fmean(paid), honest, len(paid), about(role, name)) for name, paid in pay.items()]  # type: ignore[arg-type]
    return out


def _pay(rules: RewardConfig, role: str, name: str, seed: int, size: Size) -> list[float]:
    teacher = teacher_policies()[name if role == "teacher" else HONEST]
    student = student_policies()[name if role == "student" else HONEST]
    return [paid.total for paid in receipts(rules, teacher, student, seed, size) if paid.role == role]


def receipts(rules: RewardConfig, teacher: Teacher, student: Student, seed: int, size: Size) -> list[RewardAssigned]:
    """What a run of these two is paid, scored receipts only."""
    plan = {"iterations": size.iterations, "tasks": size.tasks, "attempts": size.attempts}
    config = RunConfig(seed=seed, rewards=rules, **plan)
    state = RunState(run="hack", seq=1, config=config, config_sha="")
    world = _World(reward_sets()[registered(rules)].label == "verifier", teacher, student, seed, size)
    out: list[RewardAssigned] = []
    for iteration in range(size.iterations):
        state = replace(state, iteration=iteration, tasks=world.tasks(iteration))
        for event, settled in world.events(state):
            paid = payouts(event, replace(state, just_settled=settled))
            ledger = state.ledger
            for each in paid:
                ledger = entered(ledger or Ledger(), each)
            state = replace(state, ledger=ledger)
            out += [each for each in paid if any(part.value is not None for part in each.parts)]
    return out


class _World:
    """The tasks of a run, what its student made of them, and who says what is right."""

    def __init__(self, verified: bool, teacher: Teacher, student: Student, seed: int, size: Size) -> None:
        self._verified, self._teacher, self._student = verified, teacher, student
        self._seed, self._size = seed, size
        self._honest: list[Proposal] = []
        self._accepted: list[tuple[str, list[float]]] = []
        self._decisions: dict[str, Decision] = {}

    def tasks(self, iteration: int) -> dict[str, TaskState]:
        """One iteration's, attempts and verdicts included."""
        proposals = {}
        for slot in range(self._size.tasks):
            self._honest.insert(0, _drawn(random.Random(f"{self._seed} {iteration} {slot}")))
            rng = random.Random(f"{self._seed} teacher {iteration} {slot}")
            proposals[task_id(iteration, slot)] = self._teacher(rng, self._honest)
        self._decisions = self._screened(proposals)
        return {name: self._held(name, slot, proposal) for slot, (name, proposal) in enumerate(proposals.items())}

    def events(self, state: RunState) -> list[tuple[Event, str]]:
        """What completes a task or an attempt, and which task it settled."""
        out: list[tuple[Event, str]] = []
        for name, held in state.tasks.items():
            if held.rejected:
                why = self._decisions[name]
                told = TaskRejected(
                    task=name,
                    iteration=state.iteration,
                    slot=held.slot,
                    reason=why.reason or "malformed",
                    novelty=why.novelty,
                )
                out.append((told, ""))
            for number, (attempt, one) in enumerate(held.attempts.items()):
                verdict = ResultVerified(
                    task=name,
                    attempt=attempt,
                    iteration=state.iteration,
                    correct=one.correct,
                    verifier=one.judge,
                    reason="",
                )
                out.append((verdict, name if number == len(held.attempts) - 1 else ""))
        return out

    def _screened(self, proposals: dict[str, Proposal]) -> dict[str, Decision]:
        if not self._verified:
            return {n: Decision(n, s, None if p.task else "malformed") for s, (n, p) in enumerate(proposals.items())}
        asked = [
            Proposed(n, slot, p.task.domain if p.task else "", p.task) for slot, (n, p) in enumerate(proposals.items())
        ]
        vectors = {name: _vector(p.task.question) for name, p in proposals.items() if p.task}
        near = {n: max((_dot(v, old) for _, old in self._accepted), default=0.0) for n, v in vectors.items()}
        archive = Archive(frozenset(known for known, _ in self._accepted), len(self._accepted), near)
        decisions = {each.task: each for each in decide_batch(asked, archive, vectors, LIMIT)}
        for name, decision in decisions.items():
            task = proposals[name].task
            if decision.reason is None and task:
                self._accepted.append((task.canonical, vectors[name]))
        return decisions

    def _held(self, name: str, slot: int, proposal: Proposal) -> TaskState:
        decision = self._decisions[name]
        task = proposal.task
        held = TaskState(
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
        return replace(held, attempts=self._attempts(name, proposal)) if held.accepted else held

    def _attempts(self, name: str, proposal: Proposal) -> dict[str, AttemptState]:
        made = []
        for number in range(self._size.attempts):
            rng = random.Random(f"{self._seed} {name} {number}")
            made.append(self._student(rng, _found(rng, proposal)))
        labels = _labels(made, proposal, self._verified)
        return {
            attempt_id(name, number): _state(number, one, proposal.padding, label)
            for number, (one, label) in enumerate(zip(made, labels, strict=True))
        }


def _drawn(rng: random.Random) -> Proposal:
    """What an honest teacher proposes: nothing that is kept for held-out sets, since nobody is paid for such."""
    family = families()[rng.choice(FAMILIES)]
    while True:
        params = family.sample(rng.randint(1, family.levels), rng)
        if split_of(split_key(family, params)) == "train":
            break
    question, right = family.render(params, rng), family.solve(params)
    task = task_with(family, question, params)
    others = tuple(f"{right}{digit}" for digit in range(1, 6))
    return Proposal(question, task, right, rng.uniform(0.25, 0.75), others)


def _found(rng: random.Random, proposal: Proposal) -> Found:
    """An honest attempt: the right answer or another one, by calls that compute it; two where it first tries."""
    twice = rng.random() < 0.5
    right = proposal.answer is not None and rng.random() < proposal.chance
    answer = proposal.answer if right and proposal.answer is not None else rng.choice(proposal.others)
    family = families().get(proposal.task.family) if proposal.task else None
    name, arguments = (
        family.call(proposal.task.params) if family and proposal.task else ("python", {"code": "f(x)+g(x)"})
    )
    last = Made(name, arguments, True, f"{answer}\n")
    first = Made("python", {"code": "print(len(str(2**9)) + len('check'))"}, True, "8\n")
    return Found(proposal, answer, (first, last) if twice else (last,))


def _labels(made: Sequence[Attempt], proposal: Proposal, verified: bool) -> list[bool | None]:
    if verified:
        return verdicts(proposal.task, [one.answer for one in made]) if proposal.task else [None] * len(made)
    counts = Counter(normal_form(one.answer) for one in made if one.answer is not None)
    top = counts.most_common(1)[0][0] if counts else None
    return [one.answer is not None and normal_form(one.answer) == top for one in made]


def _state(number: int, one: Attempt, padding: tuple[Made, ...], label: bool | None) -> AttemptState:
    calls = (*padding, *one.calls)
    good = [call for call in calls if call.ok]
    return AttemptState(
        number,
        answer=one.answer,
        attempted=True,
        tool_calls=len(calls),
        tool_ok=len(good),
        parse_errors=one.errors,
        grounded=one.answer is not None and any(same(one.answer, plain_output(call.output)) for call in good),
        tokens=one.tokens,
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
