"""Figures that pages are written from, of seeded outcomes: ``tests.test_same_seed`` compares them with those of earlier
versions."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from agent0.evaluation.protocol import EvaluationProtocol
from agent0.events.alarms import LOG, AlarmRaised, LogContinued
from agent0.events.base import record
from agent0.events.checkpoints import CheckpointEvaluated, StudentExamined
from agent0.events.tasks import ResultVerified
from agent0.events.values import Artifact
from agent0.experiments import ablation_results, compare_runs, verdict_diff
from agent0.experiments.ablation_results import RunOutcome
from agent0.provenance.hash_chain import Chain, Seal, compare_seals, localise
from agent0.state.run_state import BASE
from tests.play import EPOCH

COST = {"attempts": 100, "tokens": 5000, "model_s": 1.25, "steps": 3, "training_s": 1.5, "wall_s": 9.0}
Draw = random.Random


def result_of(exam: EvaluationProtocol, checkpoint: str, **found: Any) -> StudentExamined:
    """What ``checkpoint`` came to in ``exam``."""
    return StudentExamined(
        exam=exam.name,
        checkpoint=checkpoint,
        split=exam.split,
        seed=exam.seed,
        levels=exam.levels,
        attempts=exam.attempts,
        temperature=exam.temperature,
        forced_tool=exam.forced_tool,
        **found,
    )


def scored(rng: Draw, checkpoint: str, iteration: int, share: float, **more: Any) -> CheckpointEvaluated:
    outcomes = "".join("1" if rng.random() < share else "0" for _ in range(30))
    correct = outcomes.count("1")
    within = "".join(rng.choice("01-") for _ in outcomes)
    facts: dict[str, Any] = {"evaluation": f"e{iteration}", "checkpoint": checkpoint, "n": 30, "correct": correct}
    facts |= {"split": "test", "accuracy": correct / 30, "lower95": 0.0, "upper95": 1.0, "tool_use": 0.5} | more
    return CheckpointEvaluated(**facts, iteration=iteration, outcomes=outcomes, outcomes_within=within)


def outcomes(seeds: int) -> list[RunOutcome]:
    """Three variants, of which the third is still the base."""
    found = []
    for seed in range(seeds):
        for place, arm in enumerate(("ours", "random", "none")):
            rng = Draw(f"{arm} {seed}")
            student = BASE if place == 2 else f"student-{seed}"
            scores = [
                scored(rng, name, iteration, 0.3 + 0.2 * iteration, split=split, forced_tool=forced)
                for iteration, name in ((-1, BASE), (0, "student-9"), (1, student))
                for split in ("test", "validation")
                for forced in (False, True)
                if iteration < 0 or not forced
            ]
            run = f"g-{arm}-{seed}"
            cost = {name: value + seed for name, value in COST.items()}
            found.append(RunOutcome(arm, seed, run, student, 2, tuple(scores), cost))
    return found


def studies() -> Iterable[Any]:
    """Tables and curves of a study."""
    for seeds in (1, 3):
        held = outcomes(seeds)
        yield ablation_results.variant_rows(held)
        yield ablation_results.comparison_rows(held)
        yield [ablation_results.curves(held), ablation_results.cost_rows(held)]
        yield ablation_results.run_rows(held)
        yield [ablation_results.as_json(one) for one in held]


def sides() -> Iterable[Any]:
    """Runs side by side, the last without any score."""
    found = []
    for n, rng in enumerate(map(Draw, "abc")):
        side = compare_runs.Side(f"run {n}")
        for task in range(6 + n):
            side.rewards[f"t{task}", "", "teacher"] = round(rng.uniform(-1, 1), 3)
            side.rewards[f"t{task}", f"a{task}", "student"] = round(rng.uniform(-1, 1), 3)
        side.curve += [scored(rng, f"s{i}", i, 0.2 + 0.3 * n, split="validation") for i in range(-1, 2 * (n < 2))]
        side.cost |= {"attempts": n, "model_s": n / 7}
        found.append(side)
    yield compare_runs.side_by_side(found)


def verdicts() -> Iterable[Any]:
    """Verdicts before and after, each way that they can differ."""

    def said(n: int, correct: bool | None, verifier: str) -> ResultVerified:
        facts: dict[str, Any] = {"task": f"t{n // 2}", "attempt": f"t{n // 2}-a{n % 2}", "reason": "so"}
        return ResultVerified(**facts, iteration=0, correct=correct, verifier=verifier)

    words = (True, False, None)
    pairs = [
        verdict_diff.VerdictPair(said(n, before, "exact"), said(n, after, f"v{n % 2}"), f"family {n % 3}")
        for n, (before, after) in enumerate((one, other) for one in words for other in words)
    ]
    sides = [(None, said(20, True, "x")), (said(21, False, "x"), None), (said(22, True, "x"), said(22, True, "x"))]
    pairs += [verdict_diff.VerdictPair(*side, "family 0") for side in sides]
    yield verdict_diff.difference(pairs)


def chain() -> Iterable[Any]:
    """What a reader of the log says of seals, whole and damaged in each way."""
    held, bodies = Chain(), []
    for n in range(9):
        seals = n in (2, 5, 8)
        alarm = AlarmRaised(alarm=f"a{n}", severity="info", message="m")
        event = held.proposal(2 if n == 5 else 0) if seals else alarm
        bodies.append(record(event, run=LOG if seals else "r", time=EPOCH, id=f"i{n}").to_json())
        yield [str(one) for one in held.feed(n + 1, bodies[-1])]
    yield [held.proposal(), held.close(), held.sealed, held.fresh, held.rest, held.wants_seal, held.met]
    for n in range(9):
        for damaged in (bodies[:n] + bodies[n + 1 :], [*bodies[:n], b"x", *bodies[n + 1 :]], bodies[n:]):
            again = Chain()
            yield [[str(one), one.problem] for seq, body in enumerate(damaged, 1) for one in again.feed(seq, body)]
        late, seal = Chain.after(held.met[0]), Seal(9, n, n + 2, "0" * 64, "1" * 64)
        yield [str(one) for seq, body in enumerate(bodies[n:], n + 1) for one in late.feed(seq, body)]
        yield [[str(one), one.problem] for one in compare_seals([seal, *held.met], {3: held.met[0], 6: seal}, n, 8)]
    archive = Artifact(sha256="0" * 64, size=1)
    for seal in ("a" * 64, "no digest"):
        going = record(LogContinued(before=3, seal=seal, archive=archive), run=LOG, time=EPOCH, id="i").to_json()
        for digest in ("", "b" * 64):
            later = Chain(last=3, digest=digest)
            yield [[str(one), later.close()] for one in later.feed(4, going)] + [later.digest]
    whole = Chain().feed(4, bodies[0])
    yield [[str(one) for one in whole], localise(whole[0], {1: b"a", 2: b"b", 3: b"c"}, {1: b"b", 2: b"a", 3: b"d"})]


FIGURES: dict[str, Callable[[], Any]] = {
    "studies": studies,
    "sides": sides,
    "verdicts": verdicts,
    "hash chain": chain,
}
