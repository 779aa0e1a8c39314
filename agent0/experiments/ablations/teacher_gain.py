"""Ablates what a teacher that is a model is rewarded for: measured gains of its student (SOAR) beside half-solved
tasks, at equal attempts and steps.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ablations.teacher import FORMER
from agent0.experiments.ladder_aims import BASE, LadderAim

GAIN = {
    "rewards.weights.variance": "0",
    "rewards.weights.student_gain": "4",
    "rewards.gain.subsets": "4",
}
"""Rewards by measured gains of the student (SOAR, arXiv 2601.18778); the penalties stay. Gains are some hundredths:
with this weight they spread about as much as the penalties do."""

ablation_study(
    AblationStudy(
        name="teacher-gain",
        question="Does a teacher that is rewarded for measured gains of its student pull it along as one does that is "
        "rewarded for half-solved tasks, and does it matter whose gains they are?",
        variants=(
            Variant("gain", GAIN, "it is rewarded for measured gains of the student in place of half-solved tasks"),
            Variant(
                "gain-permuted",
                {**GAIN, "rewards.gain.permuted": "true"},
                "as gain, the gains permuted over the parts of the iteration",
            ),
            Variant("trained", {}, "it is rewarded for half-solved tasks, 4r(1-r)"),
        ),
        profile="climb-teacher",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        settings={**FORMER, "iterations": "30"},
        course="climb",
        ladder=True,
        aims=(
            LadderAim("gain", BASE, "added", least=0),
            LadderAim("gain", "gain-permuted", "added", least=0),
            LadderAim("gain", "trained", "added", least=0),
        ),
        notes=(
            "**Seeds** are fixed beforehand, the same for every variant; each has a student's base of its own. The "
            "teacher's base is the packaged one.",
            "**Gains** are measured on tasks of the training split that the student does not solve, by four short "
            "trainings an iteration; their attempts and steps are not in the table of cost.",
            "**Profile**: this study keeps the steps and the stretch of positions that `climb-teacher` had before "
            "decision 062.",
        ),
    )
)
