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
    """List the settings of a run that differ from its packaged profile, but for those that the last run of this profile
    that went well had too; then others that differ from that run's."""
    own, good = _flat(config), _last_good(db, row)
    profile = packaged_run(str(row["profile"] or ""))
    kept = recorded_config(json.loads(good["config"])) if good else None
    usual = _flat(kept) if kept else {}
    found: dict[str, Setting] = {}
    if profile is not None:
        packaged = _flat(profile)
        keys = [key for key in own if own[key] != packaged.get(key) and not (usual and own[key] == usual.get(key))]
        found = {key: Setting(key, own[key], packaged.get(key), f"profile {row['profile']}") for key in keys}
    if good and usual:
        source = f"run {good['run']}, which went well,"
        keys = [key for key in own if own[key] != usual.get(key) and key not in found]
        found |= {key: Setting(key, own[key], usual.get(key), source) for key in keys}
    return tuple(sorted(found.values(), key=lambda one: (one.key in SIZES, "profile" not in one.source, one.key)))


def recorded_config(plain: dict[str, Any]) -> RunConfig | None:
    """The settings of a run as its start recorded them; None where this version cannot read them."""
    try:
        return RunConfig.recorded(plain)
    except ValueError:
        return None


def _flat(config: RunConfig) -> dict[str, Any]:
    return dict(leaves(config.model_dump(mode="json"), "run."))


def _last_good(db: sqlite3.Connection, row: Row) -> Row | None:
    """The newest finished run before it of the same profile that promoted a student."""
    found = select(
        db,
        "SELECT run, config FROM runs WHERE profile = ? AND run != ? AND ended = 'finished' AND student != 'base'"
        " AND started < ? ORDER BY started DESC LIMIT 1",
        (row["profile"], row["run"], row["started"]),
    )
    return found[0] if found else None
