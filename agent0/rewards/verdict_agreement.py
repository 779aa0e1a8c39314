"""Whether rewards separate right attempts from wrong ones, compared between two sets of rules on the same attempts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent0.errors import OperationError
from agent0.stats.paired_tests import compare
from agent0.stats.regression_rule import TASKS, Regression, RegressionRule


@dataclass(frozen=True)
class RewardedAttempt:
    """An attempt of a stored run with its recorded verdict and its total ``reward`` under one set of rules."""

    task: str
    correct: bool
    reward: float


def reward_regression(
    base: Mapping[str, RewardedAttempt], change: Mapping[str, RewardedAttempt], rule: RegressionRule
) -> Regression:
    """Compare two reward rules on the attempts of one stored run: the share of attempts whose reward, less the mean of
    their task, has the sign of their verdict. Only tasks with right and wrong attempts count, each as one pair.

    Raises:
        OperationError: there is no such task.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for attempt in sorted(base.keys() & change.keys()):
        groups[base[attempt].task].append(attempt)
    mixed = {task: group for task, group in groups.items() if len({base[each].correct for each in group}) == 2}
    if not mixed:
        why = "Only tasks with right and wrong attempts show whether rewards separate them."
        raise OperationError("The run has no task to compare rewards on.", why, "Name another run: --replay RUN")
    left = {task: _agreement([base[each] for each in group]) for task, group in mixed.items()}
    right = {task: _agreement([change[each] for each in group]) for task, group in mixed.items()}
    difference = compare([*left.values()], [*right.values()])
    lost = tuple(task for task in mixed if right[task] < left[task])
    return Regression(rule, fmean(left.values()), fmean(right.values()), difference, lost, TASKS)


def _agreement(attempts: Sequence[RewardedAttempt]) -> float:
    mean = fmean(attempt.reward for attempt in attempts)
    return fmean(
        float(attempt.reward > mean) if attempt.correct else float(attempt.reward < mean) for attempt in attempts
    )
