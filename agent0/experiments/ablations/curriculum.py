"""What an adaptive curriculum and a trained teacher are worth, each taken away alone."""

from agent0.experiments.ablations import Arm, Grid, grid

grid(
    Grid(
        name="curriculum",
        question="Does an adaptive curriculum beat a uniform one, and a trained teacher a frozen one, where the same "
        "number of tasks and attempts is asked for?",
        arms=(
            Arm("bandit", {"curriculum.kind": "bandit", "training.teacher.enabled": "true"}, "adaptive, both trained"),
            Arm("uniform", {"curriculum.kind": "uniform", "training.teacher.enabled": "true"}, "every arm as often"),
            Arm("frozen", {"curriculum.kind": "bandit", "training.teacher.enabled": "false"}, "teacher never trained"),
        ),
    )
)
