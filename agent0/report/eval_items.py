"""Items of held-out evaluations, read from the artifacts that the evaluations table names, and what each is."""

import json

from agent0.errors import Agent0Error
from agent0.evaluation.failure_modes import ItemOutcome, error_class
from agent0.events.values import Artifact, Task
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row
from agent0.tasks.families import families
from agent0.tasks.splits import task_of

TOOLS = {True: "a call went well", False: "no call went well"}


def held_items(artifacts: Artifacts, digest: str | None) -> list[Row] | None:
    """The items of one evaluation; None where its artifact is not here, is damaged, or none was written."""
    try:
        text = artifacts.get(Artifact(sha256=digest or "", size=0)).decode("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (Agent0Error, ValueError):
        return None
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("task"), str)]


def outcome_of(item: Row) -> ItemOutcome:
    """An item with its marks; family and right answer are those its question says."""
    correct, answer = item.get("correct"), item.get("answer")
    task, right = _question_of(str(item.get("domain", "")), str(item.get("question", "")))
    marks = {
        "domain": str(item.get("domain", "")),
        "level": str(item.get("level", "")),
        "family": task.family if task else "",
        "error": str(item.get("error") or error_class(answer, correct, right=right)),
        "tool": TOOLS[bool(item.get("tool_ok"))],
    }
    return ItemOutcome(correct, marks, item["task"])


def _question_of(domain: str, question: str) -> tuple[Task | None, str]:
    """The task that a question asks, and its answer where there is only one."""
    for family in families(domain, None).values():
        if (task := task_of(family, question)) is not None:
            return task, "" if family.check else family.solve(task.params)
    return None, ""
