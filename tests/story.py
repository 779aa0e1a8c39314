"""A whole run told as events, without a model: what tests of read models, reports and replay read.

Every event class occurs once ``incidents`` are on, causes and handlers are as the real handlers set them, and the same
arguments give the same bytes.
"""

from typing import Any

from agent0.events import alarms, benchmarks, budgets, checkpoints, experiments, models, policies, runs
from agent0.events.base import Recorded, effect_id, sha256
from agent0.events.values import Artifact, OpenReservation, Usage
from tests.story_conversation import CONVERSATION
from tests.story_tasks import DOMAINS, TaskTeller
from tests.story_training import training_steps


def whole_run(
    run: str = "r1", iterations: int = 2, tasks: int = 6, attempts: int = 3, seed: int = 0, incidents: bool = True
) -> list[Recorded]:
    """All events of one finished run in stream order, ``seq`` from 1 without a gap."""
    teller = Teller(run, iterations, tasks, attempts, seed)
    teller.tell_all(incidents)
    return teller.told


def renumbered(events: list[Recorded], after: int = 0) -> list[Recorded]:
    """The same events as if the stream had held ``after`` others before."""
    return [e.model_copy(update={"seq": after + n}) for n, e in enumerate(events, 1)]


def bodies(events: list[Recorded]) -> list[tuple[int, bytes]]:
    """As the log gives them out: (sequence, stored body)."""
    return [(e.seq, e.to_json()) for e in events]


