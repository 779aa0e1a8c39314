"""Compares recomputed with recorded verdicts, by verifier, by family and by attempt; a judge's opinions are read from
the log."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent0.events.tasks import ResultVerified
from agent0.events.values import Task, Vote
from agent0.experiments.receipt_diff import Change
from agent0.state.run_state import TaskState
from agent0.verification.panel import Opinion, VoteAndReason
from agent0.verification.panel.opinion import CHECK

UNHEARD = "the log has no opinion of the judge"
_WORDS = {True: "right", False: "wrong", None: "undecided"}


@dataclass(frozen=True)
class VerdictPair(Change[ResultVerified]):
    """One attempt's verdict before and after; None where there is none. ``family`` is that of its task."""

    family: str = ""

    @property
    def flip(self) -> str:
        """The change as text, such as ``right to wrong``; empty where both agree, or one is undecided."""
        if self.before is None or self.after is None or self.before.correct is self.after.correct:
            return ""
        return f"{_WORDS[self.before.correct]} to {_WORDS[self.after.correct]}"


def recorded_opinion(task_state: TaskState, stored: Mapping[str, ResultVerified]) -> Opinion:
    """A judge that repeats what the log records of its votes on this task, by attempt in ``stored``."""
    votes: dict[str, Vote] = {}
    for name, attempt in task_state.attempts.items():
        vote = next((v for v in stored[name].votes if v.check == CHECK), None) if name in stored else None
        if vote is not None and attempt.answer is not None:
            votes[attempt.answer] = vote

    async def ask(task: Task, answer: str) -> VoteAndReason:
        vote = votes.get(answer)
        return (vote.correct, vote.reason) if vote else (None, UNHEARD)

    return ask


def difference(pairs: Sequence[VerdictPair]) -> dict[str, object]:
    """Counts, labels that flipped, and every verdict that changed."""
    return {
        "verdicts": len(pairs),
        "changed": sum(not p.same for p in pairs),
        "flipped": sum(bool(p.flip) for p in pairs),
        "identical": all(p.same for p in pairs),
        "only_before": sum(p.after is None for p in pairs),
        "only_after": sum(p.before is None for p in pairs),
        "flips": dict(sorted(Counter(p.flip for p in pairs if p.flip).items())),
        "by_verifier": _by("verifier", pairs, lambda p: p.of.verifier),
        "by_family": _by("family", pairs, lambda p: p.family),
        "tasks": sorted({p.of.task for p in pairs if not p.same}),
        "changes": [_change(p) for p in pairs if not p.same],
    }


def _by(column: str, pairs: Iterable[VerdictPair], key: Callable[[VerdictPair], str]) -> list[dict[str, str | int]]:
    groups: dict[str, list[VerdictPair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return [
        {
            column: name,
            "n": len(of_group),
            "changed": sum(not p.same for p in of_group),
            "flipped": sum(bool(p.flip) for p in of_group),
            **{
                f"{label}_{when}": _count(of_group, when, verdict)
                for verdict, label in _WORDS.items()
                for when in _SIDES
            },
        }
        for name, of_group in sorted(groups.items())
    ]


_SIDES = ("before", "after")


def _count(pairs: Iterable[VerdictPair], when: str, verdict: bool | None) -> int:
    return sum(judged is not None and judged.correct is verdict for judged in (getattr(p, when) for p in pairs))


def _change(pair: VerdictPair) -> dict[str, object]:
    decision, left_out = pair.of, {"task", "attempt", "iteration"}
    verdicts: dict[str, ResultVerified | None] = {when: getattr(pair, when) for when in _SIDES}
    sides = {when: v and v.model_dump(mode="json", exclude=left_out) for when, v in verdicts.items()}
    return {"task": decision.task, "attempt": decision.attempt, "family": pair.family, "flip": pair.flip, **sides}
