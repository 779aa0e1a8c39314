"""Which settings of a run differ from its profile, and from the last run that went well."""

import json
import sqlite3
from typing import Any

from agent0.config.loading import leaves, packaged_run
from agent0.run.diagnosis.case import Setting
from agent0.settings import RunConfig
from projections.base import Row, select

SIZES = ("run.seed", "run.iterations", "run.tasks", "run.attempts", "run.energy.power_w", "run.energy.price_kwh")
"""Settings that say how large a run is, or what it costs: told of last."""


def changes_of(db: sqlite3.Connection, row: Row, config: RunConfig) -> tuple[Setting, ...]:
    """List the settings of a run that differ from its packaged profile; where there is none, from the run of the same
    profile that went well last."""
    own = dict(leaves(config.model_dump(mode="json"), "run."))
    profile = packaged_run(str(row["profile"] or ""))
    if profile is not None:
        other, source = dict(leaves(profile.model_dump(mode="json"), "run.")), f"profile {row['profile']}"
    elif good := _last_good(db, row):
        held = RunConfig.recorded(json.loads(good["config"]))
        other, source = dict(leaves(held.model_dump(mode="json"), "run.")), f"run {good['run']}, which went well,"
    else:
        return ()
    found = [Setting(key, own.get(key), other.get(key), source) for key in {**other, **own} if _differ(own, other, key)]
    return tuple(sorted(found, key=lambda one: (one.key in SIZES, one.key)))


def _differ(own: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    return bool(own.get(key) != other.get(key))


def _last_good(db: sqlite3.Connection, row: Row) -> Row | None:
    """The newest finished run before it of the same profile that promoted a student."""
    found = select(
        db,
        "SELECT run, config FROM runs WHERE profile = ? AND run != ? AND ended = 'finished' AND student != 'base'"
        " AND started < ? ORDER BY started DESC LIMIT 1",
        (row["profile"], row["run"], row["started"]),
    )
    return found[0] if found else None
