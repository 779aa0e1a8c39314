"""What several checkpoints that answer the same tasks add as a solver, a verdict and an uncertainty, over one of them
that answers as often (self-consistency, arXiv 2203.11171): without that control any vote looks good.

An ensemble of m members takes one attempt of each, the control m attempts of the best member, chosen on the same tasks.
Attempts of one number are drawn from one random stream, with which models that are nearly alike write alike: no two
members vote with attempts of the same number.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent0.grading.normal_form import normal_form
from agent0.stats.calibrators import Worth, worth
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import Difference, agreeing, bootstrap, compare, holm

LEAST = 2
"""Attempts that must give an answer before it counts as a label, as in the verifier ``self_consistency``."""


@dataclass(frozen=True)
class Attempted:
    """An attempt's answer in its normal form, None without one, and whether it is right."""

    form: str | None
    right: bool


Attempts = Sequence[Sequence[Attempted]]
"""Task by task, the attempts of one member."""
Answers = Sequence[tuple[Sequence[str | None], Sequence[bool | None]]]
"""Task by task, the answers of a member's attempts, with their verdicts."""


@dataclass(frozen=True)
class Solver:
    """Who answers, how many attempts an answer takes, and the share of tasks solved with its 95 % interval over them;
    ``scores`` are the tasks' shares of right answers."""

    name: str
    attempts: int
    accuracy: float
    lower95: float
    upper95: float
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Labels:
    """Majorities of at least ``LEAST`` taken for right: on which share of tasks there is one (``coverage``), and how
    often it is right, with Wilson's 95 % interval as if each task with one counted once; None where there is none."""

    name: str
    coverage: float
    right: float | None
    right95: tuple[float, float] | None


@dataclass(frozen=True)
class EnsembleScores:
    """``members`` alone, their ``majorities`` of as many attempts, and the ``vote``; ``best`` is the member that is
    compared. ``gains`` are the vote less the best alone, and less its majority, with p after Holm. ``labels`` and
    ``doubts`` are those of the vote, then of the best's own attempts: a doubt is what agreement with further attempts
    tells of the best member's answers."""

    members: tuple[Solver, ...]
    majorities: tuple[Solver, ...]
    vote: Solver
    best: str
    gains: tuple[tuple[Difference, float], ...]
    labels: tuple[Labels, ...]
    doubts: tuple[Worth | None, ...]


def ensemble_scores(members: Mapping[str, Answers]) -> EnsembleScores:
    """Score ``members``, by name, on the same tasks in the same order; of equals the first by name wins.

    Raises:
        ValueError: fewer than two members, unlike numbers of tasks, or fewer attempts at one than members.
    """
    size, tasks = len(members), {len(answers) for answers in members.values()}
    fewest = min((len(answers) for member in members.values() for answers, _ in member), default=0)
    if size < 2 or len(tasks) != 1 or fewest < size:
        raise ValueError(f"{size} members with {sorted(tasks)} tasks and {fewest} attempts at each are no ensemble")
    attempts = {name: [_attempts(*task) for task in answers] for name, answers in sorted(members.items())}
    alone = {name: _solver(name, 1, [_groups(task, 1) for task in tried]) for name, tried in attempts.items()}
    repeats = {name: [_groups(task, size) for task in tried] for name, tried in attempts.items()}
    majorities = {name: _solver(f"majority of {size} by {name}", size, groups) for name, groups in repeats.items()}
    votes = [_votes(task) for task in zip(*attempts.values(), strict=True)]
    vote = _solver(f"vote of {size} members", size, votes)
    best = max(alone, key=lambda name: alone[name].accuracy)
    differences = [compare(solver.scores, vote.scores) for solver in (alone[best], majorities[best])]
    adjusted = holm([difference.p for difference in differences])
    return EnsembleScores(
        members=(*alone.values(),),
        majorities=(*majorities.values(),),
        vote=vote,
        best=best,
        gains=tuple((agreeing(d, p), p) for d, p in zip(differences, adjusted, strict=True)),
        labels=(_labels(vote.name, votes), _labels(majorities[best].name, repeats[best])),
        doubts=(_doubt(_beside_others(attempts, best)), _doubt(_beside_own(attempts[best], size))),
    )


def _attempts(answers: Sequence[str | None], verdicts: Sequence[bool | None]) -> list[Attempted]:
    return [
        Attempted(None if answer is None else normal_form(answer), verdict is True)
        for answer, verdict in zip(answers, verdicts, strict=True)
    ]


def _groups(tried: Sequence[Attempted], size: int) -> list[Sequence[Attempted]]:
    """Attempts in groups of ``size``; those left over are in none."""
    return [tried[start : start + size] for start in range(0, len(tried) - size + 1, size)]


def _votes(members: Sequence[Sequence[Attempted]]) -> list[list[Attempted]]:
    """As many votes as there are attempts; each member's is one further on than that of the member before it."""
    return [
        [tried[(start + step) % len(tried)] for step, tried in enumerate(members)] for start in range(len(members[0]))
    ]


def majority(attempts: Sequence[Attempted]) -> tuple[bool, int]:
    """Whether the most frequent answer is right, and how many gave it; ties go to the answer that came first."""
    counts = Counter(attempt.form for attempt in attempts if attempt.form is not None)
    if not counts:
        return False, 0
    form, count = counts.most_common(1)[0]
    return next(attempt.right for attempt in attempts if attempt.form == form), count


def _solver(name: str, size: int, groups: Sequence[Sequence[Sequence[Attempted]]]) -> Solver:
    """``groups`` are those of each task; one answer is taken from each group."""
    scores = tuple(fmean(majority(group)[0] for group in task) for task in groups)
    return Solver(name, size, fmean(scores), *bootstrap(scores), scores)


def _labels(name: str, groups: Sequence[Sequence[Sequence[Attempted]]]) -> Labels:
    outcomes = [[right for right, count in map(majority, task) if count >= LEAST] for task in groups]
    labelled, right = sum(map(len, outcomes)), sum(map(sum, outcomes))
    coverage = labelled / sum(map(len, groups))
    if not labelled:
        return Labels(name, coverage, None, None)
    tasks = sum(map(bool, outcomes))
    return Labels(name, coverage, right / labelled, wilson(round(right / labelled * tasks), tasks))


Agreement = tuple[str, float, bool]
"""Of an answer: its task, the share of further attempts that agree with it, and whether it is right."""


def _beside_others(attempts: Mapping[str, Attempts], best: str) -> Iterator[Agreement]:
    """The best member's answers beside an attempt of each other member."""
    others = [tried for name, tried in attempts.items() if name != best]
    for number, task in enumerate(attempts[best]):
        for index, attempt in enumerate(task):
            if attempt.form is not None:
                further = [other[number][(index + step) % len(task)] for step, other in enumerate(others, 1)]
                yield f"{number}", fmean(each.form == attempt.form for each in further), attempt.right


def _beside_own(tried: Attempts, size: int) -> Iterator[Agreement]:
    """The same answers beside as many of the member's own next attempts."""
    for number, task in enumerate(tried):
        for index, attempt in enumerate(task):
            if attempt.form is not None:
                further = [task[(index + step) % len(task)] for step in range(1, size)]
                yield f"{number}", fmean(each.form == attempt.form for each in further), attempt.right


def _doubt(agreements: Iterator[Agreement]) -> Worth | None:
    rows = [*agreements]
    return worth([agreed for _, agreed, _ in rows], [right for *_, right in rows], [task for task, *_ in rows])
