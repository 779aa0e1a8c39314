"""Features that reward parts read beyond what every receipt has: one small function each, computed only where a part
reads it.

Everything comes from the run's state, so that any reward can be recomputed from the log. None means unknown.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from agent0.chat_format import boxed
from agent0.events.values import Role, Task
from agent0.grading.normal_form import normal_form
from agent0.registry import Registry
from agent0.rewards.batch_similarity import shares
from agent0.rewards.skill_signature import of_task
from agent0.rewards.tool_utility import rests_on, useful
from agent0.rollout.confidence.calibration import Candidate
from agent0.rollout.confidence.signals import SELF_CRITIQUE, agreement
from agent0.settings import RewardConfig
from agent0.state.reward_history import RewardHistory
from agent0.state.run_state import AttemptState, RunState, TaskState, task_id
from agent0.tasks.families import families

CLUSTERS = "cluster_share"
STUDENT_GAIN = "student_gain"
ENOUGH_DIGITS = 5


@dataclass(frozen=True)
class RewardContext:
    """What a feature is computed from: a task as its teacher's proposal (``attempt`` None), or one attempt at it."""

    run: RunState
    rules: RewardConfig
    task: TaskState
    attempt: AttemptState | None = None

    @property
    def tried(self) -> list[AttemptState]:
        """The attempts that were made."""
        return [a for a in self.task.attempts.values() if a.attempted]


Feature = Callable[[RewardContext], object]
_facts = Registry[tuple[Role, str], Feature]("facts")


def feature(role: Role, name: str) -> Callable[[Feature], Feature]:
    """Register a function of a ``RewardContext`` as the feature ``name`` of ``role``."""
    return _facts.adding((role, name), lambda function: function)


def features(role: Role) -> dict[str, Feature]:
    """Return every registered feature of ``role``, by name."""
    return {name: function for (whose, name), function in _facts.all().items() if whose == role}


def compute_features(role: Role, names: frozenset[str], context: RewardContext) -> dict[str, object]:
    """Compute those of ``names`` that are registered features of ``role``; returns them by name, sorted."""
    return {name: function(context) for name, function in features(role).items() if name in names}


@feature("teacher", "well_formed")
def _well_formed(context: RewardContext) -> bool:
    """Whether the teacher's text holds a task."""
    return context.task.proposal is not None


@feature("teacher", CLUSTERS)
def _cluster_share(context: RewardContext) -> float:
    """Share of the iteration's batch in this question's cluster; texts that hold no task are in no cluster."""
    batch = _by_slot(context.run)
    places = [place for place, task in enumerate(batch) if task.slot == context.task.slot]
    return shares(questions_of(context.run))[places[0]] if places else 1 / max(1, len(batch))


@feature("teacher", "digit_share")
def _digit_share(context: RewardContext) -> float | None:
    """Share of the most frequent digit among the question's digits; None where these are fewer than
    ``ENOUGH_DIGITS``."""
    question = context.task.proposal.question if context.task.proposal else ""
    digits = [character for character in question if character in "0123456789"]
    return max(Counter(digits).values()) / len(digits) if len(digits) >= ENOUGH_DIGITS else None


def _by_slot(run: RunState) -> list[TaskState]:
    return sorted(run.tasks.values(), key=lambda task: task.slot)


def questions_of(run: RunState) -> tuple[str, ...]:
    """The questions of the iteration's batch, by slot; empty for texts that hold no task."""
    return tuple(task.proposal.question if task.proposal else "" for task in _by_slot(run))


@feature("teacher", "calls_run")
def _calls_run(context: RewardContext) -> list[int] | None:
    """Calls that ran, attempt by attempt."""
    return [a.tool_ok for a in sorted(context.tried, key=lambda a: a.number)] or None


@feature("teacher", "useful_calls")
def _useful_calls(context: RewardContext) -> float | None:
    """Mean useful calls an attempt (``agent0.rewards.tool_utility``)."""
    return fmean(len(useful(a.calls)) for a in context.tried) if context.tried else None


@feature("teacher", "teacher_text")
def _teacher_text(context: RewardContext) -> str:
    """What the teacher wrote."""
    return context.task.text


@feature("teacher", "teacher_answer")
def _teacher_answer(context: RewardContext) -> str | None:
    """The answer in the teacher's last box. Our teachers write none: then the answer that the task's family computes,
    or else "None", as the released code reads a text without a box."""
    if (answer := boxed(context.task.text)) is not None:
        return answer.strip()
    return _computed(context.task.proposal) if context.task.proposal else None


def _computed(task: Task) -> str:
    family = families(long=None).get(task.family)
    params = family.parse(task.question) if family else None
    return family.solve(params) if family and params is not None else "None"


@feature("teacher", "majority")
@feature("student", "majority")
def _majority(context: RewardContext) -> str | None:
    """The most frequent answer."""
    return agreement(a.answer for a in sorted(context.tried, key=lambda a: a.number)).majority


@feature("student", "agrees")
def _agrees(context: RewardContext) -> bool | None:
    """Whether the answer is that of the majority."""
    if context.attempt is None:
        return None
    return context.attempt.answer is not None and normal_form(context.attempt.answer) == _majority(context)


