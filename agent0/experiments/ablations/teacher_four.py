"""Ablates a teacher that is a model and writes its tasks itself, with four attempts at each of half as many tasks, so
that a task which is solved half the time mostly shows it.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ablations.teacher import RECIPE
from agent0.experiments.ladder_aims import BASE, LadderAim

ablation_study(
    AblationStudy(
        name="teacher-four",
        question="Does a trained teacher come to write tasks that its student solves half the time, and what of that "
        "is left where its rewards are permuted?",
        variants=(
            Variant("trained", {}, "it writes the tasks, level and digits, and is trained on what they earned"),
            Variant("frozen", {f"{RECIPE}.enabled": "false", "teacher.explore": "0"}, "it writes them, untrained"),
            Variant(
                "permuted",
                {f"{RECIPE}.rewards": "permuted", "guards.supply": "alarm", "max_untrained": "0"},
                "its rewards permuted over an iteration's proposals; it goes on where none of them is a task",
            ),
        ),
        profile="climb-teacher",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        settings={"tasks": "32", "attempts": "4"},
        course="climb",
        ladder=True,
        aims=(
            LadderAim("trained", "frozen", "added", least=1.5),
            LadderAim("trained", "permuted", "added", least=0),
            LadderAim("trained", BASE, "half_solved", least=0.25),
            LadderAim("permuted", BASE, "half_solved", most=0.23),
            LadderAim("trained", BASE, "readable", least=0.9),
            LadderAim("trained", BASE, "different_texts", least=0.95),
            LadderAim("trained", BASE, "digit_entropy", least=3.1),
        ),
        notes=(
            "**Seeds** are fixed beforehand, the same for every variant; each has a student's base of its own. The "
            "teacher's base is the packaged one.",
            "**Half-solved** tasks are those that one, two or three of four attempts solve: with two attempts a task, "
            "as in profile `climb-teacher`, a task that is solved half the time is called half-solved every second "
            "time only.",
        ),
    )
)
