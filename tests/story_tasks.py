"""The part of a told run that is about tasks: asked for, proposed, screened, attempted, judged, rewarded."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from agent0.events import tasks
from agent0.events.base import Event, Recorded, effect_id, record, sha256
from agent0.events.values import Artifact, RewardPart, Task, ToolCall, ToolResult, ToolState, Trajectory, Turn, Usage

DOMAINS = (("math", "arithmetic"), ("logic", "ranking"), ("code", "lists"))


class TaskTeller:
    def __init__(self, run: str, iterations: int, tasks: int, attempts: int, seed: int) -> None:
        self.run, self.iterations, self.tasks, self.attempts = run, iterations, tasks, attempts
        self.rng = random.Random(f"{run}/{seed}")
        self.seed, self.student = seed, "base"
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
        asked: Any = cause.event
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
        event: Any = cause.event
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
        event: Any = screened.event
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
        asked: Any = cause.event
        truth = str(asked.proposal.params["a"] * asked.proposal.params["b"])
        with_tool = self.rng.random() < 0.6
        answer = truth if with_tool or self.rng.random() < 0.2 else str(self.rng.randint(2, 9999))
        call = ToolCall(name="python", arguments={"code": f"print({truth})"}, raw="<tool_call>…</tool_call>")
        long = asked.task.endswith("3")
        handler = "continue_attempt" if long else "attempt_task"
        cause = self.tell(self.turn(asked), cause, "attempt_task") if long else cause
        if with_tool:
            result = ToolResult(
                state=ToolState.OK,
                output=truth,
                rc=0,
                wall_s=0.031,
                cpu_s=0.02,
                peak_mem_mib=11.5,
                backend="bubblewrap",
            )
            called = tasks.ToolCalled(
                task=asked.task, attempt=asked.attempt, turn=0, number=0, call=call, result=result
            )
            self.tell(called, cause, handler)
        done = self.tell(self.attempted(asked, answer, call, truth, with_tool), cause, handler)
        return self.judge(done, asked, answer, truth, with_tool)

    def turn(self, asked: tasks.AttemptRequested) -> tasks.TurnCompleted:
        return tasks.TurnCompleted(
            task=asked.task,
            attempt=asked.attempt,
            iteration=asked.iteration,
            number=asked.number,
            turn=1,
            student=asked.student,
            proposal=asked.proposal,
            subgoals=("7", None),
            progress=Artifact(sha256=sha256(asked.attempt), size=900, media="application/json"),
            seed=asked.seed,
        )

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
