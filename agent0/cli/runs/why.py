"""Why a run went badly."""

import shutil
import sqlite3
from datetime import UTC, datetime

from agent0.assembly.log.access import open_log
from agent0.assembly.log.carriers import known_here
from agent0.assembly.validate.requirements import LEAST
from agent0.cli import console, flags, lookup
from agent0.cli.runs.show import print_findings
from agent0.errors import Agent0Error, DependencyError
from agent0.projections.runs import show_run
from agent0.report.diagnosis.findings import Diagnosis, diagnosis, observation_lines, setting_lines, why_lines
from agent0.report.diagnosis.replies import reply_lines
from agent0.run.diagnosis.case import MODELS
from agent0.run.diagnosis.local_state import LocalState
from agent0.settings import Settings


def why(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Why a run went badly: its cause in the first line, the first bad step, what shows it, and the command that
    mends it."""
    settings = flags.settings()
    here, warning = _here(settings)
    with lookup.tables(settings) as db:
        findings = diagnosis(db, run, {**here, **_idle(db, run), **_away(warning)})
    if as_json:
        console.data(findings)
        return
    print_diagnosis(findings)


def print_diagnosis(findings: Diagnosis) -> None:
    """Print a whole diagnosis on stdout, its conclusion first; how items failed before the command that would take
    another model."""
    conclusion, *others = why_lines(findings)
    replies = [] if findings["well"] else reply_lines(findings["replies"])
    blamed = any(f"{key}=" in findings["mend"] for key in MODELS)
    print_findings([conclusion, *(replies if blamed else []), *others])
    if findings["advice"]:
        console.print_lines([findings["advice"]])
    parts = {
        "How items failed": [] if blamed else replies,
        "What shows it": observation_lines(findings["evidence"]),
        "Settings that differ": setting_lines(findings["settings"]) if not findings["well"] else [],
        "Also": [cause["conclusion"] for cause in findings["also"]],
    }
    for title, lines in parts.items():
        if lines:
            print_findings(["", title, *(f"  {line}" for line in lines)])


def _here(settings: Settings) -> tuple[LocalState, str]:
    """What this machine says now, and why the log cannot be reached; empty where it can."""
    free = shutil.disk_usage(settings.home).free if settings.home.is_dir() else None
    here: LocalState = {"disk_free": free, "disk_least": LEAST, **known_here(settings)}

    async def left() -> LocalState:
        async with open_log(settings, "reader") as log:
            info = await log.info()
            return {"log_left": info.max_bytes - info.bytes} if info.max_bytes > 0 else {}

    try:
        return here | console.run_async(left), ""
    except DependencyError as error:
        return here, str(error)
    except (Agent0Error, OSError):  # no log yet, another one, or a disk too full to open it: the tables say so
        return here, ""


def _away(warning: str) -> LocalState:
    return {"log": warning.rstrip(".")} if warning else {}


def _idle(db: sqlite3.Connection, run: str) -> LocalState:
    """Seconds since the run's last event."""
    last = datetime.fromisoformat(str(show_run(db, run)["updated"]))
    return {"idle_s": (datetime.now(UTC) - last).total_seconds()}
