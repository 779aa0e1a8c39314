"""A whole run told as events, without a model: what tests of read models, reports and replay read.

Every event class occurs once ``incidents`` are on, causes and handlers are as the real handlers set them, and the same
arguments give the same bytes.
"""

import random
from datetime import UTC, datetime, timedelta

from events import alarms, checkpoints, models, runs, tasks
from events.base import Event, Recorded, effect_id, record, sha256
from events.values import Artifact, RewardPart, Task, ToolCall, ToolResult, ToolState, Trajectory, Turn, Usage

DOMAINS = (("math", "arithmetic"), ("logic", "ranking"), ("code", "lists"))


def whole_run(
    run: str = "r1", iterations: int = 2, tasks: int = 6, attempts: int = 3, seed: int = 0, incidents: bool = True
) -> list[Recorded]:
    """All events of one finished run in stream order, ``seq`` from 1 without a gap."""
    teller = _Teller(run, iterations, tasks, attempts, seed)
    teller.tell_all(incidents)
    return teller.told


def renumbered(events: list[Recorded], after: int = 0) -> list[Recorded]:
    """The same events as if the stream had held ``after`` others before."""
    return [e.model_copy(update={"seq": after + n}) for n, e in enumerate(events, 1)]


def bodies(events: list[Recorded]) -> list[tuple[int, bytes]]:
    """As the log gives them out: (sequence, stored body)."""
    return [(e.seq, e.to_json()) for e in events]


