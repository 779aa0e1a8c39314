"""The tries that search examples are made from (``training.student.source``): the student's own, or those of a control.

Pure: the same attempts and configuration give the same tries.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from agent0.settings import RunConfig
from agent0.tasks.families import families
from agent0.training.search_traces import AGAIN, CLOSE, OPEN, SearchAttempt, tries


def apply_source(attempts: Sequence[SearchAttempt], config: RunConfig) -> list[SearchAttempt]:
    """Replace the tries of ``attempts`` by those of the configured source:

    - ``own``: as they are.
    - ``random``: each with as many uniformly random derivations of its task (``Family.derive``) in place of its tries;
      nothing that a model wrote is left. It is right where the last one is, by the family's check.
    - ``permuted``: each with the verdict of another attempt of its iteration.
    - ``wrong``: each with the verdict wrong.
    """
    match config.training.student.source:
        case "random":
            return [_random(one, random.Random(f"derivations {config.seed} {one.event}")) for one in attempts]
        case "permuted":
            return _permuted(attempts, config.seed)
        case "wrong":
            return [replace(one, right=False) for one in attempts]
    return list(attempts)


def _random(one: SearchAttempt, rng: random.Random) -> SearchAttempt:
    family = families().get(one.task.family)
    params = family.parse(one.task.question) if family else None
    if family is None or family.derive is None or family.check is None or params is None:
        return replace(one, text="", right=False)
    written = [family.derive(params, rng) for _ in tries(one.text)]
    right = bool(written) and not family.check(params, written[-1])
    return replace(one, text=OPEN + AGAIN.join(written) + CLOSE if written else "", right=right)


def _permuted(attempts: Sequence[SearchAttempt], seed: int) -> list[SearchAttempt]:
    """The permutation of an iteration depends on the run's seed and on its attempts alone, so a later iteration that
    uses them again finds the same."""
    groups: dict[int, list[SearchAttempt]] = defaultdict(list)
    for one in sorted(attempts, key=lambda one: one.event):
        groups[one.iteration].append(one)
    out = []
    for iteration, members in sorted(groups.items()):
        verdicts = [one.right for one in members]
        random.Random(f"verdicts {seed} {iteration}").shuffle(verdicts)
        out += [replace(one, right=right) for one, right in zip(members, verdicts, strict=True)]
    return out