@feature("teacher", "answer_margin")
def _answer_margin(context: RewardContext) -> float | None:
    """Share of the most frequent answer less that of the next one."""
    counts = Counter(normal_form(a.answer) for a in context.tried if a.answer is not None).most_common(2)
    if not counts:
        return None
    return (counts[0][1] - (counts[1][1] if len(counts) > 1 else 0)) / len(context.tried)


@feature("teacher", "answer_confidence")
def _answer_confidence(context: RewardContext) -> float | None:
    """Mean probability of the tokens of the attempts' final answers."""
    return _mean(a.signals.get("answer") for a in context.tried)


@feature("teacher", "token_entropy")
def _token_entropy(context: RewardContext) -> float | None:
    """Mean over attempts of -log p of a token of the student's own, in nats."""
    confidences = [a.signals["own_tokens"] for a in context.tried if a.signals.get("own_tokens")]
    return fmean(-math.log(p) for p in confidences) if confidences else None


@feature("teacher", "fused_confidence")
def _fused_confidence(context: RewardContext) -> float | None:
    """Mean over attempts of the calibrated probability of being right."""
    return _mean(calibrated(context.rules, a.signals) for a in context.tried)


@feature("teacher", "critique")
def _critiques(context: RewardContext) -> float | None:
    """Mean over attempts of the share of yes among the votes about them."""
    return _mean(_said_yes(a) for a in context.tried)


@feature("teacher", SELF_CRITIQUE)
def _self_critiques(context: RewardContext) -> float | None:
    """Mean over attempts of the probability that the student gives to its answer being right."""
    return _mean(a.signals.get(SELF_CRITIQUE) for a in context.tried)


@feature("teacher", "skill")
def _skill(context: RewardContext) -> str:
    """Signature of the solution; empty where there is none."""
    return of_task(context.task)


@feature("teacher", "skill_seen")
def _skill_seen(context: RewardContext) -> int:
    """How many tasks of earlier iterations had this signature."""
    ledger = (context.run.ledger or RewardHistory()).at(context.run.iteration)
    return ledger.skills.get(of_task(context.task), 0)


@feature("teacher", STUDENT_GAIN)
def _student_gain(context: RewardContext) -> float | None:
    """The measured gain of the subset that this task's accepted answers were trained on with; 0 for a task without any,
    which nothing is learned from. None where the gains of its iteration were not measured."""
    run, gain = context.run, context.run.gain
    if gain is None or gain.probe is None or not gain.gains or not gain.complete or not context.task.accepted:
        return None
    name = task_id(run.iteration, context.task.slot)
    return next((gain for tasks, gain in zip(gain.probe.subsets, gain.gains, strict=True) if name in tasks), 0.0)


@feature("student", "rests_on_call")
def _rests_on_call(context: RewardContext) -> bool | None:
    """Whether the answer is what a useful call printed without having been given it."""
    if context.attempt is None:
        return None
    question = context.task.proposal.question if context.task.proposal else ""
    return rests_on(context.attempt.answer, context.attempt.calls, question)


@feature("student", "most_tokens")
def _most_tokens(context: RewardContext) -> int:
    """Tokens that the attempt may write: those of a turn, times its turns."""
    student, task = context.run.config.student, context.task.proposal
    turns = student.max_turns * (student.long_factor if task and task.kind == "long" else 1)
    return student.max_tokens * turns


@feature("student", "cut_off")
def _cut_off(context: RewardContext) -> bool | None:
    """Whether a reply met the limit of tokens, which ended the attempt."""
    return context.attempt.cut_off if context.attempt else None


@feature("student", "wall_s")
def _wall_s(context: RewardContext) -> float | None:
    """Seconds that model and tools took."""
    return context.attempt.wall_s if context.attempt else None


@feature("student", "changed_lines")
def _changed_lines(context: RewardContext) -> int | None:
    """Lines of code that were changed of a repository; None of other tasks."""
    return context.attempt.changed_lines if context.attempt else None


@feature("student", "confidence")
def _confidence(context: RewardContext) -> float | None:
    """The calibrated probability of being right, or that of the answer's own tokens without a calibrator."""
    return confidence(context.rules, context.attempt.signals) if context.attempt else None


@feature("student", "critique")
def _critique(context: RewardContext) -> float | None:
    """Share of yes among the votes about the answer."""
    return _said_yes(context.attempt) if context.attempt else None


@feature("student", SELF_CRITIQUE)
def _self_critique(context: RewardContext) -> float | None:
    """The probability that the student gives to its answer being right."""
    return context.attempt.signals.get(SELF_CRITIQUE) if context.attempt else None


def confidence(rules: RewardConfig, signals: Mapping[str, float]) -> float | None:
    """The student's confidence: by the calibrator, or without one the probability of the answer's own tokens."""
    return calibrated(rules, signals) if rules.calibrator.signal else signals.get("answer")


def calibrated(rules: RewardConfig, signals: Mapping[str, float]) -> float | None:
    """The calibrated probability that an answer with these signals is right; None without a calibrator that
    can read them."""
    plan = rules.calibrator
    calibrator = Candidate(plan.signal, plan.method, plan.parameters, 0)
    return calibrator.apply(signals) if plan.signal and plan.parameters and calibrator.fits(signals) else None


def _said_yes(attempt: AttemptState) -> float | None:
    cast = [vote.correct for vote in attempt.votes if vote.correct is not None]
    return fmean(cast) if cast else None


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None
