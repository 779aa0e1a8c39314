"""Part of the rim: one attempt as an object: what was said and done, how it was judged, what it earned."""

import json
from dataclasses import dataclass

from agent0.assembly.api.rows import Rows, html_table, text
from agent0.assembly.log.artifact_store import artifact_store
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row
from agent0.projections.tool_calls import recorded_calls
from agent0.settings import Settings


@dataclass(frozen=True, repr=False)
class Trajectory:
    """One attempt at a task. ``turns`` are messages with ``role`` and ``content``, ``calls`` its tool calls,
    ``verdicts`` what verifiers said, ``receipts`` its rewards part by part. ``correct`` and ``reward`` are None where
    the verifiers could not decide."""

    run: str
    task: str
    attempt: str
    question: str
    answer: str | None
    correct: bool | None
    reward: float | None
    turns: tuple[Row, ...]
    calls: Rows
    verdicts: Rows
    receipts: Rows
    row: Row
    """Everything else that is known of it, as `agent0 trajectory show --json` prints it."""

    def __repr__(self) -> str:
        return f"Trajectory({self.attempt!r} of {self.run!r}, answer={self.answer!r}, correct={self.correct})"

    def _repr_html_(self) -> str:
        verdict = {True: "right", False: "wrong", None: "undecided"}[self.correct]
        head = f"<h4>{text(self.attempt)} of {text(self.run)}: {verdict}, reward {text(self.reward)}</h4>"
        style = "white-space:pre-wrap;margin:0 0 .6em;padding-left:.6em;border-left:3px solid #8a8a8a"
        html = [
            f'<div><b>{text(t["role"])}</b><pre style="{style}">{text(t["content"])}</pre></div>' for t in self.turns
        ]
        parts = [part for receipt in self.receipts for part in receipt["parts"]]
        columns = ("verifier", "correct", "reason", "expected", "got")
        tables = html_table(self.verdicts, columns) + html_table(parts, ("name", "inputs", "value", "weight", "worth"))
        return head + "".join(html) + tables


def transcript_of(settings: Settings, attempt: Row) -> list[Row]:
    """The conversation of an attempt that ``agent0.projections.attempts.show_attempt`` found: as its event has it, from
    the artifact store where it was too long (of an item of an evaluation with its ``calls``), or of an attempt that
    goes on. Takes ``transcript_artifact`` out of it.

    Raises:
        NotFoundError: the artifact is gone.
    """
    stored = attempt.pop("transcript_artifact", None) or attempt["progress"]
    if attempt["transcript"] or not stored:
        return attempt["transcript"] or []
    artifacts: Artifacts = artifact_store(settings)
    stored_attempt = json.loads(artifacts.get(Artifact.model_validate(stored)))
    turns: list[Row] = stored_attempt["transcript"] if isinstance(stored_attempt, dict) else stored_attempt
    if attempt["evaluation"]:
        attempt["calls"] = recorded_calls(stored_attempt["calls"])
    for turn in turns:
        turn.pop("token_ids", None)
    return turns
