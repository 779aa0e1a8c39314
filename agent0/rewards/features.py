"""What is known of a deed beyond what every receipt tells: one small function a fact, asked only where a part reads it.

Everything comes from the run's state, so that any reward can be computed again from the log. None: it is not known.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agent0.chat_format import boxed, plain_boxes
from agent0.grading.normal_form import normal_form
from agent0.registry import Registry
from agent0.rewards.batch_similarity import shares
from agent0.rewards.skill_signature import of_task
from agent0.rewards.tool_utility import rests_on, useful
from agent0.rollout.confidence.calibration import Candidate
from agent0.rollout.confidence.signals import agreement
from agent0.settings import RewardConfig
from agent0.state.reward_history import Ledger
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.tasks.families import families
from events.values import Role, Task

CLUSTERS = "cluster_share"


@dataclass(frozen=True)
class Deed:
    """A task as its teacher's doing (``attempt`` None), or one attempt at it."""

    run: RunState
    rules: RewardConfig
    held: TaskState
    attempt: AttemptState | None = None

    @property
    def tried(self) -> list[AttemptState]:
        """Attempts that were made."""
        return [a for a in self.held.attempts.values() if a.attempted]


Fact = Callable[[Deed], Any]
_facts = Registry[tuple[Role, str], Fact]("facts")


def fact(role: Role, name: str) -> Callable[[Fact], Fact]:
    """Register what ``role``'s parts may read as ``name``."""
    return _facts.adding((role, name), lambda found: found)


def facts(role: Role) -> dict[str, Fact]:
    """Everything that may be asked about ``role``'s deeds, by name."""
    return {name: found for (whose, name), found in _facts.all().items() if whose == role}


def gather(role: Role, names: frozenset[str], deed: Deed) -> dict[str, Any]:
    """Those of ``names`` that are facts of ``role``, by name in order."""
    return {name: found(deed) for name, found in facts(role).items() if name in names}


@fact("teacher", "well_formed")
def _well_formed(deed: Deed) -> bool:
    """Whether the teacher's text holds a task."""
    return deed.held.proposal is not None


@fact("teacher", CLUSTERS)
def _cluster_share(deed: Deed) -> float:
    """Share of the iteration's batch in this question's cluster; texts that are no task are alike with nothing."""
    batch = _by_slot(deed.run)
    places = [place for place, task in enumerate(batch) if task.slot == deed.held.slot]
    return shares(questions_of(deed.run))[places[0]] if places else 1 / max(1, len(batch))


def _by_slot(run: RunState) -> list[TaskState]:
    return sorted(run.tasks.values(), key=lambda task: task.slot)


def questions_of(run: RunState) -> tuple[str, ...]:
    """The iteration's batch, by slot; empty for texts that are no task."""
    return tuple(task.proposal.question if task.proposal else "" for task in _by_slot(run))


@fact("teacher", "calls_run")
def _calls_run(deed: Deed) -> list[int] | None:
    """Calls that ran, attempt by attempt."""
    return [a.tool_ok for a in sorted(deed.tried, key=lambda a: a.number)] or None


@fact("teacher", "useful_calls")
def _useful_calls(deed: Deed) -> float | None:
    """Mean useful calls an attempt (``agent0.rewards.tool_utility``)."""
    return fmean(len(useful(a.calls)) for a in deed.tried) if deed.tried else None


@fact("teacher", "teacher_text")
def _teacher_text(deed: Deed) -> str:
    """What the teacher wrote."""
    return deed.held.text


@fact("teacher", "teacher_answer")
def _teacher_answer(deed: Deed) -> str | None:
    """The answer that the teacher gave in a box. Our teachers give none: then what the task's family computes, which is
    what one that never errs would say; else the word that the released code's reader has for no box."""
    if (found := _last_box(deed)) is not None:
        return found.strip()
    return _computed(deed.held.proposal) if deed.held.proposal else None


def _last_box(deed: Deed) -> str | None:
    """Runs of the first edition of verification read no braces in a box."""
    if deed.run.config.verification.edition > 1:
        return boxed(deed.held.text)
    return next(iter([*plain_boxes(deed.held.text)][::-1]), None)


