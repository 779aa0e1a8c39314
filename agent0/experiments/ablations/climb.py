"""Ablates a climb: what its schedule, its verifier and its rounds each are worth, at equal attempts and steps.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ladder_aims import BASE, LadderAim

STUDENT = "training.student"
LEVELS = str(list(range(4, 31)))
UNIFORM = {
    "curriculum.kind": "uniform",
    "curriculum.domains": '["math"]',
    "curriculum.families": '["reversal"]',
    "evaluation.levels": LEVELS,
}
"""A schedule without a frontier, on the ladder of the profile."""
LEAKS = (
    Variant("leak-10", {f"{STUDENT}.leak": "0.1"}, "a tenth of the wrong answers are accepted, too"),
    Variant("leak-30", {f"{STUDENT}.leak": "0.3"}, "three in ten"),
    Variant("leak-all", {f"{STUDENT}.leak": "1.0"}, "every answer is accepted"),
)
GROUPS = {
    "tasks": "64",
    "attempts": "8",
    f"{STUDENT}.steps": "0",
    f"{STUDENT}.taught": "0",
    f"{STUDENT}.settle": "0",
    f"{STUDENT}.stretch": "1",
    f"{STUDENT}.replay_steps": "0",
    f"{STUDENT}.epochs": "4",
    f"{STUDENT}.lr": "0.0005",
    f"{STUDENT}.clip_high": "0.28",
}
"""Policy gradients in place of expert iteration: groups of eight attempts, nothing replayed. Positions are as they were
when an attempt was sampled: stretched, old and new log-probabilities would be of different inputs."""
OURS = Variant("ours", {}, "lengths around the frontier, answers that the verifier accepted")

ablation_study(
    AblationStudy(
        name="climb",
        question="Does a student climb past what it was taught on its own accepted answers, and what of it needs the "
        "frontier, the verifier and the rounds?",
        variants=(
            OURS,
            Variant(
                "uniform",
                {**UNIFORM, "curriculum.levels": LEVELS},
                "lengths 4 to 30, each as often",
            ),
            Variant(
                "frozen",
                {**UNIFORM, "curriculum.levels": "[4, 5, 6]"},
                "only lengths that its base was taught; shorter strings are too few to be asked for anew",
            ),
            Variant(
                "permuted-verdicts",
                {f"{STUDENT}.verdicts": "permuted"},
                "verdicts permuted among the attempts of an iteration; the schedule sees true ones",
            ),
            Variant(
                "uniform-permuted",
                {**UNIFORM, "curriculum.levels": LEVELS, f"{STUDENT}.verdicts": "permuted"},
                "as uniform, verdicts permuted: lengths that never run out, so as many attempts as ours",
            ),
            Variant(
                "one-round",
                {
                    f"{STUDENT}.every": "20",
                    f"{STUDENT}.window": "20",
                    f"{STUDENT}.steps": "2000",
                    f"{STUDENT}.settle": "0",
                },
                "trained once, with all steps, on what its base got right in all iterations",
            ),
            Variant(
                "coin-verdicts", {f"{STUDENT}.verdicts": "coin"}, "a coin accepts; the schedule sees true verdicts"
            ),
            Variant(
                "majority",
                {f"{STUDENT}.verdicts": "majority", "tasks": "64", "attempts": "8"},
                "accepted is what most of eight attempts at a task wrote; the schedule sees true verdicts",
            ),
            *LEAKS,
            Variant("grpo", {**GROUPS, f"{STUDENT}.objective": "grpo"}, "GRPO on groups of eight attempts, no replay"),
            Variant("adpo", {**GROUPS, f"{STUDENT}.objective": "adpo"}, "ADPO, else as grpo"),
            Variant(
                "progress",
                {**UNIFORM, "curriculum.kind": "progress", "curriculum.levels": LEVELS},
                "lengths 4 to 30 by a bandit on learning progress",
            ),
            Variant(
                "rising",
                {**UNIFORM, "curriculum.kind": "rising", "curriculum.levels": str(list(range(7, 31)))},
                "lengths that rise from 7 to 30 at an even pace, whatever is solved",
            ),
            Variant(
                "no-replay-of-taught",
                {f"{STUDENT}.taught": "0.0", f"{STUDENT}.settle": "0"},
                "nothing of the base's course is replayed",
            ),
        ),
        profile="climb",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        course="climb",
        ladder=True,
        aims=(
            LadderAim("ours", BASE, "height", least=1.5, ratio=True),
            LadderAim("ours", BASE, "height", least=5),
            LadderAim("ours", BASE, "base_solved", most=0),
            LadderAim("ours", BASE, "added", least=3),
            LadderAim("ours", "uniform", "added", least=2),
            LadderAim("frozen", BASE, "added", least=-1, most=1),
            LadderAim("permuted-verdicts", BASE, "added", most=0),
            LadderAim("uniform-permuted", BASE, "added", most=0),
            LadderAim("coin-verdicts", BASE, "added", most=0),
            LadderAim("majority", BASE, "added", most=0),
            LadderAim("ours", BASE, "taught_change", least=-0.03),
        ),
        notes=(
            "**Seeds** are fixed beforehand, the same for every variant; each has a base of its own.",
            "**The recipe** (steps, replay, settling, iterations) was chosen on seeds 0 to 4; seeds 5 to 9 were run "
            "once, after that ([ways to climb](climbing.md#other-seeds)).",
        ),
    )
)
