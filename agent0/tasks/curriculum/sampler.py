"""Which tasks to request: a bandit over domain x family x level that seeks tasks the student solves sometimes, one that
seeks learning progress (``agent0.tasks.curriculum.progress``), or the rungs of ladders, around the student's frontier
or one after the other (``agent0.tasks.curriculum.frontier``).

Constraints keep a curriculum diverse: minimum entropy, maximum share of a family, maximum age of a slot. Each is off by
default and acts on the probabilities of one domain's slots, so none changes how rewards are assigned.
"""

import math
import random
from collections.abc import Mapping, Sequence

from agent0.events.values import DOCUMENTS, QUESTIONS
from agent0.state.replace import changed
from agent0.state.run_state import Arm, RunState, TaskState, arm_key
from agent0.tasks.curriculum import frontier, progress
from agent0.tasks.families import OPEN_FAMILY, requested_families
from agent0.tasks.questions import passages_of_iteration, rows_of_iteration
from agent0.tasks.seeds import derive_seed

Slot = tuple[str, str, int]
ANY_LEVEL = 0
"""What a request names where the teacher is to choose the level itself."""


def entropy(chances: Sequence[float]) -> float:
    """The entropy of a distribution over slots, as a share of the largest possible; 1 for a single slot."""
    total = sum(chances)
    if len(chances) < 2 or total <= 0:
        return 1.0
    shares = [c / total for c in chances]
    return -sum(share * math.log(share) for share in shares if share > 0) / math.log(len(chances))


def broadened(weights: Sequence[float], floor: float) -> list[float]:
    """Turn ``weights`` into probabilities, mixed with the uniform distribution just as far as their entropy needs to
    reach ``floor`` (a share of the largest possible)."""
    total, n = sum(weights), len(weights)
    chances = [w / total for w in weights] if total > 0 else [1 / n] * n
    if entropy(chances) >= floor:
        return chances
    low, high = 0.0, 1.0
    for _ in range(40):  # the entropy of a mixture with the uniform rises with its share
        middle = (low + high) / 2
        mixed = [(1 - middle) * c + middle / n for c in chances]
        low, high = (low, middle) if entropy(mixed) >= floor else (middle, high)
    return [(1 - high) * c + high / n for c in chances]


def open_slots(arms: Sequence[Slot], chosen: Sequence[Slot], share: float, tasks: int) -> list[Slot]:
    """Slots of families that have not reached ``share`` of the iteration's ``tasks`` yet; all where none is left."""
    most = max(1, math.floor(share * tasks))
    counts: dict[str, int] = {}
    for _, family, _ in chosen:
        counts[family] = counts.get(family, 0) + 1
    left = [arm for arm in arms if counts.get(arm[1], 0) < most]
    return left or list(arms)


def stale(arms: Sequence[Slot], last: Mapping[Slot, int], iteration: int, patience: int) -> list[Slot]:
    """Slots that were not requested in the last ``patience`` iterations, oldest first.

    ``last`` has the iteration in which a slot was last requested; -1 or absent: never.
    """
    ages = [(last.get(arm, -1), index) for index, arm in enumerate(arms)]
    return [arms[index] for requested, index in sorted(ages) if iteration - requested > patience]


def frontier_value(rate: float) -> float:
    """The learnability of a solve rate p, ``1 - 2|p - 1/2|`` (arXiv 2511.16043, section 3.2): 1 at 1/2, 0
    at 0 and 1."""
    return 1 - 2 * abs(rate - 0.5)


def learn(arm: Arm | None, rate: float | None) -> Arm:
    """Update the bandit's value with one more closed task; a task without a solve rate only counts as closed.

    Older tasks decay by 0.92 (half-life about 8 tasks), since the student changes.
    """
    arm = arm or Arm()
    keep = 0.92
    value, solved = (0.0, 0.0) if rate is None else (frontier_value(rate), rate)
    return Arm(arm.closed * keep + 1, arm.value * keep + value, arm.solved * keep + solved, arm.last_requested)