def _computed(task: Task) -> str:
    family = families(long=None).get(task.family)
    params = family.parse(task.question) if family else None
    return family.solve(params) if family and params is not None else "None"


@fact("teacher", "majority")
@fact("student", "majority")
def _majority(deed: Deed) -> str | None:
    """The most frequent answer."""
    return agreement(a.answer for a in sorted(deed.tried, key=lambda a: a.number)).majority


@fact("student", "agrees")
def _agrees(deed: Deed) -> bool | None:
    """Whether the answer is that of the majority."""
    if deed.attempt is None:
        return None
    return deed.attempt.answer is not None and normal_form(deed.attempt.answer) == _majority(deed)


@fact("teacher", "answer_margin")
def _answer_margin(deed: Deed) -> float | None:
    """Share of the most frequent answer less that of the next one."""
    counts = Counter(normal_form(a.answer) for a in deed.tried if a.answer is not None).most_common(2)
    if not counts:
        return None
    return (counts[0][1] - (counts[1][1] if len(counts) > 1 else 0)) / len(deed.tried)


@fact("teacher", "answer_confidence")
def _answer_confidence(deed: Deed) -> float | None:
    """Mean probability of the tokens of the attempts' final answers."""
    return _mean(a.signals.get("answer") for a in deed.tried)


@fact("teacher", "token_entropy")
def _token_entropy(deed: Deed) -> float | None:
    """Mean over attempts of -log p of a token of the student's own, in nats."""
    known = [a.signals["own_tokens"] for a in deed.tried if a.signals.get("own_tokens")]
    return fmean(-math.log(p) for p in known) if known else None


@fact("teacher", "fused_confidence")
def _fused_confidence(deed: Deed) -> float | None:
    """Mean over attempts of the calibrated probability of being right."""
    return _mean(calibrated(deed.rules, a.signals) for a in deed.tried)


@fact("teacher", "critique")
def _critiques(deed: Deed) -> float | None:
    """Mean over attempts of the share of yes among the votes about them."""
    return _mean(_said_yes(a) for a in deed.tried)


@fact("teacher", "skill")
def _skill(deed: Deed) -> str:
    """Signature of the solution; empty where there is none."""
    return of_task(deed.held)


@fact("teacher", "skill_seen")
def _skill_seen(deed: Deed) -> int:
    """How many tasks of earlier iterations had this signature."""
    ledger = (deed.run.ledger or Ledger()).at(deed.run.iteration)
    return ledger.skills.get(of_task(deed.held), 0)


@fact("student", "rests_on_call")
def _rests_on_call(deed: Deed) -> bool | None:
    """Whether the answer is what a useful call printed that had not been given it."""
    if deed.attempt is None:
        return None
    question = deed.held.proposal.question if deed.held.proposal else ""
    return rests_on(deed.attempt.answer, deed.attempt.calls, question)


@fact("student", "wall_s")
def _wall_s(deed: Deed) -> float | None:
    """Seconds that model and tools took."""
    return deed.attempt.wall_s if deed.attempt else None


@fact("student", "confidence")
def _confidence(deed: Deed) -> float | None:
    """The calibrated probability of being right, or that of the answer's own tokens without a calibrator."""
    return confidence(deed.rules, deed.attempt.signals) if deed.attempt else None


@fact("student", "critique")
def _critique(deed: Deed) -> float | None:
    """Share of yes among the votes about the answer."""
    return _said_yes(deed.attempt) if deed.attempt else None


def confidence(rules: RewardConfig, signals: Mapping[str, float]) -> float | None:
    """How sure the student was: by the calibrator, or without one the probability of the answer's own tokens."""
    return calibrated(rules, signals) if rules.calibrator.signal else signals.get("answer")


def calibrated(rules: RewardConfig, signals: Mapping[str, float]) -> float | None:
    """How likely an answer with these signals is right; None without a calibrator that can read them."""
    plan = rules.calibrator
    one = Candidate(plan.signal, plan.method, plan.parameters, 0)
    return one.apply(signals) if plan.signal and plan.parameters and one.fits(signals) else None


def _said_yes(attempt: AttemptState) -> float | None:
    cast = [vote.correct for vote in attempt.votes if vote.correct is not None]
    return fmean(cast) if cast else None


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
