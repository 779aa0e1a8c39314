"""Part of the rim: filters of lists of runs, checked against what runs can be."""

import sqlite3
from typing import get_args

from agent0.config.loading import profiles
from agent0.config.setting_entries import require_known
from agent0.projections.runs import RunFilter, run_labels
from agent0.state.run_state import Status

STATUSES = frozenset({*get_args(Status), "deleted"})


def require_status(status: str) -> None:
    """Require that runs can have ``status``; empty, it is none.

    Raises:
        ConfigError: they cannot.
    """
    require_known("status", filter(None, [status]), STATUSES)


def require_possible(db: sqlite3.Connection, chosen: RunFilter) -> None:
    """Require that runs can have the status and the profile that flags ask for.

    Raises:
        ConfigError: they cannot.
    """
    labels = run_labels(db)
    require_known("--status", filter(None, [chosen.status]), {*STATUSES, *labels["status"]})
    require_known("--profile", filter(None, [chosen.profile]), {*profiles(), *labels["profile"]})
