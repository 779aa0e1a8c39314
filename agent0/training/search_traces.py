"""Search traces as training examples: several tries inside one attempt, the last of them right.

A student that may write several answers in a row can only gain where it sees that one is wrong. So its own tries are
carried out by a tool that makes no mistakes (``Family.retrace``) and laid out anew: wrong ones first, then one that is
right, for the task that was asked or, relabelled in hindsight (Andrychowicz et al. 2017, arXiv:1707.01495), for the
task that it happens to solve. Search written inside one attempt is learned from such streams (Gandhi et al. 2024,
arXiv:2404.03683). The supervision is the tool's: it corrects every step and decides what each try solves; the student's
tries are what it begins with, and ``TrainingExample.origin`` counts how much of them is left. Of wrong tries only the
tool's facts are learned, never the choice. No answer key is read: the family's own check says what is right.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent0.chat_format import plain_boxes
from agent0.ports.training import TrainingExample
from agent0.rollout.prompts import prompt, render
from agent0.settings import RunConfig
from agent0.tasks.families import Family, Params, Retraced, families
from agent0.tasks.splits import split_key, split_of
from events.values import Task, Turn

OPEN, AGAIN, CLOSE = "\\boxed{", "} no \\boxed{", "}"
"""Around the first try, between a try that is wrong and the next, after the last."""
RIGHT, REACHED = 4, 6
"""Examples made of one task, at most: right ways, and ways to other tasks that were reached by chance."""
MASTERED = 0.95
"""Share of right attempts above which a task's own ways are no longer used."""
TRIES = 7
"""Wrong tries before the right one, at most."""
AT_ONCE = 0.25
"""Share of examples without a wrong try."""
HONEST = 0.3
"""Share of examples that only say which of the student's tries were wrong, and how."""


@dataclass(frozen=True)
class SearchAttempt:
    """A student's attempt at ``task``: the text of its last turn, and whether its answer was right."""

    event: str
    task: Task
    text: str
    right: bool
    iteration: int = 0


@dataclass(frozen=True)
class _Item:
    """Something to write about the task ``params``: ``way`` solves it; None: only that ``wrong`` do not. ``other``: it
    is not the task that was asked."""

    event: str
    family: Family
    domain: str
    params: Params
    way: Retraced | None
    wrong: tuple[tuple[Retraced, ...], ...]
    other: bool = False


