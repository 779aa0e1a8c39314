"""Verifies work folders by tests that no student sees: those that the reference makes pass, and those that it does not
break, as ``agent0 task judge`` does."""

from collections.abc import Sequence
from functools import partial

from agent0.events.values import Repository, Task
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import answered_folder, load
from agent0.verification.panel import VerificationContext
from agent0.verification.repositories.determining_examples import DeterminingExamples
from agent0.verification.repositories.mined_task import MinedSolution, hidden_tests_of
from agent0.verification.repositories.round_trip import RoundTrip
from agent0.verification.repositories.source_tree import changed_lines
from agent0.verification.verifiers import Verdict, verifier
from agent0.verification.work_folders import folder_verdicts

UNREAD = "a judge model reads docstrings too, and none is asked here"
NO_FOLDER, UNCHANGED = "it leaves no work folder", "nothing was changed"


@verifier("hidden_tests", applies=lambda task: bool(task.row and task.row.repository), rank=1, informed=True)
async def hidden_tests(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Run the hidden tests on each work folder; equal folders are judged once."""
    return await folder_verdicts(task, answers, context.artifacts, partial(_verdict, sandbox, context))


async def _verdict(
    sandbox: Sandbox, context: VerificationContext, repository: Repository, answer: str | None, artifacts: Artifacts
) -> Verdict:
    folder = answered_folder(answer)
    if folder is None or folder.sha256 == repository.tree.sha256:
        return Verdict(False, NO_FOLDER if folder is None else UNCHANGED)
    solution = MinedSolution.model_validate_json(artifacts.get(repository.hidden))
    hidden = hidden_tests_of(solution, artifacts)
    code = {path: data for path, data in load(folder, artifacts).items() if path.endswith((".py", ".txt"))}
    if isinstance(hidden, DeterminingExamples | RoundTrip):
        if context.rules.judge.provider and context.read is None:
            return Verdict(None, UNREAD)
        correct, reason, credit = await hidden.grade(code, sandbox, context.read)
        return Verdict(correct, (reason or "all docstrings are exact")[:200], credit=credit)
    correct, reason, credit = await hidden.grade(code, sandbox)
    lines = changed_lines(load(repository.tree, artifacts), code)
    reason = reason[:200] or f"all {len(hidden.tests)} hidden tests pass"
    return Verdict(correct, reason, credit=credit, changed_lines=lines)
