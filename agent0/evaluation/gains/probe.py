"""The tasks that gains are measured on: just beyond the student's frontier, and not solved by it."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.events.tasks import GainRequested
from agent0.events.values import Task
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.tasks.families import Family, requested_families
from agent0.tasks.splits import heldout

TRIED = 2
"""Tasks that the student tries, for each that the probe may hold: it may solve some."""
LEAST = 3
"""Tasks of a level, from which on its solve rate counts."""
SOLVED = 0.5


def frontiers(run: RunState) -> dict[str, int]:
    """The highest level of each family of which half of this iteration's attempts are right; at least
    ``curriculum.mastered``."""
    right: dict[tuple[str, int], list[list[bool]]] = defaultdict(list)
    for task in run.tasks.values():
        decided = [a.correct for a in task.attempts.values() if a.correct is not None]
        if task.proposal and decided:
            right[task.proposal.family, task.proposal.level].append(decided)
    levels = dict.fromkeys((family.name for family in _requested(run.config)), run.config.curriculum.mastered)
    for (name, level), tasks in right.items():
        verdicts = [verdict for decided in tasks for verdict in decided]
        if len(tasks) >= LEAST and sum(verdicts) >= SOLVED * len(verdicts):
            levels[name] = max(levels.get(name, 0), level)
    return levels


def candidates(request: GainRequested, run: RunState, without: AbstractSet[str]) -> list[Task]:
    """Draw the tasks that the student tries for the probe, families and levels alike, in an order by chance.

    They are of the training split, so in no held-out set, and none has a canonical form in ``without``.

    Raises:
        ValueError: there are not so many.
    """
    plan, requested = run.config.curriculum, _requested(run.config)
    at, drawn = frontiers(run), []
    for number, family in enumerate(requested):
        levels = _beyond(at[family.name], _top(family, run.config), plan.ahead)
        count = TRIED * run.config.rewards.gain.probe
        share = count // len(requested) + (number < count % len(requested))
        drawn += heldout(
            "train", share, request.seed, (family.domain,), names=(family.name,), levels=levels,
            without=without,
        )  # fmt: skip
    random.Random(f"probe {request.seed}").shuffle(drawn)
    return drawn


def unsolved(tasks: Iterable[Task], items: Iterable[ScoredItem], most: int) -> list[Task]:
    """The first ``most`` of ``tasks`` whose item is not right."""
    return [task for task, item in zip(tasks, items, strict=True) if not item.correct][:most]


def lines_of(tasks: Iterable[Task]) -> bytes:
    """Write ``tasks`` as JSON lines, in their order."""
    return "".join(f"{task.model_dump_json()}\n" for task in tasks).encode()


def tasks_of(lines: bytes) -> list[Task]:
    """Read the tasks that ``lines_of`` wrote, in their order."""
    return [Task.model_validate(json.loads(line)) for line in lines.splitlines()]


def _requested(config: RunConfig) -> list[Family]:
    plan = config.curriculum
    return [entry for domain in plan.domains for entry in requested_families(domain, plan.families).values()]


def _top(family: Family, config: RunConfig) -> int:
    """The highest level that may be asked: what is evaluated is known to fit the student's context."""
    levels = (*config.evaluation.levels, *config.curriculum.levels)
    return min(family.levels, max(levels, default=family.levels))


def _beyond(at: int, top: int, ahead: int) -> tuple[int, ...]:
    """The ``ahead`` levels above ``at``, or the highest ones there are."""
    end = min(at + ahead, top)
    return tuple(range(max(1, min(at + 1, end)), end + 1))
