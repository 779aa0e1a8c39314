"""Part of the rim: a recorded trajectory as spans of text with the probability that each token was drawn with."""

import json
import sqlite3
from itertools import groupby
from math import exp

from agent0.assembly.runtime.providers import providers
from agent0.errors import Agent0Error
from agent0.events.values import Artifact, Trajectory
from agent0.infra.engine.folder_template import token_texts
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.attempts import trajectory_of
from agent0.projections.base import Row
from agent0.settings import RunConfig

MOST = 8000
"""Tokens that are shown."""


def token_heat(db: sqlite3.Connection, artifacts: FileArtifacts, run: str, attempt: str, plan: RunConfig) -> Row:
    """The tokens that the student of ``plan`` drew in an attempt, turn by turn: ``id``, ``text`` (None where the
    model's tokenizer is not here) and ``probability`` each. ``turns`` is empty where nothing was recorded."""
    trajectory = _trajectory(artifacts, trajectory_of(db, run, attempt))
    if trajectory is None:
        return {"turns": [], "tokens": 0, "shown": 0}
    drawn = [
        [(trajectory.token_ids[index], trajectory.logprobs[index]) for index in group]
        for is_own, group in groupby(range(len(trajectory.mask)), key=lambda index: bool(trajectory.mask[index]))
        if is_own
    ]
    ids = [id for turn in drawn for id, _ in turn][:MOST]
    texts = iter(_texts(plan, ids))
    turns = [
        [{"id": id, "text": text, "probability": round(exp(logprob), 4)} for (id, logprob), text in zip(turn, texts)]  # noqa: B905 - the last turn may be cut
        for turn in drawn
    ]
    return {"turns": [turn for turn in turns if turn], "tokens": sum(map(len, drawn)), "shown": len(ids)}


def _trajectory(artifacts: FileArtifacts, row: Row) -> Trajectory | None:
    """The recorded trajectory; None where there is none, or its artifact is not here."""
    if row["trajectory"]:
        return Trajectory.model_validate(row["trajectory"])
    if not row["trajectory_artifact"]:
        return None
    try:
        return Trajectory.model_validate(json.loads(artifacts.get(Artifact(**row["trajectory_artifact"]))))
    except (Agent0Error, ValueError):
        return None


def _texts(plan: RunConfig, ids: list[int]) -> list[str | None]:
    """By the tokenizer of the student's model, where that is a folder of this machine."""
    try:
        folder = providers()[plan.student.provider].folder
        return [*token_texts(folder(plan.student), ids)] if folder else [None] * len(ids)
    except (Agent0Error, OSError, KeyError):
        return [None] * len(ids)