class Teller(TaskTeller):
    def tell_all(self, incidents: bool) -> None:
        config = {"seed": self.seed, "iterations": self.iterations, "tasks": self.tasks, "attempts": self.attempts}
        started = runs.RunStarted(
            name=f"story {self.run}",
            profile="tiny",
            seed=self.seed,
            config=config,
            config_sha=sha256(str(config)),
            prompts={"compact/student": sha256("student")[:12]},
        )
        first = self.tell(started)
        last = self.evaluations(first, -1, [("validation", False), ("test", False), ("test", True)])
        for iteration in range(self.iterations):
            closing = self.iteration(last, iteration)
            if incidents:
                self.incidents(closing)
            last = self.learn(closing, iteration)
        last = self.evaluations(last, self.iterations - 1, [("test", False)], "-final")
        total = self.iterations * self.tasks
        finished = runs.RunFinished(
            iterations=self.iterations, tasks=total, attempts=total * self.attempts, state_sha=sha256("done")
        )
        self.tell(finished, last, "advance_run")

    def learn(self, cause: Recorded, iteration: int) -> Recorded:
        asked = [self.ask_training(cause, role, iteration) for role in ("teacher", "student")]
        self.measured(asked[0], iteration)
        trained = [self.train(each) for each in asked]
        if iteration:
            self.judge_teacher(asked[0], iteration)
        evaluated = self.evaluations(trained[-1], iteration, [("validation", False)], name=f"student-{iteration}")
        event: Any = evaluated.event
        self.student = event.checkpoint
        promoted = checkpoints.CheckpointPromoted(
            checkpoint=event.checkpoint,
            iteration=iteration,
            accuracy=event.accuracy,
            against=event.accuracy - 0.1,
            reason="better on validation",
        )
        if iteration % 4 != 3:
            return self.tell(promoted, evaluated, "judge_checkpoint")
        rejected = checkpoints.CheckpointRejected(
            **{**promoted.model_dump(exclude={"improved", "by", "adapter"}), "reason": "worse on validation"}
        )
        return self.tell(rejected, evaluated, "judge_checkpoint")

    def judge_teacher(self, cause: Recorded, iteration: int) -> None:
        counts = {"screened": self.tasks, "readable": self.tasks, "accepted": self.tasks - 1}
        judged = checkpoints.TeacherJudged(
            checkpoint=f"teacher-{iteration - 1}",
            iteration=iteration,
            promoted=iteration % 4 != 3,
            against="base",
            reason="no fall is proven",
            **counts,
            **{f"against_{name}": number for name, number in counts.items()},
            readable_p=1.0,
            accepted_p=1.0,
        )
        self.tell(judged, cause, "judge_teacher")

    def measured(self, cause: Recorded, iteration: int) -> None:
        found = {"tasks": float(self.tasks), "solve_rate": round(self.rng.random(), 6), "tokens": 31.5}
        told = runs.IterationMeasured(iteration=iteration, student=self.student, teacher="base", measures=found)
        self.tell(told, cause, "measure_iteration")

    def ask_training(self, cause: Recorded, role: str, iteration: int) -> Recorded:
        asked = checkpoints.TrainingRequested(
            checkpoint=f"{role}-{iteration}",
            role=role,
            iteration=iteration,
            parent="base" if iteration == 0 else f"{role}-{iteration - 1}",
            after=0,
            until=cause.seq,
            replay_after=0,
            seed=self.rng.getrandbits(62),
            state_sha=sha256(f"train {iteration}"),
        )
        return self.tell(asked, cause, "advance_run")

    def train(self, cause: Recorded) -> Recorded:
        asked: Any = cause.event
        of = {"checkpoint": asked.checkpoint, "role": asked.role, "iteration": asked.iteration}
        steps = training_steps(asked.iteration)
        self.tell(checkpoints.TrainingMeasured(**of, first=1, steps=steps), cause, "train_checkpoint")
        trained = checkpoints.CheckpointTrained(
            checkpoint=asked.checkpoint,
            role=asked.role,
            iteration=asked.iteration,
            parent=asked.parent,
            adapter=Artifact(sha256=sha256(asked.checkpoint), size=472_000, media="application/x-tar"),
            manifest=Artifact(sha256=sha256(f"{asked.checkpoint}/manifest"), size=900, media="application/json"),
            samples=self.tasks * self.attempts,
            replay=8,
            skipped={"no_spread": 3},
            metrics={"loss": round(self.rng.random(), 6), "steps": 12.0},
            recipe={"lr": 2.5e-3, "rank": 16},
            environment={"torch": "2.13.0+cpu", "threads": "1"},
            wall_s=2.5,
        )
        return self.tell(trained, cause, "train_checkpoint")

    def evaluations(
        self, cause: Recorded, iteration: int, plan: list[tuple[str, bool]], suffix: str = "", name: str = ""
    ) -> Recorded:
        held = name or self.student
        asked = [
            self.tell(
                checkpoints.EvaluationRequested(
                    evaluation=f"{held}-{split}{suffix}{'-forced' if forced else ''}",
                    checkpoint=held,
                    iteration=iteration,
                    split=split,
                    n=30,
                    seed=20260101,
                    forced_tool=forced,
                    state_sha=sha256(f"evaluate {iteration}"),
                ),
                cause,
                "advance_run",
            )
            for split, forced in plan
        ]
        return [self.evaluate(each) for each in asked][-1]

    def evaluate(self, cause: Recorded) -> Recorded:
        asked: Any = cause.event
        self.items(cause)
        share = 0.6 if asked.forced_tool else min(0.9, 0.25 + 0.1 * (asked.iteration + 1))
        outcomes = "".join("1" if self.rng.random() < share else "0" for _ in range(asked.n))
        accuracy = outcomes.count("1") / asked.n
        evaluated = checkpoints.CheckpointEvaluated(
            evaluation=asked.evaluation,
            checkpoint=asked.checkpoint,
            iteration=asked.iteration,
            split=asked.split,
            forced_tool=asked.forced_tool,
            n=asked.n,
            correct=outcomes.count("1"),
            accuracy=accuracy,
            lower95=max(0.0, accuracy - 0.16),
            upper95=min(1.0, accuracy + 0.16),
            tool_use=share,
            by_domain={domain: accuracy for domain, _ in DOMAINS},
            by_level={"1": accuracy},
            latency_p50_s=0.1,
            latency_p95_s=0.3,
            items=Artifact(sha256=sha256(asked.evaluation), size=5000, media="application/jsonl"),
            outcomes=outcomes,
            confidences="".join("70" if outcome == "1" else "40" for outcome in outcomes),
            checked=8,
            checkable=asked.n // 2,
            solved_at_once=accuracy,
            solved_within=min(1.0, accuracy + 0.2),
            lower95_within=accuracy,
            upper95_within=1.0,
            outcomes_within="-1" * (asked.n // 2),
            attempts_within=4 * asked.n,
            wall_s=3.0,
        )
        return self.tell(evaluated, cause, "evaluate_item")

    def items(self, cause: Recorded) -> None:
        """The first items of an evaluation as events of their own; the numbers of the others are told at its end."""
        name: str = cause.event.evaluation  # type: ignore[attr-defined]
        for number in range(2):
            asked = checkpoints.EvaluationItemRequested(evaluation=name, number=number)
            scored = checkpoints.EvaluationItemScored(
                evaluation=name, number=number, item=f"linear {number}", domain="math", level=1, question="Find x: x=1",
                answer="1", correct=number == 0, tool_ok=1, tokens=9, seconds=0.1, signals={"answer": 0.7},
                within=1, tries=1, tried=("1",), reason="told", expected="1", end="answered", turns=2, tool_calls=1,
                conversation=CONVERSATION,
            )  # fmt: skip
            self.tell(scored, self.tell(asked, cause, "evaluate_checkpoint"), "evaluate_item")

    def incidents(self, cause: Recorded) -> None:
        """One of everything that interrupts a run without ending it."""
        self.tell(runs.RunPaused(reason="lunch"))
        self.tell(runs.RunResumed(reason="back"))
        lost = alarms.DependencyLost(dependency="ollama", waiting="attempt_task", message="connection refused")
        self.tell(lost, cause, "attempt_task")
        self.tell(alarms.DependencyRestored(dependency="ollama", waiting="attempt_task"), cause, "attempt_task")
        for handler in ("verify_result", "raise_alarm"):
            self.failure(cause, handler)
        self.tell(
            alarms.AlarmRaised(alarm="slow-tools", severity="warning", message="p95 over 5 s", facts={"p95_s": 6.1}),
            cause,
            "raise_alarm",
        )
        self.tell(alarms.AlarmResolved(alarm="slow-tools", message="p95 under 5 s"), cause, "raise_alarm")
        asked = models.ModelCalled(provider="ollama", model="qwen2.5:3b", role="teacher", finish="stop", usage=Usage())
        self.tell(asked, cause, "propose_task")
        self.tell(models.CallRouted(route="c1", role="judge", strategy="shadow", chosen="tiny"), cause, "verify_result")
        self.tell(alarms.LogSealed(first=1, last=len(self.told), sha256=sha256("sealed")), cause, "seal_log")
        self.tell(checkpoints.CheckpointRolledBack(checkpoint=self.student, to="base", reason="a look back"))
        self.compared()
        self.student = "base"

    def compared(self) -> None:
        """Two checkpoints beside one another, and one thrown away."""
        found = {"n": 40, "limit": 400, "first_correct": 12, "second_correct": 31, "gained": 20, "lost": 1}
        self.tell(
            checkpoints.ModelsCompared(
                comparison="ab-1", first="r1/base", second="r1/student-0", split="validation", seed=7, **found,
                e_value=9000.0, winner="second", first_outcomes="01" * 20, second_outcomes="11" * 20, wall_s=2.5,
            )
        )  # fmt: skip
        shares = checkpoints.CheckpointRepeated(
            checkpoint="student-0", split="validation", n=150, seed=1, accuracies=(0.5, 0.52, 0.51), wall_s=3.5
        )
        self.tell(shares)
        self.tell(
            checkpoints.StudentExamined(
                exam="8 at T=1", checkpoint="student-0", split="test", seed=3, attempts=8, temperature=1.0,
                right=(0, 3, 8), majority="0?1", tokens=900, wall_s=1.5, levels=(2, 3), excluded=("fresh 1", "fresh 2"),
                answers=Artifact(sha256=sha256("answers"), size=900, media="application/jsonl"),
            )
        )  # fmt: skip
        sha = sha256("student-0")
        self.tell(checkpoints.CheckpointPruned(checkpoint="student-0", adapter=sha, size=472_000, reason="not needed"))

    def failure(self, cause: Recorded, handler: str) -> None:
        at = {"failure": effect_id(cause.id, handler, 0), "cause_id": cause.id, "failed_handler": handler}
        failed = alarms.ReactionFailed(
            **at,
            cause_seq=cause.seq,
            cause_type=cause.type,
            cause_task=cause.task,
            error="ValueError",
            message="no such unit",
            traceback="Traceback (most recent call last): …",
            deliveries=10,
        )
        self.tell(failed, cause, handler)
        if handler == "verify_result":
            self.tell(alarms.ReactionRetried(**at, cause_seq=cause.seq))
        else:
            self.tell(alarms.ReactionDropped(**at, cause_type=cause.type, reason="not needed"))


def policy_changes(after: int = 0) -> list[Recorded]:
    """What a person changed about tools, which is part of no run."""
    told = Teller(policies.RUN, 1, 1, 1, 0)
    for allowed in (True, False):
        change = policies.PolicyChanged(
            profile="tiny", kind="host", name="example.org", allowed=allowed, reason="for a look"
        )
        told.tell(change)
    return renumbered(told.told, after)


def budget_entries(after: int = 0) -> list[Recorded]:
    """A day's budget: capped, reserved from, and charged."""
    told = Teller(f"{budgets.PREFIX}day-2026-01-01", 1, 1, 1, 0)
    state: dict[str, Any] = {"scope": "day", "name": "2026-01-01", "cap": 2 * budgets.DOLLAR}
    told.tell(budgets.BudgetChanged(**state, kind="cap", configured=2 * budgets.DOLLAR, reason="setting"))
    held = OpenReservation(call="c1", amount=budgets.DOLLAR, expires=1767225600)
    of = {"call": "c1", "provider": "openai", "model": "gpt-4o"}
    user = budgets.BudgetState(scope="user", name="local", open=(held,))
    told.tell(budgets.BudgetChanged(**state, **of, kind="reserve", amount=budgets.DOLLAR, open=(held,), also=(user,)))
    cost = {"amount": 1_700_000_000, "spent": 1_700_000_000, "reserved": budgets.DOLLAR, "level": "near"}
    told.tell(budgets.BudgetChanged(**state, **of, **cost, kind="settle", prices="genai-prices 0.2.3, 2026-01-01"))
    return renumbered(told.told, after)


def benchmark_run(after: int = 0) -> list[Recorded]:
    """A student scored on one benchmark with tools and without, a calibrator, and a person's word."""
    told = Teller("bench-1", 1, 1, 1, 0)
    told.tell(
        benchmarks.BenchmarkStarted(
            name="tiny", benchmarks=("gsm8k",), modes=("tools", "plain"), samples=1, limit=2, seed=0,
            actor={"provider": "tiny"}, files={"gsm8k_test.jsonl": sha256("rows")}, versions={"gsm8k": "abc"},
        )
    )  # fmt: skip
    for mode in ("tools", "plain"):
        for number, correct in enumerate((True, None)):
            at = {"benchmark": "gsm8k", "item": f"gsm8k/{number}", "mode": mode, "sample": 0}
            attempt = {"conversation": CONVERSATION, "turns": 2, "tool_calls": 1}
            told.tell(
                benchmarks.ItemScored(**at, **attempt, answer="18", correct=correct, reason="told", end="answered")
            )
        told.tell(
            benchmarks.BenchmarkScored(
                benchmark="gsm8k", mode=mode, n=2, samples=1, correct=1, undecided=1, accuracy=0.5, lower95=0.1,
                upper95=0.9, pass_at={"1": 0.5},
            )
        )  # fmt: skip
    told.tell(benchmarks.BenchmarkFinished(results=Artifact(sha256=sha256("results"), size=7)))
    told.tell(
        benchmarks.CalibratorFitted(
            name="tiny", signal="token_confidence", method="platt", parameters=(1.0, 0.0), fitted_on=2, scored_on=2,
            ece_before=0.2, ece_after=0.1, lower95=0.0, upper95=0.3, brier_before=0.2, brier_after=0.1,
        )
    )  # fmt: skip
    told.tell(
        benchmarks.BenchmarksIndexed(
            benchmarks=("gsm8k",), files={"gsm8k_test.jsonl": sha256("rows")}, items=2, ngram=8, limit=0.95,
            embedder="ngram",
        )
    )  # fmt: skip
    told.tell(benchmarks.TaskReviewed(task="t0-000", attempt="t0-000-a0", correct=True, reviewer="ada"))
    return renumbered(told.told, after)


def experiment(after: int = 0, run: str = "r1") -> list[Recorded]:
    """A run looked at once more: rescored, with one reward that could not be computed, and trained on."""
    told = Teller(f"{experiments.PREFIX}bold", 1, 1, 1, 0)
    policy = {"set": "agent0", "weights": {"novelty": 0.4}}
    told.tell(
        experiments.ExperimentStarted(
            name="bold", kind="rescore", source=run, run=run, until=100, policy=policy, policy_sha=sha256(str(policy))
        )
    )
    told.tell(
        experiments.RecomputeFailed(
            task="t0-000", attempt="t0-000-a0", cause_id=effect_id("x", "y", 0), cause_seq=7, what="reward",
            error="ZeroDivisionError", message="division by zero",
        )
    )  # fmt: skip
    judged = {"batch": "batch_1", "call": "c1"}
    told.tell(models.BatchSubmitted(**judged, provider="openai", model="gpt-4o", role="judge", amount=9, requests=2))
    told.tell(models.BatchEnded(**judged, answered=2, failed=0, cost=7))
    told.tell(
        experiments.PromptCandidateScored(
            search="random",
            number=0,
            candidate=0,
            text="Solve it.",
            items=(0, 3),
            outcomes="10",
            front=True,
            attempts=2,
        )
    )
    manifest = Artifact(sha256=sha256("manifest"), size=900, media="application/json")
    told.tell(
        experiments.DatasetSelected(
            checkpoint="student-0", role="student", manifest=manifest, dataset=sha256("dataset"), events=12, until=100
        )
    )
    told.tell(
        experiments.ExperimentFinished(
            kind="rescore", events=40, failed=1, sha256=sha256("told"), summary={"spearman": 0.9}
        )
    )
    told.tell(alarms.EventRedacted(sha256=sha256("forgotten"), was="TaskProposed"))
    told.tell(
        alarms.ReactionTried(
            cause_id=effect_id("x", "y", 0), cause_seq=7, cause_type="TaskAttempted", tried_handler="verify_result",
            outcome="failed", error="ValueError", message="no such unit",
        )
    )  # fmt: skip
    told.tell(alarms.MessageExcluded(at=7, sha256=sha256("junk"), reason="written by another program"))
    told.tell(alarms.LogContinued(before=100, seal=sha256("sealed"), archive=manifest))
    whole = Teller(alarms.LOG, 1, 1, 1, 0)
    whole.tell(alarms.LogSealed(first=1, last=90, sha256=sha256("sealed"), events=90, created="2026-01-01T00:00:00Z"))
    return renumbered([*told.told, *whole.told], after)
