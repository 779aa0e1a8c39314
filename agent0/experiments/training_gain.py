"""The gain of training over everything that needs none, measured by evaluation protocols over seeds.

A student is measured in four ways. Each is compared with every control in the form that suits the control best: answers
that nobody selects with the base's own such answers and majorities, verifier-selected answers with as many and more
checked attempts of the base. The same items, paired over items and seeds (``agent0.experiments.ablation_results``).
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from agent0.evaluation.protocol import EvaluationProtocol, TaskSet

if TYPE_CHECKING:
    from agent0.experiments.ablation_results import Items, Outcome
    from events.checkpoints import StudentExamined

BASE, CHANCE = "base", "chance"
HEATS = (0.4, 0.7, 1.0, 1.3)
"""Temperatures at which the base is asked; the student is asked at one that nobody chose for it."""
HEAT, TRIES, MANY = 0.7, 8, 32
Picked = Literal["nobody", "check"]
"""Who picks among several attempts."""


@dataclass(frozen=True)
class ProtocolReading:
    """A protocol and what is read from it: right attempts of all (``attempt``), tasks with a right one (``within``) or
    whose most frequent answer is right (``majority``)."""

    attempts: int
    temperature: float
    read: Literal["attempt", "within", "majority"]
    forced_tool: bool = False

    def of(self, tasks: TaskSet) -> EvaluationProtocol:
        """The protocol that it reads, on ``tasks``."""
        return tasks.protocol(self.attempts, self.temperature, forced_tool=self.forced_tool)


@dataclass(frozen=True)
class Chance:
    """Uniformly random derivations of a set's tasks: the exact probability that one is right, by task, and their mean
    token count (None where no tokenizer counted)."""

    right: tuple[float, ...]
    tokens: float | None = None

    def within(self, tries: int) -> "Items":
        """The probability, by place, that one of ``tries`` independent derivations is right: the expectation, without
        sampling noise."""
        return {place: 1 - (1 - share) ** tries for place, share in enumerate(self.right)}


@dataclass(frozen=True)
class Measure:
    """A measure of a student. It is compared with the controls whose answers are selected in the same way (``picked``).

    ``short`` is its name in tables. ``aim``: the lead over all controls that was set beforehand, as a share; None where
    none was.
    """

    title: str
    short: str
    way: ProtocolReading
    picked: Picked
    aim: float | None = None


MEASURES: Mapping[str, Measure] = {
    "within": Measure(
        f"solved within {TRIES} checked attempts",
        f"within {TRIES}, T={HEAT:g}",
        ProtocolReading(TRIES, HEAT, "within"),
        "check",
        0.20,
    ),
    "single": Measure("one greedy attempt", "greedy", ProtocolReading(1, 0.0, "attempt"), "nobody", 0.10),
    "mean": Measure(
        f"one attempt at T={HEAT:g} (mean of {TRIES})",
        f"sampled, T={HEAT:g}",
        ProtocolReading(TRIES, HEAT, "attempt"),
        "nobody",
    ),
    "majority": Measure(
        f"majority of {TRIES} at T={HEAT:g}",
        f"majority of {TRIES}, T={HEAT:g}",
        ProtocolReading(TRIES, HEAT, "majority"),
        "nobody",
    ),
}
CONTROLS: Mapping[Picked, Mapping[str, ProtocolReading]] = {
    "check": {
        "within 1, greedy": ProtocolReading(1, 0.0, "within"),
        **{f"within {TRIES}, T={heat:g}": ProtocolReading(TRIES, heat, "within") for heat in HEATS},
        f"within {MANY}, T=1": ProtocolReading(MANY, 1.0, "within"),
        "tool forced, within 1": ProtocolReading(1, 0.0, "within", True),
        f"tool forced, within {TRIES}": ProtocolReading(TRIES, HEAT, "within", True),
    },
    "nobody": {
        "greedy": ProtocolReading(1, 0.0, "attempt"),
        **{f"sampled, T={heat:g}": ProtocolReading(TRIES, heat, "attempt") for heat in HEATS},
        **{f"majority of {TRIES}, T={heat:g}": ProtocolReading(TRIES, heat, "majority") for heat in HEATS},
        "tool forced, greedy": ProtocolReading(1, 0.0, "attempt", True),
        f"tool forced, majority of {TRIES}": ProtocolReading(TRIES, HEAT, "majority", True),
    },
}
"""Everything that the untrained base can be made to do: by who picks, name -> how."""
SAME_TRIES, SAME_TOKENS = f"random derivations, {TRIES} tries", "random derivations, as many tokens"
"""Controls without a model, where a check picks: as many checked tries as the student has attempts; and as many as fit
into what it wrote in these, since one attempt may hold several tries."""
BESIDE: Mapping[Picked, Mapping[str, ProtocolReading]] = {
    "check": {},
    "nobody": {f"within {MANY} checked, T=1": ProtocolReading(MANY, 1.0, "within")},
}
"""Shown with them, and not compared: a check picks there."""


def student_protocols(tasks: TaskSet) -> tuple[EvaluationProtocol, ...]:
    """The protocols on ``tasks`` that ``MEASURES`` read from a student."""
    return tuple(dict.fromkeys(measure.way.of(tasks) for measure in MEASURES.values()))


def base_protocols(tasks: TaskSet) -> tuple[EvaluationProtocol, ...]:
    """The protocols that ``CONTROLS`` read, and those of the student: both are evaluated alike, too."""
    ways = [way for held in (*CONTROLS.values(), *BESIDE.values()) for way in held.values()]
    return tuple(dict.fromkeys((*student_protocols(tasks), *(way.of(tasks) for way in ways))))


def item_scores(event: "StudentExamined", way: ProtocolReading) -> "Items":
    """Read item scores from a protocol's result, by place in the set."""
    if way.read == "majority":
        return {place: float(said == "1") for place, said in enumerate(event.majority)}
    score: Callable[[int], float] = (
        (lambda n: n / event.attempts) if way.read == "attempt" else (lambda n: float(n > 0))
    )
    return {place: score(right) for place, right in enumerate(event.right)}


