"""Counts the tasks, attempts and tool calls of each iteration of a run, with an example of each kind."""

import sqlite3
from dataclasses import replace

from agent0.grading.answer_types import grade_as
from agent0.grading.normal_form import same
from agent0.projections.base import Row, select
from agent0.registry import PREFIX
from agent0.rewards import reward_sets, rewards
from agent0.run.diagnosis.case import Iteration, Observation, PartMeans
from agent0.settings import RunConfig
from agent0.tasks.families import families
from agent0.verification.human_review import PERSON
from agent0.verification.verifiers import verifiers

_ENDS = {"length": "cut off at its limit of tokens", "no_answer": "ended without an answer"}
Counts = dict[int, Iteration]
"""The iterations of a run by number, as far as they are counted."""


def iterations_of(db: sqlite3.Connection, run: str, plugins: bool = False) -> tuple[Iteration, ...]:
    """Count the tasks, attempts and tool calls of a run's iterations, oldest first; with ``plugins``, what verifiers of
    theirs said of answers, too."""
    counts: Counts = {}
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
            counts[row["iteration"]] = replace(counts[row["iteration"]], measures=measures)
    return tuple(counts[number] for number in sorted(counts))


def _iteration(counts: Counts, number: int) -> Iteration:
    return counts.get(number, Iteration(number))


def _with_example(iteration: Iteration, name: str, example: Observation) -> Iteration:
    """The iteration with an example of what ``name`` says, where it has none."""
    return replace(iteration, examples={**iteration.examples, name: iteration.examples.get(name, example)})


def _tasks(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    rows = select(
        db,
        "SELECT iteration, status, reason, max(teacher) AS teacher, count(*) AS n, min(task) AS task,"
        " sum(coalesce(detail, '') LIKE '%cut off%') AS cut, max(detail) AS detail FROM tasks"
        " WHERE run = ? AND iteration IS NOT NULL GROUP BY iteration, status, reason",
        (run,),
    )
    for row in rows:
        it, reason, n = _iteration(counts, row["iteration"]), row["reason"], row["n"]
        it = replace(it, teacher=row["teacher"] or "base", tasks=it.tasks + n)
        if row["status"] == "accepted":
            it = replace(it, accepted=it.accepted + n)
            if reason:
                it = replace(it, doubted={**it.doubted, reason: n})
                it = _with_example(it, reason, Observation(f"{reason} by its attempts", task=row["task"]))
        if row["status"] == "rejected":
            it = replace(it, refused={**it.refused, reason: n}, cut_off=it.cut_off + row["cut"])
            text = f"refused as {reason}" + (f": {row['detail']}" if row["detail"] else "")
            it = replace(it, examples={**it.examples, reason: Observation(text, task=row["task"])})
        counts[it.number] = it


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
        it, n = _iteration(counts, row["iteration"]), row["n"]
        it = replace(it, student=row["student"] or "base", given_up=it.given_up + n * (row["status"] == "dropped"))
        counts[it.number] = it if row["end"] is None else _with_ended(it, row)


def _with_ended(it: Iteration, row: Row) -> Iteration:
    """The iteration with attempts that ended alike."""
    n, end, verdict = row["n"], row["end"], _verdict(row)
    it = replace(it, attempts=it.attempts + n, answered=it.answered + (row["answered"] or 0))
    it = replace(it, unread=it.unread + (row["unread"] or 0), ends={**it.ends, end: it.ends.get(end, 0) + n})
    if row["unread"]:
        unread = Observation("wrote a call that cannot be read", attempt=row["unread_attempt"])
        it = _with_example(it, "unread", unread)
    if verdict:
        text = verdict if verdict == "undecided" else f"called {verdict}"
        it = _with_example(it, verdict, Observation(text, attempt=row["attempt"], event=row["seq"] or 0))
        right, wrong = it.right + n * (verdict == "right"), it.wrong + n * (verdict == "wrong")
        it = replace(it, right=right, wrong=wrong, undecided=it.undecided + n * (verdict == "undecided"))
    if end != "answered":
        ending = Observation(_ENDS.get(end, f"ended: {end}"), attempt=row["attempt"], event=row["seq"] or 0)
        it = _with_example(it, f"end:{end}", ending)
    return it


def _verdict(row: Row) -> str:
    if row["status"] not in ("verified", "rewarded"):
        return ""
    return {1: "right", 0: "wrong", None: "undecided"}[row["correct"]]


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
        it = _iteration(counts, row.pop("iteration"))
        counts[it.number] = replace(it, **row)


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
        it = replace(_iteration(counts, row["iteration"]), misjudged=row["n"])
        example = Observation(text, attempt=row["attempt"])
        counts[it.number] = replace(it, examples={**it.examples, "misjudged": example})


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
        it, kind = _iteration(counts, row["iteration"]), row["kind"]
        missing = tuple(sorted(row["tools"])) if kind == "unknown" else it.missing
        text = " ".join(str(row["reason"] or row["output"] or kind).split())[:200]
        used = f" (after {row['wall_s']:.2f} s, with {row['mib']:.0f} MiB, at most)" if row["reason"] else ""
        example = Observation(text + used, attempt=row["attempt"])
        examples = {**it.examples, f"call:{kind}": example}
        counts[it.number] = replace(it, calls={**it.calls, kind: row["n"]}, missing=missing, examples=examples)


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


def count_plugin_verdicts(db: sqlite3.Connection, run: str, counts: Counts) -> None:
    """Add to the counts by iteration what verifiers that are not Agent0's own said of answers (``foreign``), and how
    many of them their task's family computes otherwise: right ones that were called wrong (``misjudged``), and wrong
    ones that were called right (``overrated``)."""
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
        it, verifier, correct = _iteration(counts, row["iteration"]), row["verifier"], bool(row["correct"])
        right, wrong = it.foreign.get(verifier, (0, 0))
        it = replace(it, foreign={**it.foreign, verifier: (right + correct, wrong + (not correct))})
        if text := _contrary(row):
            it = replace(it, overrated=it.overrated + correct, misjudged=it.misjudged + (not correct))
            it = _with_example(it, "overrated" if correct else "misjudged", Observation(text, attempt=row["attempt"]))
        counts[it.number] = it


def _contrary(row: Row) -> str:
    """How a verdict contradicts what the task's family computes; empty where it does not."""
    right = bool(row["correct"])
    if (not right and row["expected"]) or computed(row["family"], row["question"], row["answer"]) is not (not right):
        return ""
    called, computes = ("right", "wrong") if right else ("wrong", "right")
    return f"called {called} ({row['reason']}), and {row['answer']} is {computes} by its family {row['family']}"


def computed(name: str, question: str, answer: str) -> bool | None:
    """Whether ``answer`` is right by what the family called ``name`` computes or checks; None where it does not say."""
    family = families(long=None).get(name)
    params = family.parse(question) if family else None
    if family is None or params is None:
        return None
    if family.check:
        return not family.check(params, answer)
    solved = family.solve(params)
    return same(solved, answer) or grade_as("", solved, answer).correct
