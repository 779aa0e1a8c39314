"""Which settings of a run differ from its profile, or from the last run that went well."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent0.config.loading import packaged_run
from agent0.config.setting_entries import leaves
from agent0.projections.base import Row, select
from agent0.rewards import reward_sets, rewards
from agent0.run.diagnosis.case import Setting
from agent0.settings import ActorConfig, RunConfig
from agent0.settings.roles import is_packaged

SIZES = (
    "run.seed",
    "run.iterations",
    "run.time_limit",
    "run.tasks",
    "run.attempts",
    "run.energy.power_w",
    "run.energy.price_kwh",
)
"""Settings that say how large a run is, or what it costs: told of last."""
WEIGHT = "run.rewards.weights."
FILLED = ("prompts", "max_tokens", "num_ctx")
"""Settings whose defaults a catalogue entry replaces."""
OPEN = ("model", "base_url", "key_env", "tokenizer")
"""Which model a provider serves, and where."""


def changes_of(db: sqlite3.Connection, row: Row, config: RunConfig) -> tuple[Setting, ...]:
    """List the settings of a run that differ from its packaged profile, but for those that the last run of this profile
    that went well had too; where there is no such profile, those that differ from that run's."""
    own_values, usual, good = _flat(config), dict[str, object](), _last_good(db, row)
    if good and (kept := recorded_config(json.loads(good["config"]))):
        usual = _flat(kept)
    profile = packaged_run(str(row["profile"] or ""))
    other, source = (_flat(profile), f"profile {row['profile']}") if profile else (usual, "")
    if usual and not profile and good:
        source = f"run {good['run']}, which went well,"
    if not source:
        return ()
    keys = [key for key, value in own_values.items() if value != other.get(key)]
    keys = [key for key in keys if not _resolved(key, own_values, other)]
    keys = [key for key in keys if not (profile and key in usual and own_values[key] == usual[key])]
    other = other | _weights([key for key in keys if other.get(key) is None], config)
    settings = [Setting(key, own_values[key], other.get(key), source) for key in keys]
    return tuple(sorted(settings, key=lambda setting: (setting.key in SIZES, setting.key)))


def _resolved(key: str, run: Mapping[str, object], profile: Mapping[str, object]) -> bool:
    """Whether a start put a setting in the place of the profile's by itself: the file of a model that was named, what
    the model's entry has where the profile sets nothing, the form of calls that was tried, or a training that a server
    allows; or whether the profile leaves it open which model its provider serves, and where."""
    role, _, name = key.rpartition(".")
    other = profile.get(key)
    if name == "tool_form":
        return other == "auto"
    actor = role.replace("run.training.", "run.")
    provider = str(profile.get(f"{actor}.provider"))
    served = provider == run.get(f"{actor}.provider") and not is_packaged(provider, "")
    open_one = name in OPEN or (name == "enabled" and role != actor)
    if served and open_one and not profile.get(f"{actor}.model"):
        return not other
    named = str(profile.get(f"{role}.model") or "")
    if not named or named not in Path(str(run.get(f"{role}.model"))).parts:
        return False
    return name == "model" or (name in FILLED and other == ActorConfig.model_fields[name].default)


def _weights(keys: Sequence[str], config: RunConfig) -> dict[str, float]:
    """What parts of a reward weigh where no setting says so, by the settings' ``keys``; unknown parts are left out."""
    names = {key.removeprefix(WEIGHT): key for key in keys if key.startswith(WEIGHT)}
    if not names:
        return {}
    chosen = config.rewards.set
    if chosen not in reward_sets():  # of a plugin that is not loaded
        return {}
    parts = {**rewards("teacher", chosen), **rewards("student", chosen)}
    return {key: parts[name].weight for name, key in names.items() if name in parts}


def recorded_config(plain: Mapping[str, object]) -> RunConfig | None:
    """The settings of a run as its start recorded them; None where this version cannot read them."""
    try:
        return RunConfig.recorded(plain)
    except ValueError:
        return None


def _flat(config: RunConfig) -> dict[str, object]:
    return dict(leaves(config.model_dump(mode="json"), "run."))


def _last_good(db: sqlite3.Connection, row: Row) -> Row | None:
    """The newest finished run before it of the same profile whose last score on validation is above its first."""
    score = (
        "(SELECT accuracy FROM evaluations WHERE evaluations.run = runs.run AND split = 'validation'"
        " AND NOT forced_tool AND status = 'evaluated' ORDER BY evaluated_seq {} LIMIT 1)"
    )
    rows = select(
        db,
        "SELECT run, config FROM runs WHERE profile = ? AND run != ? AND ended = 'finished' AND started < ?"  # noqa: S608 - constants
        f" AND {score.format('DESC')} > {score.format('ASC')} ORDER BY started DESC LIMIT 1",
        (row["profile"], row["run"], row["started"]),
    )
    return rows[0] if rows else None
