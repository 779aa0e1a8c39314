"""Detects that choosing by verdict changes the length or the form of what is learned.

A pool of right answers is one of short answers to easy problems, and a model that learns it may do no more than write
less: matched in form, wrong answers have taught as much. What right answers teach beyond that is in the contrast with
wrong ones to the same question.
"""

from collections.abc import Mapping

from agent0.run.monitors import Finding, History, guard_of
from agent0.settings import GuardConfig, RunConfig
from agent0.settings.roles import is_packaged
from agent0.training.gate import VERIFIED

SHORTEST, LONGEST = 0.8, 1.25
"""Bounds of the ratio of mean tokens."""
SHARE = 0.1
"""By how much the shares of programs may differ."""
COMMENTS = 0.5
"""By how many comments a program may differ."""


def chooses_by_verdict(config: RunConfig) -> bool:
    """Whether a language model learns from verified answers. A packaged one has one form, but for its tool calls: those
    the control with a forced tool tells."""
    student = config.training.student
    packaged = is_packaged(config.student.provider, config.student.model)
    return student.enabled and student.objective != "none" and student.gate == VERIFIED and not packaged


def form_change(measures: Mapping[str, float]) -> str:
    """How the form of right attempts differs from that of all answered ones, in words; empty where it does not."""
    values = {name: (measures.get(f"{name}_right"), measures.get(f"{name}_answered")) for name in _WORDS}
    known = {name: (a, b) for name, (a, b) in values.items() if a is not None and b is not None}
    return ", ".join(_WORDS[name].format(*pair) for name, pair in known.items() if _beyond(name, *pair))


_WORDS = {
    "tokens": "{0:.0f} tokens for {1:.0f}",
    "programs": "{0:.0%} programs for {1:.0%}",
    "comments": "{0:.1f} comments a program for {1:.1f}",
}


def _beyond(name: str, right: float, answered: float) -> bool:
    if name == "tokens":
        return not SHORTEST * answered <= right <= LONGEST * answered
    return abs(right - answered) > (SHARE if name == "programs" else COMMENTS)


@guard_of(chooses_by_verdict)
def form(history: History, plan: GuardConfig) -> Finding | None:
    """Report that the right attempts that are learned have another length or form than all answered ones."""
    change = form_change(history[-1])
    if not change:
        return None
    facts = {name: value for name, value in history[-1].items() if name.endswith(("_right", "_answered"))}
    return Finding(f"choosing by verdict changes the form: right attempts have {change} of all answered ones", facts)
