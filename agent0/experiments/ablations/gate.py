"""Ablates what decides which attempts a climbing student learns from: a gate that leaks, and policy gradients on groups
of attempts in place of expert iteration, at equal attempts.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ablations.climb import LEAKS, OURS, STUDENT
from agent0.experiments.ladder_aims import BASE, LadderAim

GROUPS = {
    "tasks": "64",
    "attempts": "8",
    f"{STUDENT}.steps": "0",
    f"{STUDENT}.taught": "0",
    f"{STUDENT}.stretch": "1",
    f"{STUDENT}.replay_steps": "0",
    f"{STUDENT}.epochs": "4",
    f"{STUDENT}.lr": "0.0005",
    f"{STUDENT}.clip_high": "0.28",
}
"""Groups of eight attempts, nothing replayed. Positions are as they were when an attempt was sampled: stretched, old
and new log-probabilities would be of different inputs."""

ablation_study(
    AblationStudy(
        name="gate",
        question="How much of a climb is left where the gate lets wrong answers in, and where a policy gradient takes "
        "the place of expert iteration?",
        variants=(
            OURS,
            *LEAKS,
            Variant("grpo", {**GROUPS, f"{STUDENT}.objective": "grpo"}, "GRPO on groups of eight attempts, no replay"),
            Variant("adpo", {**GROUPS, f"{STUDENT}.objective": "adpo"}, "ADPO, else as grpo"),
        ),
        profile="climb",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        settings={"iterations": "5", f"{STUDENT}.steps": "100", f"{STUDENT}.taught": "0.25"},
        course="climb",
        ladder=True,
        aims=(
            LadderAim("ours", BASE, "added", least=2),
            LadderAim("ours", "leak-10", "added", least=0),
            LadderAim("leak-30", BASE, "added", most=0),
            LadderAim("leak-all", BASE, "added", most=0),
            LadderAim("grpo", BASE, "added", least=0),
            LadderAim("adpo", BASE, "added", least=0),
        ),
        notes=("**Seeds** are fixed beforehand, the same for every variant; each has a base of its own.",),
    )
)
