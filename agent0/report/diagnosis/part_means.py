"""What parts of the student's reward give to right and to wrong attempts, from the receipts."""

import sqlite3

from agent0.projections.base import select
from agent0.registry import PREFIX
from agent0.rewards import reward_sets, rewards
from agent0.run.diagnosis.case import PartMeans
from agent0.settings import RunConfig

_MEANS = (
    "SELECT name, min(iteration) AS iteration, min(CASE WHEN NOT right AND worth > 0 THEN attempt END) AS attempt,"
    " avg(CASE WHEN right THEN worth END) AS given, avg(CASE WHEN NOT right THEN worth END) AS wasted,"
    " avg(CASE WHEN right THEN total END) AS total_right, avg(CASE WHEN NOT right THEN total END) AS total_wrong,"
    " sum(right) AS n, sum(NOT right) AS m FROM (SELECT name, p.iteration, attempt, worth, r.total, a.correct AS right"
    " FROM reward_parts AS p JOIN rewards AS r USING (run, task, attempt, role, reward_set)"
    " JOIN attempts AS a USING (run, attempt)"
    " WHERE p.run = ? AND role = 'student' AND worth IS NOT NULL AND a.correct IS NOT NULL)"
    " GROUP BY name HAVING given IS NOT NULL AND wasted IS NOT NULL ORDER BY name"
)
_RECEIPT = (
    "SELECT min(seq) AS seq FROM events WHERE run = ? AND attempt = ? AND type = 'RewardAssigned'"
    " AND json_extract(body, '$.data.role') = 'student'"
)


def part_means(db: sqlite3.Connection, run: str, config: RunConfig) -> tuple[PartMeans, ...]:
    """Average the worth of those parts of the student's reward that a user's file declares, or that weigh less than
    nothing; nothing is read where there are none."""
    weights = config.rewards.weights
    if not config.plugins and all(weight >= 0 for weight in weights.values()):
        return ()
    files = _files(config)
    return tuple(
        PartMeans(
            part=row["name"],
            file=files.get(row["name"], ""),
            right=row["given"],
            wrong=row["wasted"],
            total_right=row["total_right"],
            total_wrong=row["total_wrong"],
            attempts=(row["n"], row["m"]),
            iteration=row["iteration"],
            attempt=row["attempt"] or "",
            event=_receipt(db, run, row["attempt"]) if row["attempt"] else 0,
        )
        for row in select(db, _MEANS, (run,))
        if row["name"] in files or weights.get(row["name"], 0) < 0
    )


def _files(config: RunConfig) -> dict[str, str]:
    """The file of each part that is a user's, by its name; where it is not loaded, the files that may hold it."""
    chosen = config.rewards.set
    packaged = rewards("student", chosen) if chosen in reward_sets() else {}
    modules = {name: str(component.score.__module__) for name, component in packaged.items()}
    loaded = {name: f"{m.removeprefix(PREFIX)}.py" for name, m in modules.items() if m.startswith(PREFIX)}
    files = " or ".join(f"{name}.py" for name in config.plugins)
    return {name: files for name in config.rewards.weights if files and name not in packaged} | loaded


def _receipt(db: sqlite3.Connection, run: str, attempt: str) -> int:
    return int(select(db, _RECEIPT, (run, attempt))[0]["seq"] or 0)
