"""Verdicts on work folders, by files that the task hides."""

from collections.abc import Awaitable, Callable, Sequence

from agent0.events.values import Repository, Task
from agent0.ports.storage import Artifacts
from agent0.verification.verifiers import Verdict

Judge = Callable[[Repository, str | None, Artifacts], Awaitable[Verdict]]
"""Decides about one answer, the manifest of a work folder."""


async def folder_verdicts(
    task: Task, answers: Sequence[str | None], artifacts: Artifacts | None, judge: Judge
) -> list[Verdict]:
    """Judge the work folder of each answer; equal folders once. Undecided where the hidden files are not there."""
    repository = task.row.repository if task.row else None
    if repository is None or artifacts is None:
        return [Verdict(None, "the files of the task are not at hand") for _ in answers]
    verdicts = {answer: await judge(repository, answer, artifacts) for answer in dict.fromkeys(answers)}
    return [verdicts[answer] for answer in answers]
