"""Counts the tasks, attempts and tool calls of each iteration of a run, with an example of each kind."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from agent0.projections.base import Row, select
from agent0.registry import PREFIX
from agent0.run.diagnosis.case import Iteration, Observation, PartMeans
from agent0.settings import RunConfig
from agent0.verification.human_review import PERSON

_ENDS = {"length": "cut off at its limit of tokens", "no_answer": "ended without an answer"}
Counts = dict[int, dict[str, Any]]


def iterations_of(db: sqlite3.Connection, run: str, plugins: bool = False) -> tuple[Iteration, ...]:
    """Count the tasks, attempts and tool calls of a run's iterations, oldest first; with ``plugins``, what verifiers of
    theirs said of answers, too."""
    counts: Counts = defaultdict(lambda: {"refused": {}, "doubted": {}, "ends": {}, "calls": {}, "examples": {}})
    _tasks(db, run, counts)
    _attempts(db, run, counts)
    _outcomes(db, run, counts)
    _misjudged(db, run, counts)
    if plugins:  # what reads families and verifiers takes longer to import than all else here
        count_plugin_verdicts(db, run, counts)
    _calls(db, run, counts)
    for row in select(db, "SELECT * FROM iterations WHERE run = ?", (run,)):
        if row["iteration"] in counts:
            measures = {key: value for key, value in row.items() if isinstance(value, float)}
            counts[row["iteration"]]["measures"] = measures
    return tuple(Iteration(number=number, **counts[number]) for number in sorted(counts))


def _tasks(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    rows = select(
        db,
        "SELECT iteration, status, reason, max(teacher) AS teacher, count(*) AS n, min(task) AS task,"
        " sum(coalesce(detail, '') LIKE '%cut off%') AS cut, max(detail) AS detail FROM tasks"
        " WHERE run = ? AND iteration IS NOT NULL GROUP BY iteration, status, reason",
        (run,),
    )
    for row in rows:
        iteration = counts[row["iteration"]]
        iteration["teacher"] = row["teacher"] or "base"
        iteration["tasks"] = iteration.get("tasks", 0) + row["n"]
        if row["status"] == "accepted":
            _add(iteration, "accepted", row["n"])
            if row["reason"]:
                iteration["doubted"][row["reason"]] = row["n"]
                iteration["examples"][row["reason"]] = Observation(f"{row['reason']} by its attempts", task=row["task"])
        if row["status"] == "rejected":
            iteration["refused"][row["reason"]] = row["n"]
            iteration["cut_off"] = iteration.get("cut_off", 0) + row["cut"]
            text = f"refused as {row['reason']}" + (f": {row['detail']}" if row["detail"] else "")
            iteration["examples"][row["reason"]] = Observation(text, task=row["task"])


def _attempts(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    rows = select(
        db,
        "SELECT iteration, end, status, correct, max(student) AS student, count(*) AS n, min(attempt) AS attempt,"
        " min(attempted_seq) AS seq, sum(answer IS NOT NULL) AS answered,"
        " sum(coalesce(parse_errors, 0) > 0 AND end IS NOT 'length') AS unread,"  # a call cut off has no other form
        " min(CASE WHEN parse_errors > 0 THEN attempt END) AS unread_attempt FROM attempts"
        " WHERE run = ? AND iteration IS NOT NULL GROUP BY iteration, end, status, correct",
        (run,),
    )
    for row in rows:
        iteration = counts[row["iteration"]]
        iteration["student"] = row["student"] or "base"
        if row["status"] == "dropped":
            iteration["given_up"] = iteration.get("given_up", 0) + row["n"]
        if row["end"] is None:
            continue
        _add(iteration, "attempts", row["n"])
        _add(iteration, "answered", row["answered"])
        _add(iteration, "unread", row["unread"])
        if row["unread"]:
            unread = Observation("wrote a call that cannot be read", attempt=row["unread_attempt"])
            iteration["examples"].setdefault("unread", unread)
        iteration["ends"][row["end"]] = iteration["ends"].get(row["end"], 0) + row["n"]
        kind = _verdict(row)
        if kind:
            _add(iteration, kind, row["n"])
            text = {"right": "called right", "wrong": "called wrong", "undecided": "undecided"}[kind]
            iteration["examples"].setdefault(kind, Observation(text, attempt=row["attempt"], event=row["seq"] or 0))
        if row["end"] != "answered":
            ending = _ENDS.get(row["end"], f"ended: {row['end']}")
            observation = Observation(ending, attempt=row["attempt"], event=row["seq"] or 0)
            iteration["examples"].setdefault(f"end:{row['end']}", observation)


def _verdict(row: Row) -> str:
    if row["status"] not in ("verified", "rewarded"):
        return ""
    return {1: "right", 0: "wrong", None: "undecided"}[row["correct"]]


def _add(counts: dict[str, Any], name: str, number: int | None) -> None:
    counts[name] = counts.get(name, 0) + (number or 0)


def _outcomes(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    """Tasks by how their attempts came out."""
    rows = select(
        db,
        "SELECT iteration, sum(good = tried) AS all_right, sum(good = 0) AS all_wrong,"
        " sum(good > 0 AND good < tried) AS mixed, sum(tried > 1) AS repeated, sum(tried > 1 AND kinds = 1) AS alike"
        " FROM (SELECT iteration, count(*) AS tried, sum(correct) AS good,"
        " count(DISTINCT coalesce(answer, '')) AS kinds FROM attempts"
        " WHERE run = ? AND correct IS NOT NULL GROUP BY iteration, task) GROUP BY iteration",
        (run,),
    )
    for row in rows:
        counts[row.pop("iteration")].update(row)


def _misjudged(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    rows = select(
        db,
        "SELECT iteration, count(*) AS n, min(attempt) AS attempt, max(reason) AS reason, max(expected) AS expected"
        " FROM verdicts WHERE run = ? AND correct = 0 AND expected != ''"
        " AND lower(trim(expected)) = lower(trim(got)) GROUP BY iteration",
        (run,),
    )
    for row in rows:
        text = f"called wrong ({row['reason']}), and it is {row['expected']}, as expected"
        counts[row["iteration"]]["misjudged"] = row["n"]
        counts[row["iteration"]]["examples"]["misjudged"] = Observation(text, attempt=row["attempt"])


def _calls(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    """Tool calls by how they ended. A call of a tool that is not there is an error like any other, but for its
    words."""
    rows = select(
        db,
        "SELECT iteration, CASE WHEN state = 'error' AND output LIKE 'There is no tool named%' THEN 'unknown'"
        " ELSE state END AS kind, count(*) AS n, min(attempt) AS attempt, max(output) AS output, max(reason) AS reason,"
        " max(tool_calls.wall_s) AS wall_s, max(peak_mem_mib) AS mib, json_group_array(DISTINCT tool) AS tools"
        " FROM tool_calls JOIN attempts USING (run, attempt) WHERE run = ? GROUP BY iteration, kind",
        (run,),
        ("tools",),
    )
    for row in rows:
        iteration = counts[row["iteration"]]
        iteration["calls"][row["kind"]] = row["n"]
        iteration["missing"] = tuple(sorted(row["tools"])) if row["kind"] == "unknown" else iteration.get("missing", ())
        text = " ".join(str(row["reason"] or row["output"] or row["kind"]).split())[:200]
        used = f" (after {row['wall_s']:.2f} s, with {row['mib']:.0f} MiB, at most)" if row["reason"] else ""
        iteration["examples"][f"call:{row['kind']}"] = Observation(text + used, attempt=row["attempt"])


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
    from agent0.rewards import reward_sets, rewards

    chosen = config.rewards.set
    packaged = rewards("student", chosen) if chosen in reward_sets() else {}
    modules = {name: str(component.score.__module__) for name, component in packaged.items()}
    loaded = {name: f"{m.removeprefix(PREFIX)}.py" for name, m in modules.items() if m.startswith(PREFIX)}
    files = " or ".join(f"{name}.py" for name in config.plugins)
    return {name: files for name in config.rewards.weights if files and name not in packaged} | loaded


def _receipt(db: sqlite3.Connection, run: str, attempt: str) -> int:
    return int(select(db, _RECEIPT, (run, attempt))[0]["seq"] or 0)


def count_plugin_verdicts(db: sqlite3.Connection, run: str, counts: dict[int, dict[str, Any]]) -> None:
    """Add to the counts by iteration what verifiers that are not Agent0's own said of answers (``foreign``), and how
    many of them their task's family computes otherwise: right ones that were called wrong (``misjudged``), and wrong
    ones that were called right (``overrated``)."""
    from agent0.verification.verifiers import verifiers

    ours = sorted(
        name for name, verifier in verifiers().items() if verifier.judge.__module__.partition(".")[0] == "agent0"
    )
    names = [*ours, PERSON]
    rows = select(
        db,
        "SELECT verdicts.iteration, verifier, verdicts.correct, verdicts.reason, expected, answer, verdicts.attempt,"  # noqa: S608 - question marks
        " family, question FROM verdicts JOIN attempts USING (run, attempt) JOIN tasks ON tasks.run = verdicts.run"
        " AND tasks.task = verdicts.task WHERE verdicts.run = ? AND verdicts.correct IS NOT NULL"
        f" AND answer IS NOT NULL AND verifier NOT IN ({', '.join('?' * len(names))}) ORDER BY verdicts.attempt",
        (run, *names),
    )
    for row in rows:
        iteration = counts[row["iteration"]]
        right, wrong = iteration.setdefault("foreign", {}).get(row["verifier"], (0, 0))
        iteration["foreign"][row["verifier"]] = (right + bool(row["correct"]), wrong + (not row["correct"]))
        if contrary := _contrary(row):
            kind, text = contrary
            iteration[kind] = iteration.get(kind, 0) + 1
            iteration["examples"].setdefault(kind, Observation(text, attempt=row["attempt"]))


def _contrary(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """How a verdict contradicts what the task's family computes, and in words; None where it does not."""
    called_right = bool(row["correct"])
    if (not called_right and row["expected"]) or computed(row["family"], row["question"], row["answer"]) is not (
        not called_right
    ):
        return None
    if called_right:
        return (
            "overrated",
            f"called right ({row['reason']}), and {row['answer']} is wrong by its family {row['family']}",
        )
    return "misjudged", f"called wrong ({row['reason']}), and {row['answer']} is right by its family {row['family']}"


def computed(name: str, question: str, answer: str) -> bool | None:
    """Whether ``answer`` is right by what the family called ``name`` computes or checks; None where it does not say."""
    from agent0.grading.answer_types import grade_as
    from agent0.grading.normal_form import same
    from agent0.tasks.families import families

    family = families(long=None).get(name)
    params = family.parse(question) if family else None
    if family is None or params is None:
        return None
    if family.check:
        return not family.check(params, answer)
    solved = family.solve(params)
    return same(solved, answer) or grade_as("", solved, answer).correct