def remember(state: RunState) -> dict[str, Arm]:
    """Update the bandit after this iteration's tasks, in slot order, so that the order of completion does not matter.
    Rows of a file are asked in turn and passages drawn, whatever becomes of them; tasks of a folder count for the slot
    of their level."""
    tasks = {name: task for name, task in state.tasks.items() if task.family not in (QUESTIONS, DOCUMENTS)}
    state = changed(state, tasks={**tasks, **_in_folders(state)})
    if state.config.curriculum.kind in ("frontier", "rising"):
        return frontier.remember(state)
    if state.config.curriculum.kind == "progress":
        return progress.remember(state)
    arms = dict(state.arms)
    for task in sorted((t for t in state.tasks.values() if t.paid), key=lambda t: t.slot):
        key = arm_key(task.domain, task.family, task.level)
        arms[key] = learn(arms.get(key), task.solve_rate)
    if state.config.curriculum.patience:
        for task in state.tasks.values():
            key = arm_key(task.domain, task.family, task.level)
            arms[key] = changed(arms.get(key, Arm()), last_requested=state.iteration + 1)
    return arms


def _in_folders(state: RunState) -> dict[str, TaskState]:
    """This iteration's tasks of a folder, each in the slot of its level."""
    return {
        name: changed(task, domain=state.config.questions.domain, level=task.proposal.level)
        for name, task in state.tasks.items()
        if task.family == QUESTIONS and task.proposal and task.proposal.row and task.proposal.row.repository
    }


def row_levels(state: RunState, levels: Sequence[int], count: int) -> list[int]:
    """Choose the levels of the iteration's first ``count`` rows of a folder that has tasks of ``levels``, as slots are
    chosen: by the bandit, or around the frontier. More rows change no earlier one. Empty where the curriculum follows
    no student, or there is one level."""
    plan = state.config.curriculum
    if plan.kind not in ("bandit", "progress", "frontier") or len(levels) < 2:
        return []
    rungs = [(state.config.questions.domain, QUESTIONS, level) for level in levels]
    if plan.kind == "frontier":
        near = frontier.around(lambda each: frontier.frontier(state.arms, each, plan.mastered), rungs, plan)
        return [near[number % len(near)][2] for number in range(count)]
    rng, weights = random.Random(derive_seed(state.config.seed, "levels", state.iteration)), _weights(state, rungs)
    return [rng.choices(rungs, None if rng.random() < plan.exploration else weights)[0][2] for _ in range(count)]


def slots(state: RunState, long: bool = False) -> list[Slot]:
    """List every domain x family x level that the run may request, of short families or of ``long`` ones.

    Where settings name ``OPEN_FAMILY``, free questions of every domain and level are among the short ones.
    """
    plan = state.config.curriculum
    free = OPEN_FAMILY in plan.families and not long
    return [
        (domain, name, level)
        for domain in plan.domains
        for name, family in requested_families(domain, plan.families, long).items()
        for level in plan.levels
        if level <= family.levels
    ] + [(domain, OPEN_FAMILY, level) for domain in plan.domains for level in plan.levels if free]


def allocate(state: RunState) -> list[Slot]:
    """Choose the slots of this iteration's tasks: ``config.tasks``, then those in place of tasks without contrast. They
    are drawn for as many as there may be, so that earlier ones stay what they are as the iteration asks for more."""
    config, chosen = state.config, _first_slots(state)
    if (more := state.tasks_asked - config.tasks) <= 0:
        return chosen
    most = max(config.most_tasks, state.tasks_asked) - config.tasks
    further = config.model_copy(update={"tasks": most, "seed": derive_seed(config.seed, "refill")})
    slots, rows = _first_slots(changed(state, config=further)), rows_of_iteration(further)
    places = [(at + 0.5) / rows for at in range(rows)] + [(at + 0.5) / (most - rows) for at in range(most - rows)]
    mixed = sorted(range(most), key=places.__getitem__)  # rows in their share, however many are asked for
    return chosen + [slots[at] for at in mixed[:more]]


def _first_slots(state: RunState) -> list[Slot]:
    """Choose ``config.tasks`` slots: first those of rows of a file, then those of passages of documents, then the
    teacher's other ones."""
    config, rows, passages = state.config, rows_of_iteration(state.config), passages_of_iteration(state.config)
    chosen: list[Slot] = [(config.questions.domain, QUESTIONS, ANY_LEVEL)] * rows
    chosen += [(DOCUMENTS, DOCUMENTS, ANY_LEVEL)] * passages
    if left := config.tasks - len(chosen):
        chosen += _of_teacher(changed(state, config=config.model_copy(update={"tasks": left})))
    return chosen


