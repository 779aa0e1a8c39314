"""Attempts as training data: our own lines with everything, or the dataset types of TRL (conversational format, but for
stepwise supervision, which is text).

TRL's types as documented at https://huggingface.co/docs/trl/dataset_formats.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from itertools import groupby, takewhile
from operator import itemgetter

from agent0.errors import ConfigError
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row, each, find, select
from agent0.projections.evaluation_items import conversation_at, list_items
from agent0.projections.tool_calls import list_calls

_ATTEMPTS = """
SELECT attempts.run, attempts.task, attempts.attempt, iteration, domain, family, level, question, canonical, student,
       attempts.seed, attempts.model, attempts.prompt, answer, correct, reward, end, turns, tool_calls, tool_ok,
       grounded, json_extract(body, '$.data.transcript') AS transcript,
       json_extract(body, '$.data.transcript_artifact') AS transcript_artifact,
       json_extract(body, '$.data.trajectory') AS trajectory,
       json_extract(body, '$.data.trajectory_artifact') AS trajectory_artifact
FROM attempts JOIN tasks USING (run, task, iteration) JOIN events ON seq = attempted_seq
WHERE attempts.run = ? ORDER BY iteration, attempts.task, number
"""
_WHOLE = """
SELECT attempted_seq, attempted AS time, prompt_tokens, completion_tokens,
       json_extract(body, '$.code_rev') AS code_rev