class _Teller:
    def __init__(self, run: str, iterations: int, tasks: int, attempts: int, seed: int) -> None:
        self.run, self.iterations, self.tasks, self.attempts = run, iterations, tasks, attempts
        self.rng = random.Random(f"{run}/{seed}")  # noqa: S311 - a story, no secret
        self.seed, self.told, self.student = seed, [], "base"
        self.clock = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.effects: dict[tuple[str, str], int] = {}
        self.told: list[Recorded] = []

    def tell(self, event: Event, cause: Recorded | None = None, handler: str = "") -> Recorded:
        self.clock += timedelta(milliseconds=self.rng.randint(1, 40))
        origin = cause.id if cause else f"{self.run}/{self.seed}/person"
        number = self.effects.get((origin, handler), 0)
        self.effects[origin, handler] = number + 1
        made = record(
            event,
            run=self.run,
            time=self.clock,
            id=effect_id(origin, handler, number),
            cause=cause.id if cause else "",
            handler=handler,
            code_rev="0f3c2d1",
        ).model_copy(update={"seq": len(self.told) + 1})
        self.told.append(made)
        return made

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

    # --- tasks ---------------------------------------------------------------------------------------------------

    def iteration(self, cause: Recorded, iteration: int) -> Recorded:
        asked = [self.ask(cause, iteration, slot) for slot in range(self.tasks)]
        proposed = [self.propose(each) for each in asked]
        screened = [self.screen(each) for each in proposed]
        closings = [self.close(each, self.attempt_all(each)) for each in screened]
        return closings[-1]

    def ask(self, cause: Recorded, iteration: int, slot: int) -> Recorded:
        domain, family = DOMAINS[slot % len(DOMAINS)]
        event = tasks.TaskRequested(
            task=f"t{iteration}-{slot:03d}",
            iteration=iteration,
            slot=slot,
            domain=domain,
            family=family,
            level=self.rng.randint(1, 4),
            seed=self.rng.getrandbits(62),
            teacher="base" if iteration == 0 else f"teacher-{iteration - 1}",
            state_sha=sha256(f"{iteration}"),
        )
        return self.tell(event, cause, "advance_run")

    def propose(self, cause: Recorded) -> Recorded:
        asked = cause.event
        assert isinstance(asked, tasks.TaskRequested)  # noqa: S101
        malformed = asked.slot % 8 == 5
        event = tasks.TaskProposed(
            task=asked.task,
            iteration=asked.iteration,
            slot=asked.slot,
            teacher=asked.teacher,
            text="family: ?" if malformed else f"family: {asked.family}\nparams: {asked.level}",
            proposal=None if malformed else self.proposal(asked),
            problem="no family of that name" if malformed else "",
            prompt="compact/teacher@3f9a",
            trajectory=self.trajectory(30, 12),
            usage=Usage(prompt_tokens=30, completion_tokens=12, wall_s=0.02),
            model="tiny",
            seed=asked.seed,
        )
        return self.tell(event, cause, "propose_task")

    def proposal(self, asked: tasks.TaskRequested) -> Task:
        left, right = self.rng.randint(10, 10**asked.level + 10), self.rng.randint(2, 99)
        return Task(
            question=f"What is {left} * {right}? Give the number only.",
            domain=asked.domain,
            family=asked.family,
            level=asked.level,
            canonical=sha256(f"{asked.task}/{left}*{right}")[:32],
            params={"a": left, "b": right},
        )

    def screen(self, cause: Recorded) -> Recorded:
        event = cause.event
        assert isinstance(event, tasks.TaskProposed)  # noqa: S101
        at = {"task": event.task, "iteration": event.iteration, "slot": event.slot, "embedder": "ngram"}
        if event.proposal is None:
            rejected = tasks.TaskRejected(**at, reason="malformed", detail=event.problem, position=cause.seq)
            return self.tell(rejected, cause, "screen_task")
        accepted = tasks.TaskAccepted(
            **at,
            proposal=event.proposal,
            novelty=round(self.rng.random(), 6),
            against=event.slot,
            position=cause.seq,
            embedding=tuple(round(self.rng.random(), 5) for _ in range(8)),
        )
        return self.tell(accepted, cause, "screen_task")

    def close(self, screened: Recorded, outcomes: list[tuple[Recorded, bool | None]]) -> Recorded:
        event = screened.event
        assert isinstance(event, tasks.TaskAccepted | tasks.TaskRejected)  # noqa: S101
        known = [right for _, right in outcomes if right is not None]
        rate = sum(known) / len(known) if known else None
        frontier = RewardPart(name="frontier", inputs={"solve_rate": rate}, value=rate and 1 - 2 * abs(rate - 0.5))
        reward = tasks.RewardAssigned(
            task=event.task,
            iteration=event.iteration,
            role="teacher",
            set="agent0",
            parts=(frontier, RewardPart(name="validity", value=float(rate is not None), weight=0.2)),
            total=(frontier.value or 0.0) + 0.2 * (rate is not None),
            checkpoint="base",
            facts={"solve_rate": rate, "attempts": len(outcomes)},
        )
        return self.tell(reward, outcomes[-1][0] if outcomes else screened, "assign_reward")

    # --- attempts ------------------------------------------------------------------------------------------------

    def attempt_all(self, screened: Recorded) -> list[tuple[Recorded, bool | None]]:
        event = screened.event
        if not isinstance(event, tasks.TaskAccepted):
            return []
        asked = [self.ask_attempt(screened, event, n) for n in range(self.attempts)]
        return [self.attempt(each) for each in asked]

    def ask_attempt(self, cause: Recorded, event: tasks.TaskAccepted, number: int) -> Recorded:
        asked = tasks.AttemptRequested(
            task=event.task,
            attempt=f"{event.task}-a{number}",
            iteration=event.iteration,
            number=number,
            proposal=event.proposal,
            seed=self.rng.getrandbits(62),
            student=self.student,
            state_sha=sha256(event.task),
        )
        return self.tell(asked, cause, "advance_run")

    def attempt(self, cause: Recorded) -> tuple[Recorded, bool | None]:
        asked = cause.event
        assert isinstance(asked, tasks.AttemptRequested)  # noqa: S101
        truth = str(asked.proposal.params["a"] * asked.proposal.params["b"])
        with_tool = self.rng.random() < 0.6
        answer = truth if with_tool or self.rng.random() < 0.2 else str(self.rng.randint(2, 9999))
        call = ToolCall(name="python", arguments={"code": f"print({truth})"}, raw="<tool_call>…</tool_call>")
        if with_tool:
            result = ToolResult(
                state=ToolState.OK, output=truth, rc=0, wall_s=0.031, cpu_s=0.02, peak_mem_mib=11.5, backend="bubblewrap"
            )
            called = tasks.ToolCalled(
                task=asked.task, attempt=asked.attempt, turn=0, number=0, call=call, result=result
            )
            self.tell(called, cause, "attempt_task")
        done = self.tell(self.attempted(asked, answer, call, truth, with_tool), cause, "attempt_task")
        return self.judge(done, asked, answer, truth, with_tool)

    def attempted(
        self, asked: tasks.AttemptRequested, answer: str, call: ToolCall, truth: str, with_tool: bool
    ) -> tasks.TaskAttempted:
        used = (Turn(role="assistant", content=call.raw), Turn(role="tool", content=truth, name="python"))
        transcript = (
            Turn(role="system", content="You solve tasks. You may call tools."),
            Turn(role="user", content=asked.proposal.question),
            *(used if with_tool else ()),
            Turn(role="assistant", content=answer, token_ids=tuple(self.rng.sample(range(448), 5))),
        )
        return tasks.TaskAttempted(
            task=asked.task,
            attempt=asked.attempt,
            iteration=asked.iteration,
            number=asked.number,
            student=asked.student,
            answer=answer,
            end="answered",
            turns=2 if with_tool else 1,
            tool_calls=int(with_tool),
            tool_ok=int(with_tool),
            grounded=with_tool,
            transcript=transcript,
            trajectory=self.trajectory(40, 22),
            mean_logprob=-round(self.rng.random(), 6),
            prompt="compact/student@77ab",
            usage=Usage(prompt_tokens=40, completion_tokens=22, wall_s=0.05),
            model="tiny",
            seed=asked.seed,
            wall_s=0.12,
        )

    def judge(
        self, done: Recorded, asked: tasks.AttemptRequested, answer: str, truth: str, with_tool: bool
    ) -> tuple[Recorded, bool | None]:
        right = None if self.rng.random() < 0.03 else answer == truth
        at = {"task": asked.task, "attempt": asked.attempt, "iteration": asked.iteration}
        verdict = tasks.ResultVerified(
            **at, correct=right, verifier="exact@1", reason="equal" if right else "differs", expected=truth, got=answer
        )
        verified = self.tell(verdict, done, "verify_result")
        score = None if right is None else float(right)
        parts = (
            RewardPart(name="correctness", inputs={"correct": right}, value=score),
            RewardPart(name="tool_use", inputs={"tool_ok": int(with_tool)}, value=float(with_tool), weight=0.1),
        )
        reward = tasks.RewardAssigned(
            **at,
            role="student",
            set="agent0",
            parts=parts,
            total=(score or 0.0) + 0.1 * with_tool,
            checkpoint=asked.student,
            facts={"correct": right, "tool_ok": int(with_tool)},
        )
        return self.tell(reward, verified, "assign_reward"), right

    def trajectory(self, prompt: int, sampled: int) -> Trajectory:
        total = prompt + sampled
        return Trajectory(
            token_ids=tuple(self.rng.randrange(448) for _ in range(total)),
            mask=(0,) * prompt + (1,) * sampled,
            logprobs=(0.0,) * prompt + tuple(round(-self.rng.random(), 6) for _ in range(sampled)),
        )

    # --- checkpoints ---------------------------------------------------------------------------------------------

    def learn(self, cause: Recorded, iteration: int) -> Recorded:
        asked = [self.ask_training(cause, role, iteration) for role in ("teacher", "student")]
        trained = [self.train(each) for each in asked]
        evaluated = self.evaluations(trained[-1], iteration, [("validation", False)], name=f"student-{iteration}")
        event = evaluated.event
        assert isinstance(event, checkpoints.CheckpointEvaluated)  # noqa: S101
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
        rejected = checkpoints.CheckpointRejected(**{**promoted.model_dump(), "reason": "worse on validation"})
        return self.tell(rejected, evaluated, "judge_checkpoint")

    def ask_training(self, cause: Recorded, role: str, iteration: int) -> Recorded:
        asked = checkpoints.TrainingRequested(
            checkpoint=f"{role}-{iteration}",
            role=role,  # type: ignore[arg-type]
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
        asked = cause.event
        assert isinstance(asked, checkpoints.TrainingRequested)  # noqa: S101
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
                    split=split,  # type: ignore[arg-type]
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
        asked = cause.event
        assert isinstance(asked, checkpoints.EvaluationRequested)  # noqa: S101
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
            wall_s=3.0,
        )
        return self.tell(evaluated, cause, "evaluate_checkpoint")

    # --- incidents -----------------------------------------------------------------------------------------------

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
        self.tell(alarms.LogSealed(first=1, last=len(self.told), sha256=sha256("sealed")), cause, "seal_log")
        self.tell(checkpoints.CheckpointRolledBack(checkpoint=self.student, to="base", reason="a look back"))
        self.student = "base"

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


def cancelled_run(run: str = "r9") -> list[Recorded]:
    """A run that a person ended before its first task was closed."""
    teller = _Teller(run, 1, 2, 1, 0)
    teller.tell_all(incidents=False)
    kept = teller.told[:12]
    teller.told = kept
    teller.tell(runs.RunCancelled(reason="enough"))
    return teller.told