def _of_teacher(state: RunState) -> list[Slot]:
    """Choose ``config.tasks`` slots that the teacher is asked for.

    Domains take turns; within a domain, the share ``exploration`` is uniform and the rest is drawn in proportion to
    estimated learnability (untried slots count as promising). ``curriculum.long`` of the slots request long tasks,
    where their domain has any. Three constraints (``broadened``, ``open_slots``, ``stale``) apply where settings ask
    for them: slots not requested lately come first, no family exceeds its share, and probabilities keep a minimum
    entropy. ``curriculum.kind = "frontier"`` and ``"rising"`` draw nothing by chance and know no long tasks;
    ``"teacher"`` names no level: one slot for each family of a domain, in turns.
    """
    rng = random.Random(derive_seed(state.config.seed, "curriculum", state.iteration))
    short, long = _by_domain(slots(state)), _by_domain(slots(state, long=True))
    if state.config.curriculum.kind == "frontier":
        return frontier.spread(state, short)
    if state.config.curriculum.kind == "rising":
        return frontier.spread_rising(state, short)
    if state.config.curriculum.kind == "teacher":
        return _unlevelled(state, short)
    plan, long_places = state.config.curriculum, _long_places(state)
    order = [domain for domain in plan.domains if domain in short or (plan.long and domain in long)]
    waiting = {domain: _stale(state, arms) for domain, arms in short.items()}
    chosen: list[Slot] = []
    for number in range(state.config.tasks):
        domain = order[number % len(order)]
        asks_long = domain in long and (number in long_places or domain not in short)
        arms = open_slots(long[domain] if asks_long else short[domain], chosen, plan.max_share, state.config.tasks)
        uniform = plan.kind == "uniform" or rng.random() < plan.exploration
        weights = [1.0] * len(arms) if uniform else _weights(state, arms)
        drawn = rng.choices(arms, weights)[0]
        forgotten = [arm for arm in waiting.get(domain, ()) if arm in arms and not asks_long]
        chosen.append(forgotten[0] if forgotten else drawn)
        waiting[domain] = [arm for arm in waiting.get(domain, ()) if arm != chosen[-1]]
    return chosen


def _unlevelled(state: RunState, short: dict[str, list[Slot]]) -> list[Slot]:
    """``config.tasks`` slots at ``ANY_LEVEL``: domains take turns, within one its families do."""
    names = {domain: list(dict.fromkeys(name for _, name, _ in slots)) for domain, slots in short.items()}
    order, turns = list(names), [divmod(number, len(names)) for number in range(state.config.tasks)]
    return [(order[turn], names[order[turn]][at % len(names[order[turn]])], ANY_LEVEL) for at, turn in turns]


def _stale(state: RunState, arms: list[Slot]) -> list[Slot]:
    patience = state.config.curriculum.patience
    last = {arm: statistics.last_requested - 1 for arm in arms if (statistics := state.arms.get(arm_key(*arm)))}
    return stale(arms, last, state.iteration, patience) if patience else []


def _weights(state: RunState, arms: list[Slot]) -> list[float]:
    promises, floor = [_promise(state, arm) for arm in arms], state.config.curriculum.entropy
    return broadened(promises, floor) if floor else promises


def _by_domain(chosen: list[Slot]) -> dict[str, list[Slot]]:
    by_domain: dict[str, list[Slot]] = {}
    for slot in chosen:
        by_domain.setdefault(slot[0], []).append(slot)
    return by_domain


def _long_places(state: RunState) -> set[int]:
    """Which slots request long tasks: the configured share of them, the fraction being the probability of one more.
    They have a random stream of their own, so that requesting long tasks changes nothing else."""
    tasks, rng = state.config.tasks, random.Random(derive_seed(state.config.seed, "long", state.iteration))
    share = state.config.curriculum.long * tasks
    number = int(share) + (rng.random() < share % 1)
    return set(rng.sample(range(tasks), number))


def _promise(state: RunState, slot: Slot) -> float:
    """Learning progress, or estimated learnability with a prior worth one task at 0.5."""
    if state.config.curriculum.kind == "progress":
        return progress.promise(state.arms.get(arm_key(*slot)))
    arm = state.arms.get(arm_key(*slot), Arm())
    return 0.02 + (arm.value + 0.5) / (arm.closed + 1)
