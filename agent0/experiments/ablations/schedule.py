"""Who is trained when: both roles after each iteration, in turns, or one of them alone."""

from agent0.experiments.ablations import Arm, Grid, grid

KEY = "training.schedule"

grid(
    Grid(
        name="schedule",
        question="Which schedule of training is best, where the same tasks and attempts are asked for?",
        arms=(
            Arm("joint", {KEY: "joint"}, "both roles after each iteration"),
            Arm("alternate", {KEY: "alternate"}, "in turns, the teacher first"),
            Arm("student", {KEY: "student"}, "the student alone"),
            Arm("teacher", {KEY: "teacher"}, "the teacher alone: the student stays untrained"),
        ),
    )
)