FROM attempts JOIN events ON seq = attempted_seq WHERE attempts.run = ? AND attempts.attempt = ?
"""
_PROPOSAL = """
SELECT json_extract(body, '$.data.proposal') AS proposal FROM events
WHERE run = ? AND task = ? AND type = 'TaskAccepted' ORDER BY seq LIMIT 1
"""
_SUBGOALS = "SELECT subgoals FROM verdicts WHERE run = ? AND attempt = ? AND subgoals IS NOT NULL ORDER BY verifier"
_PARSED = ("transcript", "transcript_artifact", "trajectory", "trajectory_artifact")


def export(
    db: sqlite3.Connection, run: str, format: str = "agent0", artifacts: Artifacts | None = None, evaluation: str = ""
) -> Iterator[Row]:
    """One JSON-ready object a line.

    ``agent0``: everything, with token ids, logprobs and receipt. ``trl``: prompt and completion messages with their
    reward. ``trl-messages``: one conversation. ``trl-unpaired``: prompt, completion and label (verified attempts).
    ``trl-preference``: a correct and a wrong attempt of the same task. ``trl-stepwise``: what was written for each
    subgoal of a long task, and whether it was answered right. With ``evaluation`` its items, which no training
    may read, so in the format ``agent0`` only.

    Raises:
        ConfigError: there is no such format, or not of an evaluation. NotFoundError: there is no such evaluation.
    """
    if format not in FORMATS:
        raise ConfigError(f"There is no format {format!r}.", fix=f"Choose one of: {', '.join(FORMATS)}.")
    if evaluation and format != "agent0":
        what = f"Items of an evaluation are not exported as {format}: held-out tasks are never trained on."
        raise ConfigError(what, "", "Export attempts, or the items as jsonl.")
    if evaluation:
        return _items(db, run, evaluation, artifacts)
    return FORMATS[format](db, _attempts(db, run, artifacts))


def _attempts(db: sqlite3.Connection, run: str, artifacts: Artifacts | None) -> Iterator[Row]:
    """Attempts of ``run``; what was too long for its event is fetched from ``artifacts``."""
    for row in each(db, _ATTEMPTS, (run,), parse=_PARSED):
        for name in ("transcript", "trajectory"):
            kept = row.pop(f"{name}_artifact")
            if kept and artifacts:
                row[name] = json.loads(artifacts.get(Artifact.model_validate(kept)))
        row["correct"] = None if row["correct"] is None else bool(row["correct"])
        row["grounded"] = bool(row["grounded"])
        yield row


def _items(db: sqlite3.Connection, run: str, evaluation: str, artifacts: Artifacts | None) -> Iterator[Row]:
    """Items of an evaluation with their conversations; what was too long for its event is fetched."""
    for row in list_items(db, run, evaluation, limit=-1):
        yield {**row, **conversation_at(db, row["scored_seq"], artifacts), "held_out": True}


def _everything(db: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    query = "SELECT name, inputs, value, weight FROM reward_parts"
    for row in attempts:
        key = {name: row[name] for name in ("run", "task", "attempt")}
        parts = find(db, query, key, "name", parse=("inputs",))
        yield {**row, "reward_parts": parts}


def whole_attempts(db: sqlite3.Connection, run: str, artifacts: Artifacts) -> Iterator[Row]:
    """The attempts of ``run`` as ``agent0`` exports them, with what other frameworks' formats have places for besides:
    the whole task (``proposal``), the tool ``calls``, counts of tokens, and the code that made it."""
    proposals: dict[str, Row] = {}
    for row in _everything(db, _attempts(db, run, artifacts)):
        if row["task"] not in proposals:
            proposals = {row["task"]: select(db, _PROPOSAL, (run, row["task"]), parse=("proposal",))[0]}
        about = select(db, _WHOLE, (run, row["attempt"]))[0]
        yield {**row, **about, **proposals[row["task"]], "calls": list_calls(db, run, row["attempt"])}


def _completions(_: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    for row in attempts:
        yield {**_split(row), "reward": row["reward"]}


def _messages(_: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    for row in attempts:
        yield {"messages": _conversation(row)}


def _unpaired(_: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    for row in attempts:
        if row["correct"] is not None:
            yield {**_split(row), "label": row["correct"]}


def _preferences(_: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    for _task, siblings in groupby(attempts, key=itemgetter("task")):
        tried = list(siblings)
        right = [_split(row) for row in tried if row["correct"] is True]
        wrong = [_split(row) for row in tried if row["correct"] is False]
        for good, bad in zip(right, wrong, strict=False):
            yield {"prompt": good["prompt"], "chosen": good["completion"], "rejected": bad["completion"]}


def _stepwise(db: sqlite3.Connection, attempts: Iterator[Row]) -> Iterator[Row]:
    for row in attempts:
        verdicts = select(db, _SUBGOALS, (row["run"], row["attempt"]), parse=("subgoals",))
        labels = verdicts[0]["subgoals"] if verdicts else []
        steps = _steps(row, list_calls(db, row["run"], row["attempt"]), len(labels)) if row["transcript"] else []
        judged = [*takewhile(lambda step: step[1] is not None, zip(steps, labels, strict=False))]
        if judged:
            completions, right = zip(*judged, strict=True)
            yield {"prompt": row["question"], "completions": list(completions), "labels": list(right)}


def _steps(row: Row, calls: list[Row], subgoals: int) -> list[str]:
    """What the student wrote up to the answer to each subgoal, the last such answer where it gave several; up to the
    attempt's end for the last. They end where a subgoal has none of its own."""
    texts = [turn["content"] for turn in row["transcript"] if turn["role"] == "assistant"]
    texts = texts[len(texts) - (row["turns"] or 0) :]  # a prompt may hold turns of examples
    ends = {subgoals: len(texts)} if row["answer"] is not None else {}
    for call in calls:
        subgoal = str(call["arguments"].get("subgoal", 0)) if isinstance(call["arguments"], dict) else ""
        if call["tool"] == "submit_answer" and call["state"] == "ok" and subgoal.isdecimal():
            ends[int(subgoal)] = call["turn"] + 1
    steps, start = list[str](), 0
    for number in range(1, subgoals + 1):
        if ends.get(number, 0) <= start:
            break
        steps.append("\n".join(texts[start : ends[number]]))
        start = ends[number]
    return steps


def _conversation(row: Row) -> list[dict[str, str]]:
    return [_message(turn) for turn in row["transcript"] or []]


def _message(turn: Row) -> dict[str, str]:
    named = {"name": turn["name"]} if turn["role"] == "tool" and turn.get("name") else {}
    return {"role": turn["role"], "content": turn["content"], **named}


def _split(row: Row) -> Row:
    """What came before the student's first turn is the prompt."""
    messages = _conversation(row)
    first = next((n for n, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
    return {"prompt": messages[:first], "completion": messages[first:]}


FORMATS: dict[str, Callable[[sqlite3.Connection, Iterator[Row]], Iterator[Row]]] = {
    "agent0": _everything,
    "trl": _completions,
    "trl-messages": _messages,
    "trl-preference": _preferences,
    "trl-stepwise": _stepwise,
    "trl-unpaired": _unpaired,
}