# what reckons with arms is imported where it is needed: the command line names this grid and should not wait for it
def summarise(
    outcomes: Sequence["Outcome"], sets: Sequence[TaskSet], chances: Mapping[str, Chance] | None = None
) -> dict[str, Any]:
    """Summarise all protocol results of a study.

    ``means`` of variants and controls; the first variant ``against`` every control, and against the other variants
    (``arms``); every variant ``alike`` against its base under the same protocols; every run's own numbers; the origin
    of training examples (``learned``). ``chances``: by set, the scores of random derivations.
    """
    held = [_SetResults(tasks, outcomes, (chances or {}).get(tasks.name)) for tasks in sets]
    return {
        "sets": [{"name": s.name, "title": s.title, "n": s.n, "seed": s.seed, "levels": list(s.levels)} for s in sets],
        "means": [row for one in held for row in one.means()],
        "against": [row for one in held for row in one.against()],
        "arms": [row for one in held for row in one.arms()],
        "alike": [row for one in held for row in one.alike()],
        "cells": [_cell(outcome, sets) for outcome in outcomes],
        "bases": _bases(outcomes, sets),
        "learned": _learned(outcomes),
        "cost": _cost(outcomes),
    }


def _learned(outcomes: Sequence["Outcome"]) -> list[dict[str, Any]]:
    """By arm, over its seeds: whose the characters are that count in training examples, as shares of all of them."""
    rows = []
    for arm in dict.fromkeys(one.arm for one in outcomes):
        made = Counter[str]()
        for one in outcomes:
            made.update(one.learned if one.arm == arm else {})
        parts = {name: made[name] for name in ("written", "corrected", "placed")}
        if whole := sum(parts.values()):
            shares = {name: count / whole for name, count in parts.items()}
            others = {"examples": made["examples"], "other_tasks": made["other_tasks"] / made["examples"]}
            rows.append({"arm": arm, **shares, **others})
    return rows


