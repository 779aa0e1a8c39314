"""Settings of verification, held-out evaluation and run monitors."""

from typing import Literal

from pydantic import Field

from agent0.settings.base import LARGEST, Frozen
from agent0.settings.roles import JudgeConfig


class VerificationConfig(Frozen):
    """How answers are verified that no family and no program computes, and what happens to undecided verdicts."""

    unchecked: str = Field(
        "refuse",
        description="questions that no family and no program answers: refuse, panel (several independent checks), "
        "self_consistency (the majority is right, as in the paper), or a plugin's verifier of several attempts",
    )
    undecided: Literal["leave", "ask"] = Field("leave", description="ask: the run waits for agent0 task review")
    agreeing: int = Field(3, ge=2, le=1000, description="panel: attempts that must say the same")
    agreement: float = Field(0.6, gt=0.5, le=1, description="panel: and their share of all attempts")
    judge: JudgeConfig = JudgeConfig()


class EnergyConfig(Frozen):
    """What running this machine costs: without both numbers reports give no cost, and a local call is charged
    nothing."""

    power_w: float | None = Field(None, ge=0, le=1_000_000, description="power of the machine while it runs, watts")
    price_kwh: float | None = Field(None, ge=0, le=1_000, description="price of a kilowatt-hour, in dollars")


class EvaluationConfig(Frozen):
    """Size of the held-out sets and the promotion gate. Nothing is ever selected on the test set."""

    validation: int = Field(150, ge=1, le=1_000_000, description="tasks scored after each checkpoint")
    test: int = Field(300, ge=0, le=1_000_000, description="tasks scored for the first and the last checkpoint only")
    seed: int = Field(20260101, ge=0, le=LARGEST, description="draws the sets")
    levels: tuple[int, ...] = Field((), description="levels scored; empty: all")
    long: bool = Field(False, description="held-out tasks are long ones, of the families that the curriculum names")
    at_once: int = Field(128, ge=1, le=1000, description="items of an evaluation that are under way at once, at most")
    checked: int = Field(
        0, ge=0, le=1000, description="sampled attempts at an item that can be checked, until one is right; 0: none"
    )
    forced_tool: bool = Field(True, description="score the untrained base with its tool forced, too")
    max_truncated: float = Field(
        0.1, ge=0, le=1, description="share of replies that may meet max_tokens; above it an accuracy is no score"
    )
    gate: Literal["no_worse", "better", "open"] = Field(
        "no_worse",
        description="no_worse refuses a lower score (see margin) and a proven loss; better: what is no proven gain; "
        "open: nothing",
    )
    benchmarks: tuple[str, ...] = Field(
        (), description="benchmarks scored for the base, after trainings and at the end; see agent0 bench list"
    )
    benchmark_items: int = Field(
        100, ge=0, le=1_000_000, description="items of each benchmark, the same each time; 0: all"
    )
    benchmark_every: int = Field(1, ge=1, le=100_000, description="iterations from one such scoring to the next")
    benchmark_gate: bool = Field(
        False, description="refuse a checkpoint that loses on a benchmark by more than chance explains"
    )
    teacher_gate: Literal["no_worse", "open"] = Field(
        "no_worse", description="no_worse refuses a teacher of whose proposals provably fewer are readable or accepted"
    )
    margin: float = Field(
        0, ge=0, description="no_worse: how far validation accuracy may be below the best one's; 0: never lower"
    )
    calibration: float = Field(
        0.05, ge=0, le=1, description="no_worse: proven rise of the Brier score, unless so is a gain; 1: any rise"
    )


Action = Literal["off", "alarm", "pause", "rollback"]
"""What a guard does: rollback goes back to the best checkpoint before the present one, and raises the alarm, too."""


class GuardConfig(Frozen):
    """What each run monitor does. An alarm is raised when its condition starts to hold and resolved when it stops."""

    labels: Action = Field("alarm", description="majority answers are mostly wrong, or are getting worse")
    collapse: Action = Field("alarm", description="the student grows too sure, too brief, too uniform or falls silent")
    plateau: Action = Field("alarm", description="validation has not risen for guards.patience iterations")
    drift: Action = Field("alarm", description="mean reward rises while validation accuracy falls")
    divergence: Action = Field("alarm", description="the teacher's tasks are too hard or too easy for the student")
    form: Action = Field(
        "alarm", description="right answers that a language model learns have another length or form than all answers"
    )
    skew: Action = Field(
        "alarm", description="the teacher's tasks collapse onto few digits while their rewards do not fall"
    )
    gate: Action = Field(
        "alarm", description="ladders: answers known to be wrong are accepted for training, or right ones refused"
    )
    verifier: Action = Field("pause", description="ladders: the verifier misjudges known answers or contradicts itself")
    retreat: Action = Field("alarm", description="ladders: the student falls back, or forgets what its base was taught")
    supply: Action = Field("pause", description="ladders: not one of an iteration's tasks was accepted")
    headroom: Action = Field("pause", description="ladders: the base already solves what is asked for")
    patience: int = Field(
        3, ge=2, le=1000, description="iterations that plateau, drift, divergence and skew look back on"
    )
