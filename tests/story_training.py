"""The steps of a training in the story: a policy's, one of replay, one that was skipped."""

from agent0.events.values import TrainingStep


def training_steps(iteration: int) -> tuple[TrainingStep, ...]:
    """Six steps of an iteration, as a policy gradient has them."""
    rates = [0.0025 * 0.5**step for step in range(6)]
    policy = [
        TrainingStep(
            kind="policy", loss=-0.01 * (step + 1), gradient_norm=0.4 + 0.1 * step + iteration, learning_rate=rate,
            tokens=120 + step, entropy_estimate=0.6 - 0.05 * step, parent_kl=0.002 * step, penalised_kl=0.001 * step,
            clip_below=0.01 * step, clip_above=0.02 * step, mismatch=0.001 if step == 0 else None,
        )
        for step, rate in enumerate(rates[:4])
    ]  # fmt: skip
    replay = TrainingStep(kind="replay", loss=0.7, gradient_norm=0.9, learning_rate=rates[4], tokens=60)
    skipped = TrainingStep(
        kind="policy", loss=None, gradient_norm=None, learning_rate=rates[5], tokens=99, skipped=True
    )
    return (*policy, replay, skipped)