@dataclass(frozen=True)
class _SetResults:
    """The protocol results of one task set."""

    tasks: TaskSet
    outcomes: Sequence["Outcome"]
    chance: Chance | None = None

    def student(self, arm: str, way: ProtocolReading) -> dict[int, "Items"]:
        """By seed; only seeds where it was asked so."""
        own = [(one.seed, _items([one], one.student, self.tasks, way)) for one in self.outcomes if one.arm == arm]
        return {seed: items for seed, items in own if items}

    def base(self, way: ProtocolReading) -> dict[int, "Items"]:
        seeds = dict.fromkeys(one.seed for one in self.outcomes)
        own = {s: _items([o for o in self.outcomes if o.seed == s], BASE, self.tasks, way) for s in seeds}
        return {seed: items for seed, items in own.items() if items}

    def by_chance(self) -> dict[str, dict[int, "Items"]]:
        """Random derivations by control and seed; as many tokens as the first arm's student of that seed wrote in all
        its attempts at a task, on average."""
        if self.chance is None:
            return {}
        arm, protocol = next(iter(self.names), ""), MEASURES["within"].way.of(self.tasks)
        found: dict[str, dict[int, Items]] = {SAME_TRIES: {}, SAME_TOKENS: {}}
        for one in self.outcomes:
            if one.arm == arm:
                found[SAME_TRIES][one.seed] = self.chance.within(TRIES)
                if self.chance.tokens and (written := _tokens([one], {one.student}, protocol)):
                    found[SAME_TOKENS][one.seed] = self.chance.within(int(TRIES * written / self.chance.tokens))
        return found

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(one.arm for one in self.outcomes))

    def means(self) -> Iterator[dict[str, Any]]:
        for arm in self.names:
            own = [one for one in self.outcomes if one.arm == arm]
            for measure in MEASURES.values():
                shown = {"who": arm, "how": measure.short, "picked": measure.picked, "trained": True}
                written = _tokens(own, {one.student for one in own}, measure.way.of(self.tasks))
                yield from self._mean(shown, self.student(arm, measure.way), written)
        for picked, controls in CONTROLS.items():
            for title, way in {**controls, **BESIDE[picked]}.items():
                shown = {"who": BASE, "how": title, "picked": picked, "trained": False}
                yield from self._mean(shown, self.base(way), _tokens(self.outcomes, {BASE}, way.of(self.tasks)))
        for title, found in self.by_chance().items():
            named = {"who": CHANCE, "how": title, "picked": "check", "trained": False}
            yield from self._mean(named, found, self.chance.tokens if self.chance else None)

    def _mean(
        self, shown: Mapping[str, Any], found: Mapping[int, "Items"], tokens: float | None
    ) -> Iterator[dict[str, Any]]:
        from agent0.experiments.ablation_results import averaged

        if found:
            by_seed = {str(seed): fmean(items.values()) for seed, items in found.items()}
            mean = averaged(list(found.values()))
            yield {"set": self.tasks.name, **shown, **mean, "tokens": tokens, "by_seed": by_seed}

    def against(self) -> Iterator[dict[str, Any]]:
        first = next(iter(self.names), "")
        for name, measure in MEASURES.items():
            own = self.student(first, measure.way)
            rivals = {title: self.base(way) for title, way in CONTROLS[measure.picked].items()}
            rivals |= self.by_chance() if measure.picked == "check" else {}
            yield from self._claims(name, [(first, title, found, own) for title, found in rivals.items()])

    def arms(self) -> Iterator[dict[str, Any]]:
        """The first less each other: what is lost without the difference."""
        for name, measure in MEASURES.items():
            own = {arm: self.student(arm, measure.way) for arm in self.names}
            first = next(iter(own), "")
            yield from self._claims(name, [(first, arm, own[arm], own[first]) for arm in own if arm != first])

    def alike(self) -> Iterator[dict[str, Any]]:
        for name, measure in MEASURES.items():
            before = self.base(measure.way)
            yield from self._claims(name, [(arm, BASE, before, self.student(arm, measure.way)) for arm in self.names])

    def _claims(self, name: str, pairs: Sequence[tuple[str, str, Any, Any]]) -> list[dict[str, Any]]:
        from agent0.experiments.ablation_results import claim_rows

        return [{"set": self.tasks.name, **row} for row in claim_rows(name, pairs)]


def _items(outcomes: Sequence["Outcome"], checkpoint: str, tasks: TaskSet, way: ProtocolReading) -> "Items":
    protocol, events = way.of(tasks), (event for one in outcomes for event in one.exams)
    events = (event for event in events if event.checkpoint == checkpoint and protocol.matches(event))
    return next((item_scores(event, way) for event in events), {})


def _tokens(outcomes: Sequence["Outcome"], checkpoints: Container[str], protocol: EvaluationProtocol) -> float | None:
    """Written in an attempt, on average; None where it was not examined."""
    events = [event for one in outcomes for event in one.exams if event.checkpoint in checkpoints]
    events = [event for event in events if protocol.matches(event)]
    return (
        sum(event.tokens for event in events) / sum(len(event.right) * event.attempts for event in events)
        if events
        else None
    )


def _cell(outcome: "Outcome", sets: Sequence[TaskSet]) -> dict[str, Any]:
    row: dict[str, Any] = {"arm": outcome.arm, "seed": outcome.seed, "student": outcome.student}
    for tasks in sets:
        for name, measure in MEASURES.items():
            items = _items([outcome], outcome.student, tasks, measure.way)
            row[f"{tasks.name} {name}"] = fmean(items.values()) if items else None
    return row


def _bases(outcomes: Sequence["Outcome"], sets: Sequence[TaskSet]) -> list[dict[str, Any]]:
    """The same of each seed's base."""
    rows = []
    for seed in dict.fromkeys(one.seed for one in outcomes):
        own = [one for one in outcomes if one.seed == seed]
        row: dict[str, Any] = {"arm": BASE, "seed": seed, "student": BASE}
        for tasks in sets:
            for name, measure in MEASURES.items():
                items = _items(own, BASE, tasks, measure.way)
                row[f"{tasks.name} {name}"] = fmean(items.values()) if items else None
        rows.append(row)
    return rows


def _cost(outcomes: Sequence["Outcome"]) -> dict[str, Any]:
    """Of all exams together."""
    events = [event for one in outcomes for event in one.exams]
    return {
        "exams": len(events),
        "attempts": sum(len(event.right) * event.attempts for event in events),
        "tokens": sum(event.tokens for event in events),
        "seconds": round(sum(event.wall_s for event in events), 1),
    }
