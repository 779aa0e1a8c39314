"""Events of experiments: an experiment rescores, verifies or trains again from a run's events, under a run token of its
own. It counts from its closing event; before that it is unfinished, and can be continued."""

from typing import Any, Literal

from pydantic import Field

from agent0.events.base import Event
from agent0.events.values import Artifact, Role, Usage

PREFIX = "exp-"
"""Begins the run token of every experiment: nothing reacts to its events."""

Kind = Literal["rescore", "reverify", "retrain"]


class ExperimentStarted(Event):
    """An experiment began: ``source`` (a run, or another experiment) up to ``until`` is processed again
    under ``policy``."""

    name: str
    kind: Kind
    source: str
    run: str
    """The run whose tasks and attempts these are."""
    until: int
    policy: dict[str, Any] = Field(default_factory=dict)
    """Reward set and weights, verifier, or training settings: resolved, none left to defaults."""
    policy_sha: str
    purged: tuple[str, ...] = ()
    """Tasks left out."""


class RecomputeFailed(Event):
    """A verifier or reward could not be recomputed at one old event; the rest went on."""

    task: str
    attempt: str = "-"
    cause_id: str
    cause_seq: int
    what: Literal["reward", "verdict"]
    error: str
    message: str = ""


class DatasetSelected(Event):
    """The dataset of a checkpoint: ``manifest`` lists event ids in order with their weights.

    ``dataset`` is the digest of what the manifest names and of all else the adapter follows from: no run, no place in
    the log, so equal datasets have one digest anywhere.
    """

    checkpoint: str
    role: Role
    manifest: Artifact
    dataset: str
    events: int
    until: int


class ExperimentFinished(Event):
    """The experiment is complete and counts from here. ``sha256`` is over the canonical data of its events,
    in order."""

    kind: Kind
    events: int
    failed: int = 0
    sha256: str
    summary: dict[str, float] = Field(default_factory=dict)


class PromptCandidateScored(Event):
    """A search over prompts, which a variant of an ablation study has in the place of training, scored a candidate.
    Each of its attempts is an ``EvaluationItemScored`` of evaluation ``search-<version of the prompt>``."""

    search: Literal["reflective", "random"]
    number: int
    """Of this scoring, from 0."""
    candidate: int
    """In the order of their first scoring, from 0, the prompt that the search began with."""
    text: str
    """The whole prompt; empty: what was proposed is none, and counts as wrong throughout."""
    items: tuple[int, ...]
    """Places of the tasks among the run's training tasks that the search draws from."""
    outcomes: str
    """A character for each item, "1" where the answer is right."""
    front: bool
    """Whether these are the tasks that decide which candidates are kept; else those that a candidate is written by."""
    attempts: int
    """Attempts that the search has spent, this scoring included; what was answered before counts again."""
    usage: Usage = Usage()
    """Of the attempts that were made for this scoring, and of the proposal before it."""
