"""Settings of training: one recipe for each role."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from agent0.events.values import Artifact
from agent0.settings.base import Frozen


class RecipeConfig(Frozen):
    """The training recipe of one role's adapter: objective, optimiser, LoRA, replay and search examples."""

    enabled: bool = Field(True, description="train this role at all")
    objective: str = Field(
        "adpo",
        description="adpo | grpo | dr_grpo | dapo | gspo | cispo | reinforce | rloo | awr | sft | dpo (the last two: "
        "student only) | none; docs/design/engine.md says what each does, such as "
        "`--set run.training.student.objective=dapo`",
    )
    first: str = Field(
        "",
        description="objective of trainings that begin with the base, in place of `objective`: sft, on accepted "
        "answers, before a policy gradient; empty: the same",
    )
    optimizer: Literal["adamw", "muon"] = Field(
        "adamw", description="muon: steps of equal size in all directions of a matrix; faster on small models"
    )
    optimizer_state: Literal["anew", "continued"] = Field(
        "anew",
        description="what the optimizer of a training begins with: nothing, or what it remembered of the parent, kept "
        "beside each adapter and twice its size",
    )
    lr: float = Field(2.5e-3, gt=0, description="learning rate at the first iteration")
    lr_final: float = Field(0.2, gt=0, le=1, description="share of lr left at the last iteration (linear)")
    rank: int = Field(
        16, ge=0, le=65_536, description="LoRA rank; 0: no LoRA, all weights of a small model (docs/design/engine.md)"
    )
    alpha: int = Field(32, ge=1, le=1_000_000, description="LoRA alpha")
    minibatch: int = Field(32, ge=1, le=1_000_000, description="trajectories a step")
    epochs: int = Field(1, ge=1, le=1000, description="passes over the samples")
    clip_low: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="lower clip of the importance ratio; none: the objective's own, 0.2 (gspo: 0.0003)",
    )
    clip_high: float | None = Field(
        None,
        gt=0,
        description="upper clip; none: the objective's own, 0.2 (adpo: at solve rates from 0.8; dapo: 0.28; gspo: "
        "0.0004; cispo: 4)",
    )
    clip_bonus: float = Field(
        0.16, ge=0, description="adpo: added to the upper clip, all of it at solve rates up to 0.3 (released code: 0.1)"
    )
    correction: Literal["none", "recompute", "truncate", "mask"] = Field(
        "none",
        description="policy gradients, where sampler and trainer differ on a token: none (the clip alone); recompute: "
        "ratios are to the trainer's own log-probability before its first step; truncate: so, and the gradient is "
        "weighed by how the trainer's differs from the sampler's, cut at `correction_cap`; mask: left out beyond that",
    )
    correction_cap: float = Field(
        2.0, gt=1, description="largest such ratio; tokens whose ratio is further from 1 are counted as mismatched"
    )
    mismatch_limit: float = Field(
        0.3,
        gt=0,
        description="nats by which sampler and trainer may differ on a token, on average; policy gradients refuse more",
    )
    kl: float = Field(
        0.0, ge=0, description="penalty for leaving the checkpoint `kl_to` (KL, estimated); not for awr, sft and dpo"
    )
    kl_to: Literal["parent", "base"] = Field(
        "parent",
        description="what `kl` is measured from: the checkpoint that a training begins with, or the base, which is the "
        "model without any adapter",
    )
    beta: float = Field(
        0.1, gt=0, description="dpo: how dear it is to leave the parent; awr: temperature of the weights"
    )
    replay_steps: int = Field(
        8,
        ge=0,
        le=1_000_000,
        description="likelihood steps on own verified successes, an iteration",
    )
    replay_iterations: int = Field(3, ge=0, le=1_000_000, description="how many iterations back successes are replayed")
    distil: bool = Field(
        False,
        description="student: learn accepted answers of `run.student.distil_from`, too, by likelihood; the "
        "checkpoint's card then says so",
    )
    replay_by: Literal["chance", "pattern"] = Field(
        "chance", description="which successes: any, or balanced over levels and ways to solve"
    )
    replay_per_task: int = Field(2, ge=1, le=1000, description="successes of one task that are replayed, at most")
    steps: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="sft, awr: steps of a training, each a minibatch of fixed shares (`fresh`, `taught`, the rest "
        "earlier successes), in place of passes and of `replay_steps`; 0: passes",
    )
    fresh: float = Field(
        0.5, ge=0, le=1, description="with `steps`: share of a minibatch that are successes of the window"
    )
    fresh_per_task: int = Field(
        0,
        ge=0,
        le=1000,
        description="sft: successes of one task in the window that are learned from, at most; a student's policy "
        "gradients: its attempts, those whose rewards are furthest apart; 0: all",
    )
    taught: float = Field(
        0.0, ge=0, le=1, description="with `steps`: share that are examples of what the base was taught, kept beside it"
    )
    settle: float = Field(
        0.0,
        ge=0,
        le=1,
        description="with `steps`: share of a run's iterations, its last (rounded down), that train at 0.3 of lr; a "
        "minibatch is 3/4 what the base was taught, 1/8 `fresh`",
    )
    stretch: float = Field(
        1.0,
        ge=1,
        le=16,
        description="sft, awr: positions of a training sequence are multiplied by a factor drawn from 1 to this; for "
        "models with rotary positions",
    )
    lr_end: float = Field(
        1.0, ge=0, le=1, description="share of an iteration's lr left at the last step of its training (linear)"
    )
    warmup: int = Field(
        0, ge=0, le=1_000_000, description="first steps of a training, over which lr rises to its value"
    )
    gate: str = Field(
        "verified",
        description="which answers a training accepts, and how proposals are rewarded: verified; controls: permuted "
        "(verdicts and rewards within an iteration), majority (what most attempts at a task say), answered (every "
        "answer, right or wrong); or a plugin's gate",
    )
    every: int = Field(1, ge=1, le=100_000, description="iterations from one training to the next")
    window: int = Field(
        1,
        ge=1,
        le=100_000,
        description="iterations whose trajectories a training learns from, up to its own; those of earlier checkpoints "
        "only where the objective can use them (awr)",
    )
    entropy: float = Field(
        0.0,
        ge=0,
        description="bonus on the entropy (nats) with which each token is chosen, among those of `entropy_among`; "
        "small models in precision fp32 only",
    )
    entropy_among: str = Field(
        "", description="`entropy`: texts of the tokens among which, with blanks between them; empty: all tokens"
    )
    baseline: Literal["iteration", "request"] = Field(
        "iteration",
        description="teacher: what a proposal is compared with: all of its iteration, or those that answer the same "
        "request",
    )
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay")
    micro_batch: int = Field(
        0, ge=0, le=1_000_000, description="trajectories a forward pass, gradients summed; 0: as many as fit by rule"
    )
    gradient_checkpointing: Literal["auto", "on", "off"] = Field(
        "auto",
        description="compute activations twice rather than keep them; auto: on a GPU, and of long trajectories where a "
        "language model is trained on a CPU",
    )
    processes: int = Field(1, ge=1, le=1024, description="training processes, one a GPU, by accelerate launch")
    on_nan: Literal["skip", "fail"] = Field(
        "skip", description="too many steps without a finite loss: alarm, or no checkpoint"
    )
    nan_share: float = Field(0.1, ge=0, le=1, description="share of such steps that is too many")

    def beginning_with(self, parent: Artifact | None) -> "RecipeConfig":
        """The recipe of a training whose parent has that adapter (None: the base), with the objective that it has."""
        return self.model_copy(update={"objective": self.first}) if self.first and parent is None else self


