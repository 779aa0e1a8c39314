"""What iterations used: tokens, hours, and seconds of attempts. No table of its own: it reads those of tasks, attempts,
runs and events."""

import sqlite3

from agent0.projections.base import Row, select


def iterations_used(db: sqlite3.Connection, run: str) -> list[Row]:
    """List what each complete iteration of ``run`` used: tokens of its attempts (``student_read``,
    ``student_written``) and of its proposals (``teacher_read``, ``teacher_written``), and ``hours`` from its first
    request to the next iteration's, or to the end of a run that is finished.

    Time in which the run was paused counts.
    """
    return select(db, _USED, (run,) * 4)


_USED = """
WITH began AS (SELECT iteration, min(requested) AS at FROM tasks WHERE run = ?1 GROUP BY iteration),
     spans AS (SELECT iteration, at, coalesce(lead(at) OVER (ORDER BY iteration),
                      (SELECT ended_at FROM runs WHERE run = ?2 AND ended = 'finished')) AS until FROM began),
     tried AS (SELECT iteration, sum(prompt_tokens) AS student_read, sum(completion_tokens) AS student_written
               FROM attempts WHERE run = ?3 GROUP BY iteration),
     asked AS (SELECT json_extract(body, '$.data.iteration') AS iteration,
                      sum(json_extract(body, '$.data.usage.prompt_tokens')) AS teacher_read,
                      sum(json_extract(body, '$.data.usage.completion_tokens')) AS teacher_written
               FROM events WHERE run = ?4 AND type = 'TaskProposed' GROUP BY 1)
SELECT iteration, coalesce(student_read, 0) AS student_read, coalesce(student_written, 0) AS student_written,
       coalesce(teacher_read, 0) AS teacher_read, coalesce(teacher_written, 0) AS teacher_written,
       (julianday(until) - julianday(at)) * 24 AS hours
FROM spans LEFT JOIN tried USING (iteration) LEFT JOIN asked USING (iteration)
WHERE until IS NOT NULL ORDER BY iteration
"""


def attempt_seconds(db: sqlite3.Connection, run: str) -> tuple[list[float], list[float]]:
    """List the seconds of the last iteration's attempts: those with at most one tool call, and those with more."""
    rows = select(
        db,
        "SELECT tool_calls > 1 AS complex, wall_s FROM attempts WHERE run = ?1 AND wall_s IS NOT NULL AND iteration ="
        " (SELECT max(iteration) FROM attempts WHERE run = ?1 AND wall_s IS NOT NULL)",
        (run,),
    )
    simple, more = ([row["wall_s"] for row in rows if bool(row["complex"]) is many] for many in (False, True))
    return simple, more
