"""Ablates the adaptive curriculum and the trained teacher, each alone."""

from agent0.experiments.ablations import MARGIN, AblationStudy, Variant, ablation_study

ablation_study(
    AblationStudy(
        name="curriculum",
        question="Does an adaptive curriculum beat a uniform one, and a trained teacher a frozen one, where the same "
        "number of tasks and attempts is asked for?",
        variants=(
            Variant(
                "bandit", {"curriculum.kind": "bandit", "training.teacher.enabled": "true"}, "adaptive, both trained"
            ),
            Variant(
                "uniform", {"curriculum.kind": "uniform", "training.teacher.enabled": "true"}, "every arm as often"
            ),
            Variant(
                "frozen", {"curriculum.kind": "bandit", "training.teacher.enabled": "false"}, "teacher never trained"
            ),
        ),
        settings=MARGIN,
    )
)