def recorded_recipe(recipe: object) -> object:
    """Bring a recipe of a log to today's names: ``advantage`` is part of the objective now."""
    if not isinstance(recipe, Mapping) or "advantage" not in recipe:
        return recipe
    without = {name: value for name, value in recipe.items() if name != "advantage"}
    if recipe["advantage"] == "group":
        return without
    return {**without, "objective": "dr_grpo"} if without.get("objective") == "grpo" else recipe


class TrainingConfig(Frozen):
    """The recipes of both roles and the schedule that says who is trained when."""

    schedule: Literal["joint", "alternate", "student", "teacher"] = Field(
        "joint", description="who is trained: both, in turns (teacher first, as in the paper), or one alone"
    )
    steps_off_policy: int = Field(
        0,
        ge=0,
        le=1,
        description="trainings by which a student may be behind; 1: the next iteration's tasks are attempted while one "
        "trains, each token by its recorded log-probability (`correction`); 0: after it",
    )
    student: RecipeConfig = RecipeConfig()
    teacher: RecipeConfig = RecipeConfig()

    def learning(self, role: str) -> RecipeConfig | None:
        """Return the recipe of ``role`` where it is to learn; None where it is not, or no role has that name."""
        recipe = {"student": self.student, "teacher": self.teacher}.get(role)
        learns = recipe is not None and recipe.enabled and recipe.objective != "none"
        return recipe if learns and self.schedule in ("joint", "alternate", role) else None
