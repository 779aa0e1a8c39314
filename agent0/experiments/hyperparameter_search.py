"""Hyperparameter search over a run's log: which trials there are, and their validation scores.

A trial trains a run's stored trajectories again under other settings. Test is never scored: what is selected here would
be selected on it.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.errors import ConfigError
from agent0.events.base import sha256
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.settings import RecipeConfig
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import Difference, agreeing, compare, holm, outcomes

MOST = 1000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
PLACES = ("processes", "micro_batch", "gradient_checkpointing")
"""Settings of a recipe that say where and how it is computed, not what is learnt."""

Space = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Trial:
    """One recipe to try. Its name follows from the search's name and from its settings, whatever else is searched."""

    name: str
    settings: Mapping[str, str]

    @property
    def settings_text(self) -> str:
        """The settings for display: ``rank 16, lr 0.001``."""
        return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in self.settings.items())


def space_of(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse a search space written as ``rank=4,16``; a name without a dot is one of the student's recipe.

    Raises:
        ConfigError: no pair, a key that is no recipe's, or one without values.
    """
    out: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        values = tuple(dict.fromkeys(filter(None, (value.strip() for value in text.split(",")))))
        full = _full(key.strip())
        if not values or full in out:
            why = "It has no values." if not values else "It is searched twice."
            raise ConfigError(f"--search {pair[:80]!r} is no search.", why, "Write --search rank=4,16,64.")
        out[full] = values
    if not out:
        raise ConfigError("There is nothing to search over.", fix="Say --search rank=4,16 --search lr=1e-3,3e-3.")
    return out


def _full(key: str) -> str:
    full = key.removeprefix("run.")
    full = full if "." in full else f"training.student.{full}"
    head, _, name = full.rpartition(".")
    searchable = [
        name_of_field for name_of_field in RecipeConfig.model_fields if name_of_field not in (*PLACES, "enabled")
    ]
    if head != "training.student" or name not in searchable:
        why = "A trial trains the student's stored trajectories again, so only its recipe can be searched."
        raise ConfigError(f"{key[:80]!r} cannot be searched over.", why, f"Known: {', '.join(searchable)}.")
    return full


def trials(name: str, space: Space, number: int = 0, seed: int = 0) -> list[Trial]:
    """All combinations of the space, or ``number`` of them drawn without repetition.

    The same for the same seed; a larger ``number`` extends a smaller one.

    Raises:
        ConfigError: a name that cannot be, or too many trials.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"A search cannot be named {name[:80]!r}.", fix="Use letters, digits, '_' and '-', at most 40."
        )
    count = 1
    for values in space.values():
        count *= len(values)
    if (number or count) > MOST:
        raise ConfigError(f"That would be {number or count:,} trials.", f"{MOST:,} are the most.", "Say --trials N.")
    draw, places = random.Random(seed), dict.fromkeys(range(count) if not 0 < number < count else ())
    while len(places) < min(number, count):
        places[draw.randrange(count)] = None
    return [_trial(name, space, number_of_trial) for number_of_trial in places]


def _trial(name: str, space: Space, number: int) -> Trial:
    """The combination number ``number``: the last key changes fastest."""
    settings: dict[str, str] = {}
    for key, values in reversed(list(space.items())):
        number, at = divmod(number, len(values))
        settings[key] = values[at]
    settings = {key: settings[key] for key in space}
    return Trial(f"{name}-{sha256(str(sorted(settings.items())))[:8]}", settings)


@dataclass(frozen=True)
class Tried:
    """The outcome of one trial: its checkpoints and their validation scores, in order."""

    name: str
    settings: Mapping[str, str]
    trained: Sequence[CheckpointTrained]
    scored: Sequence[CheckpointEvaluated]


def outcome(original: Tried, tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """One row for each trial, best validation score first, each compared with the run's ``original`` on the same
    items.

    With Holm's correction over the trials. The run's own is among them, without a comparison.
    """
    scored = [trial for trial in tried if trial.scored]
    differences = [_difference(original, trial) for trial in scored]
    adjusted = iter(holm([difference.p for difference in differences if difference]))
    rows = [_row(original, None, None)] if original.scored else []
    rows += [
        _row(trial, change, next(adjusted) if change else None)
        for trial, change in zip(scored, differences, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["validation"], row["steps"], row["trial"]))


def _difference(original: Tried, trial: Tried) -> Difference | None:
    before, after = (tried.scored[-1].outcomes if tried.scored else "" for tried in (original, trial))
    if not before or len(before) != len(after):
        return None
    return compare(outcomes(before), outcomes(after), rounds=0)  # its interval is made with the adjusted p


def _row(trial: Tried, change: Difference | None, adjusted: float | None) -> dict[str, Any]:
    last = trial.scored[-1]
    low, high = wilson(last.correct, last.n)
    shown = agreeing(change, adjusted) if change and adjusted is not None else None
    return {
        "trial": trial.name,
        "settings": dict(trial.settings),
        "validation": last.accuracy,
        "low": low,
        "high": high,
        "n": last.n,
        "tool_use": last.tool_use,
        "difference": shown.mean if shown else None,
        "difference_low": shown.lower95 if shown else None,
        "difference_high": shown.upper95 if shown else None,
        "changed": shown.gained + shown.lost if shown else None,
        "detectable": shown.detectable if shown else None,
        "adjusted_p": adjusted,
        "word": shown.claimed(adjusted) if shown and adjusted is not None else "",
        "steps": _steps(trial, last.iteration),
        "training_s": round(sum(each.wall_s for each in trial.trained), 1),
        "by_checkpoint": [{"checkpoint": each.checkpoint, "validation": each.accuracy} for each in trial.scored],
    }


def best_by_budget(original: Tried, tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """After each checkpoint (so many trainings, so many steps): the leading recipe, the cheaper of equals."""
    recipes = (original, *tried)
    checkpoints = {scored.checkpoint for recipe in recipes for scored in recipe.scored}
    rows = []
    for number, checkpoint in enumerate(sorted(checkpoints, key=lambda name: int(name.rpartition("-")[2])), start=1):
        there = [(recipe, scored) for recipe in recipes for scored in recipe.scored if scored.checkpoint == checkpoint]
        best, scored = max(there, key=lambda pair: (pair[1].accuracy, -_steps(pair[0], pair[1].iteration)))
        low, high = wilson(scored.correct, scored.n)
        row = {"trainings": number, "checkpoint": checkpoint, "steps": _steps(best, scored.iteration)}
        row |= {"trial": best.name, "settings": dict(best.settings)}
        rows.append({**row, "validation": scored.accuracy, "low": low, "high": high})
    return rows


def _steps(trial: Tried, iteration: int) -> int:
    """Taken up to this iteration."""
    return round(sum(each.metrics.get("steps", 0) for each in trial.trained if each.iteration <= iteration))