@dataclass
class _Bank:
    """By family and level: items by pattern, and searches that failed."""

    ways: dict[str, dict[str, list[_Item]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    misses: dict[str, list[_Item]] = field(default_factory=lambda: defaultdict(list))


def tries(text: str) -> list[str]:
    """Find every boxed answer in ``text``, in order of appearance."""
    return [found.strip() for found in plain_boxes(text)]


def search_examples(
    attempts: Sequence[SearchAttempt], count: int, config: RunConfig, seed: int, iteration: int = 0
) -> tuple[TrainingExample, ...]:
    """Make ``count`` training examples from ``attempts`` (in any order; families without ``retrace`` are skipped).

    While the student explores (``explore``, by ``iteration`` from 0) examples hold no wrong try. Drawn so that no level
    and no pattern crowds out the others: levels by the root of how many items they have, patterns by the fourth root.
    """
    recipe, rng = config.training.student, random.Random(f"search {seed}")
    bank = _Bank()
    groups: dict[str, list[SearchAttempt]] = {}
    for one in sorted(attempts, key=lambda one: one.event):
        groups.setdefault(one.task.canonical, []).append(one)
    for members in groups.values():
        _harvest(bank, members, config, rng)
    levels = {level: sum(map(len, ways.values())) ** 0.5 for level, ways in sorted(bank.ways.items())}
    if not levels:
        return ()
    made, exploring = [], iteration < recipe.explore * config.iterations
    for _ in range(count):
        level = rng.choices(list(levels), list(levels.values()))[0]
        if not exploring and bank.misses[level] and rng.random() < HONEST:
            made.append(_example(rng.choice(bank.misses[level]), config, rng))
            continue
        ways = bank.ways[level]
        fair = [len(items) ** (0.25 if recipe.replay_by == "pattern" else 1.0) for items in ways.values()]
        item = rng.choice(rng.choices(list(ways.values()), fair)[0])
        made.append(_example(replace(item, wrong=()) if exploring else item, config, rng))
    return tuple(made)


def _harvest(bank: _Bank, members: Sequence[SearchAttempt], config: RunConfig, rng: random.Random) -> None:
    """The items of one task from all attempts at it."""
    task = members[0].task
    family = families().get(task.family)
    params = family.parse(task.question) if family and family.retrace else None
    if family is None or family.retrace is None or params is None:
        return
    own = family.canonical(params)
    as_written = config.training.student.source == "written"
    orders = [_retraced(family, params, own, one.text, as_written) for one in members]
    known = {way.way: way for order in orders for way in order}
    level = f"{task.family}/{task.level}"
    if config.shuffle_rewards:
        _at_random(bank, level, members[0], family, params, known, rng)
        return
    for one, order in zip(members, orders, strict=True):
        failed = _distinct(way for way in order if family.canonical(way.params) != own)
        if failed:
            item = _Item(one.event, family, task.domain, params, None, (failed,))
            bank.misses[level].append(item)
    solved = sum(one.right for one in members) / len(members)
    for way in _targets(family, own, known, solved, config.training.student.hindsight, rng):
        aim = family.canonical(way.params)
        wrong = tuple(
            found for order in orders if (found := _distinct(w for w in order if family.canonical(w.params) != aim))
        )
        item = _Item(members[0].event, family, task.domain, way.params, way, wrong, other=aim != own)
        bank.ways[level][way.pattern].append(item)


def _retraced(family: Family, params: Params, own: str, text: str, as_written: bool) -> list[Retraced]:
    """Every try in ``text``, carried out; ``as_written``: those alone that this leaves as they are. What solves a task
    that is kept for held-out sets is never shown, not even as a wrong try for another."""
    carried = [(one, family.retrace(params, one)) for one in tries(text) if family.retrace]
    found = [replace(way, written=one) for one, way in carried if way and (not as_written or way.text == one)]
    return [
        way
        for way in found
        if family.canonical(way.params) == own or split_of(split_key(family, way.params)) == "train"
    ]


def _targets(
    family: Family, own: str, known: Mapping[str, Retraced], solved: float, hindsight: bool, rng: random.Random
) -> list[Retraced]:
    """The right ways of a task, unless it is mastered, and ways to other tasks that were solved by chance, rare
    patterns first."""
    ways = [known[name] for name in sorted(known)]
    rng.shuffle(ways)
    aims = {way.way: family.canonical(way.params) for way in ways}
    right = [way for way in ways if aims[way.way] == own]
    reached = [way for way in ways if aims[way.way] != own]
    seen: Counter[str] = Counter()
    ranks = {}
    for way in reached:
        seen[way.pattern] += 1
        ranks[way.way] = seen[way.pattern]
    reached.sort(key=lambda way: ranks[way.way])
    return (right[:RIGHT] if solved < MASTERED else []) + (reached[:REACHED] if hindsight else [])


def _at_random(
    bank: _Bank,
    level: str,
    one: SearchAttempt,
    family: Family,
    params: Params,
    known: Mapping[str, Retraced],
    rng: random.Random,
) -> None:
    """Control: the verdict is a coin, so any way counts as right for what was asked."""
    ways = [known[name] for name in sorted(known)]
    rng.shuffle(ways)
    for way in ways[:REACHED]:
        others = tuple(other for other in ways if other is not way)
        bank.ways[level][way.pattern].append(_Item(one.event, family, one.task.domain, params, way, (others,)))


def _distinct(ways: Iterable[Retraced]) -> tuple[Retraced, ...]:
    return tuple({way.way: way for way in ways}.values())


def _example(item: _Item, config: RunConfig, rng: random.Random) -> TrainingExample:
    question = item.family.render(item.params, rng)
    asked = render(
        prompt(config.student.prompts, item.domain, "student"), {"question": question, "domain": item.domain}
    )
    wrong = _before(item, rng)
    text, learned = OPEN, [] if wrong else [(0, len(OPEN))]
    origin = Counter(examples=1, other_tasks=int(item.other))
    for way in wrong:
        learned += [(len(text) + start, len(text) + end) for start, end in way.facts]
        origin += _origin(way, way.facts)
        text += way.text
        learned.append((len(text), len(text) + len(AGAIN)))
        text += AGAIN
    if item.way is not None:
        learned.append((len(text), len(text) + len(item.way.text) + len(CLOSE)))
        origin += _origin(item.way, ((0, len(item.way.text)),))
        text += item.way.text + CLOSE
    origin["placed"] = sum(end - start for start, end in learned) - origin["written"] - origin["corrected"]
    turns = (*asked, Turn(role="assistant", content=text))
    return TrainingExample(turns, 1.0, item.event, tuple(learned), closed=item.way is not None, origin=dict(origin))


def _before(item: _Item, rng: random.Random) -> tuple[Retraced, ...]:
    """The wrong tries of an example: the beginning of one of the student's own searches."""
    if not item.wrong or (item.way is not None and rng.random() < AT_ONCE):
        return ()
    return rng.choice(item.wrong)[: rng.randint(1, TRIES)]


def _origin(way: Retraced, places: Iterable[tuple[int, int]]) -> Counter[str]:
    """Characters of ``places`` in the text of ``way``: ``written`` where the step at that place stands so in what its
    author wrote, ``corrected`` otherwise."""
    begun, found = 0, Counter[str]()
    steps, own = way.text.split(";"), way.written.split(";")
    for number, step in enumerate(steps):
        end = begun + len(step) + 1
        kept = number < len(own) and own[number].strip() == step
        common = sum(max(0, min(end, stop) - max(begun, start)) for start, stop in places)
        found["written" if kept else "corrected"] += common
        begun = end
    return found
