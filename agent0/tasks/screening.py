"""Which proposals are new enough. A proposal is compared with what the run accepted before its batch was requested and
with accepted siblings of lower slot, so that the outcome does not depend on the order of completion."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from agent0.events.tasks import RefusalReason
from agent0.events.values import QUESTIONS, Task
from agent0.tasks.families import rejection
from agent0.tasks.splits import split_of_task

Fault = tuple[Literal["broken_program", "weak_check", "trivial", "unsolvable"], str]
"""Why a task is refused for its answer, and in words."""


@dataclass(frozen=True)
class Proposed:
    """A teacher's answer to a request, with ``task``, ``slot``, domain and ``kind`` as requested.

    ``proposal`` is None where the answer holds no task; ``problem`` says why.
    """

    task: str
    slot: int
    domain: str
    proposal: Task | None
    problem: str = ""
    kind: Literal["short", "long"] = "short"


@dataclass(frozen=True)
class Archive:
    """What was accepted before the batch's requests.

    Identities, how many, and by proposal's task id the highest cosine similarity to any of them (``Embedder.search``).
    ``position`` is the stream sequence it was taken at.
    """

    canonicals: AbstractSet[str] = frozenset()
    size: int = 0
    nearest: Mapping[str, float] = field(default_factory=dict)
    position: int = 0


@dataclass(frozen=True)
class Decision:
    """The decision on a proposal: accepted where ``reason`` is None.

    ``novelty`` is 1 - highest cosine similarity to the ``against`` tasks it was compared with (1.0 against nothing),
    None where it was not measured.
    """

    task: str
    slot: int
    reason: RefusalReason | None
    detail: str = ""
    novelty: float | None = None
    against: int = 0


@dataclass(frozen=True)
class Findings:
    """What was found of a proposal beforehand, each empty for nothing: what it shares with a benchmark item, and what
    is wrong with its answer."""

    overlap: str = ""
    fault: Fault | None = None


SLACK = 1e-6
"""By how much a product of a matrix may differ from those of its rows, generously: float32 vectors of length 1."""


class _Siblings:
    """Accepted proposals of the batch at hand: what they ask for, and their vectors."""

    def __init__(self, most: int, earlier: Sequence[tuple[str, Sequence[float]]]) -> None:
        self.canonicals: set[str] = set()
        self._most = most + len(earlier)
        self._rows: np.ndarray | None = None
        self._vectors: list[np.ndarray] = []
        for canonical, vector in earlier:
            self.add(canonical, np.asarray(vector))

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, canonical: str, vector: np.ndarray) -> None:
        """Add an accepted proposal."""
        if self._rows is None:
            self._rows = np.empty((self._most, len(vector)), vector.dtype)
        self._rows[len(self._vectors)] = vector
        self._vectors.append(vector)
        self.canonicals.add(canonical)

    def nearest(self, vector: np.ndarray) -> list[float]:
        """The highest similarity to any of them, in a list; an empty one where there is none.

        All are compared at once to find which may be the nearest, and those one by one: a product of a matrix rounds
        otherwise than a product of vectors, and what is recorded must not depend on how many are compared.
        """
        if self._rows is None:
            return []
        about = self._rows[: len(self._vectors)] @ vector
        near = np.flatnonzero(about >= about.max() - SLACK)
        return [max(float(self._vectors[index] @ vector) for index in near)]


def decide_batch(
    proposals: Sequence[Proposed],
    archive: Archive,
    vectors: Mapping[str, Sequence[float]],
    limit: float,
    overlaps: Mapping[str, str] | None = None,
    too_long: Mapping[str, str] | None = None,
    programs: Mapping[str, Fault | None] | None = None,
    earlier: Sequence[tuple[str, Sequence[float]]] = (),
) -> list[Decision]:
    """Decide which proposals of a batch are accepted; returns one decision each, in slot order.

    ``vectors`` holds the unit vector of every proposal's question, by task id. ``limit`` is the cosine similarity above
    which a proposal is too similar. By task id, ``overlaps`` says what a proposal shares with a benchmark item, which
    rejects it, ``too_long`` why its answer fits in no turn, ``programs`` what is wrong with its program, tests or
    checker. ``earlier``: identity and vector of tasks that the iteration accepted before. A proposal whose canonical
    form was seen is a duplicate, whatever its wording; a row of a file is asked again in each epoch. Another family or
    level of the requested domain is accepted; another domain or kind is not.
    """
    siblings = _Siblings(len(proposals), earlier)
    decisions = []
    for entry in sorted(proposals, key=lambda p: p.slot):
        fault = (programs or {}).get(entry.task)
        if long := (too_long or {}).get(entry.task):
            fault = "unsolvable", long
        findings = Findings((overlaps or {}).get(entry.task, ""), fault)
        decision = _decide(entry, archive, siblings, vectors, limit, findings)
        decisions.append(decision)
        if decision.reason is None and entry.proposal:
            siblings.add(entry.proposal.canonical, np.asarray(vectors[entry.task]))
    return decisions


def _decide(
    entry: Proposed,
    archive: Archive,
    siblings: _Siblings,
    vectors: Mapping[str, Sequence[float]],
    limit: float,
    findings: Findings,
) -> Decision:
    if entry.proposal is None:
        return Decision(entry.task, entry.slot, "malformed", entry.problem)
    duplicate = entry.proposal.canonical in siblings.canonicals or entry.proposal.canonical in archive.canonicals
    if refusal := _refusal(entry, entry.proposal, duplicate, findings):
        return Decision(entry.task, entry.slot, *refusal)
    against = archive.size + len(siblings)
    near, vector = [archive.nearest[entry.task]] if archive.size else [], np.asarray(vectors[entry.task])
    near += siblings.nearest(vector)
    closest = max(near, default=0.0)
    novelty = round(1 - closest, 6)
    if near and closest > limit and entry.proposal.family != QUESTIONS:
        return Decision(entry.task, entry.slot, "similar", f"similarity {closest:.4f} > {limit}", novelty, against)
    return Decision(entry.task, entry.slot, None, "", novelty, against)


def _refusal(entry: Proposed, proposal: Task, duplicate: bool, findings: Findings) -> tuple[RefusalReason, str] | None:
    """Why a well-formed proposal is refused whatever its wording. Validity comes first."""
    if proposal.domain != entry.domain and proposal.family != QUESTIONS:  # a row may name its own
        return "off_target", f"asked for {entry.domain}, got {proposal.domain}"
    if proposal.kind != entry.kind and proposal.row is None:
        return "off_target", f"asked for a {entry.kind} task, got a {proposal.kind} one"
    if fault := rejection(proposal.family, proposal.question):
        return fault
    if findings.fault:
        return findings.fault
    if proposal.row is None and (split := split_of_task(proposal)) != "train":  # else its file or document decides
        return "reserved", f"kept for {split}"
    if findings.overlap:
        return "contaminated", findings.overlap
    if duplicate and proposal.family != QUESTIONS:
        return "duplicate", proposal.canonical[:200]
    return None
