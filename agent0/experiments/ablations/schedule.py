"""Compares training schedules: both roles after each iteration, in turns, or one of them alone."""

from agent0.experiments.ablations import MARGIN, AblationStudy, Variant, ablation_study

KEY = "training.schedule"

ablation_study(
    AblationStudy(
        name="schedule",
        question="Which schedule of training is best, where the same tasks and attempts are asked for?",
        variants=(
            Variant("joint", {KEY: "joint"}, "both roles after each iteration"),
            Variant("alternate", {KEY: "alternate"}, "in turns, the teacher first"),
            Variant("student", {KEY: "student"}, "the student alone"),
            Variant("teacher", {KEY: "teacher"}, "the teacher alone: the student stays untrained"),
        ),
        settings=MARGIN,
    )
)
