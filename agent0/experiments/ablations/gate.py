"""Ablates the gate of a climb: shares of the wrong answers are let in, at equal attempts and steps.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, ablation_study
from agent0.experiments.ablations.climb import LEAKS, OURS
from agent0.experiments.ladder_aims import BASE, LadderAim

ablation_study(
    AblationStudy(
        name="gate",
        question="How much of a climb is left where the gate lets wrong answers in?",
        variants=(OURS, *LEAKS),
        profile="climb",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        settings={"iterations": "5"},
        course="climb",
        ladder=True,
        aims=(
            LadderAim("ours", BASE, "added", least=2),
            LadderAim("ours", "leak-10", "added", least=0),
            LadderAim("leak-30", BASE, "added", most=0),
            LadderAim("leak-all", BASE, "added", most=0),
        ),
        notes=("**Seeds** are fixed beforehand, the same for every variant; each has a base of its own.",),
    )
)
