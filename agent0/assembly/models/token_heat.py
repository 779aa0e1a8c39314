"""Part of the rim: a recorded trajectory token by token, with the log-probability that each was drawn with, and what
trainings made of it."""

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
from agent0.projections.base import Row, select
from agent0.settings import RunConfig

MOST = 4000
"""Tokens that are shown."""
READ = 8
"""Trainings behind an attempt whose manifests are read."""
EDGE = 60
"""Tokens at each end that are shown of a span that the student did not draw."""
_UNCAPTURED = {
    "text": "the model server gave neither token ids nor log-probabilities",
    "logprobs": "the model server gave no token ids of the prompt",
}


def token_heat(db: sqlite3.Connection, artifacts: FileArtifacts, run: str, attempt: str, plan: RunConfig) -> Row:
    """The tokens of an attempt of the student of ``plan``, in spans: those that it drew (``own``), with ``logprob`` and
    ``probability``, and what it read, which training masks. A token has an ``id`` and its ``text``, None where the
    model's tokenizer is not here; ``left_out`` counts those that a span has beyond the shown ones. ``tokens`` and
    ``masked`` count all of both kinds, ``trained`` says what trainings made of the attempt, and ``problem`` why there
    are no tokens, empty where there are some."""
    recorded = trajectory_of(db, run, attempt)
    trajectory = _trajectory(artifacts, recorded)
    if trajectory is None:
        return {**NO_TOKENS, "problem": _problem(recorded)}
    own = sum(map(bool, trajectory.mask))
    groups = groupby(range(len(trajectory.mask)), key=lambda index: bool(trajectory.mask[index]))
    spans, left = list[Row](), MOST
    for drawn, group in groups:
        places = [*group]
        kept = (places if drawn or len(places) <= 2 * EDGE else [*places[:EDGE], *places[-EDGE:]])[:left]
        left -= len(kept)
        tokens = [_token(trajectory, place, drawn) for place in kept]
        spans.append({"own": drawn, "left_out": len(places) - len(kept), "tokens": tokens})
    texts = iter(_texts(plan, [token["id"] for span in spans for token in span["tokens"]]))
    for span in spans:
        span["tokens"] = [{**token, "text": next(texts)} for token in span["tokens"]]
    trained = _trainings(db, artifacts, run, recorded)
    return {"spans": spans, "tokens": own, "masked": len(trajectory.mask) - own, "trained": trained, "problem": ""}


NO_TOKENS: Row = {"spans": [], "tokens": 0, "masked": 0, "trained": [], "problem": ""}


def _token(trajectory: Trajectory, place: int, drawn: bool) -> Row:
    logprob = trajectory.logprobs[place]
    values = {"logprob": round(logprob, 4), "probability": round(exp(logprob), 4)} if drawn else {}
    return {"id": trajectory.token_ids[place], **values}


def _trainings(db: sqlite3.Connection, artifacts: FileArtifacts, run: str, attempt: Row) -> list[Row]:
    """The first ``READ`` trainings of a student behind the attempt that used it: as a sample with its advantage, upper
    clip and weight, or as what is replayed or preferred over, which have none."""
    query = (
        "SELECT json_extract(body, '$.data.checkpoint') AS checkpoint,"
        " json_extract(body, '$.data.manifest') AS manifest FROM events"
        " WHERE run = ? AND type = 'DatasetSelected' AND seq > ?"
        " AND json_extract(body, '$.data.role') = 'student' ORDER BY seq LIMIT ?"
    )
    trainings = []
    for row in select(db, query, (run, attempt["seq"], READ), parse=("manifest",)):
        try:
            manifest = json.loads(artifacts.get(Artifact(**row["manifest"])))
            place = manifest["events"].index(attempt["id"])
        except (Agent0Error, ValueError, KeyError):
            continue
        values = [*manifest["samples"][place : place + 1], (None, None, None)][0]
        use = "sample" if place < len(manifest["samples"]) else "replay or pair"
        names = ("advantage", "clip_high", "weight")
        trainings.append({"checkpoint": row["checkpoint"], "use": use, **dict(zip(names, values, strict=True))})
    return trainings


def _problem(recorded: Row) -> str:
    """Why an attempt has no tokens to show."""
    if recorded["trajectory_artifact"]:
        return "its trajectory is an artifact that is not in this data folder"
    if recorded["id"] is None:
        return "it has not ended yet"
    return recorded["trajectory_problem"] or _UNCAPTURED.get(recorded["capture"], "no model drew it token by token")


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
