"""Ablates the gate of a climb whose teacher is a model: shares of the wrong answers are let in, with the teacher
trained or not, at as many iterations, tasks and attempts asked for.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ablations.climb import STUDENT
from agent0.experiments.ablations.teacher import FORMER, RECIPE
from agent0.experiments.ladder_aims import LadderAim

EARLIER = {
    **FORMER,
    "tasks": "64",
    "attempts": "2",
    "teacher.top_p": "1",
    "teacher.bias": '[[".", -1.5]]',
}
"""Settings of the profile that it had before decision 061."""
TEACHERS = {"trained": {}, "frozen": {f"{RECIPE}.enabled": "false", "teacher.explore": "0"}}
SHARES = {"": 0.0, "-leak-10": 0.1, "-leak-30": 0.3, "-leak-all": 1.0}
LET_IN = {
    0.0: "only right answers are accepted",
    0.1: "a tenth of the wrong answers are accepted, too",
    0.3: "three in ten of the wrong answers are accepted, too",
    1.0: "every answer is accepted",
}


def _variant(teacher: str, suffix: str) -> Variant:
    share = SHARES[suffix]
    settings = TEACHERS[teacher] | ({f"{STUDENT}.leak": str(share)} if share else {})
    return Variant(f"{teacher}{suffix}", settings, f"teacher {teacher}; {LET_IN[share]}")


ablation_study(
    AblationStudy(
        name="teacher-gate",
        question="How much of what a trained teacher is worth is left where the gate lets wrong answers in?",
        variants=tuple(_variant(teacher, suffix) for suffix in SHARES for teacher in TEACHERS),
        profile="climb-teacher",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        settings={**EARLIER, "iterations": "30"},
        course="climb",
        ladder=True,
        aims=tuple(LadderAim(f"trained{suffix}", f"frozen{suffix}", "added", least=0) for suffix in SHARES),
        notes=(
            "**Seeds** are fixed beforehand, the same for every variant; each has a student's base of its own. The "
            "teacher's base is the packaged one.",
            "**Rewards of the teacher** are those of the true verdicts; the gate decides what its student is trained "
            "on.",
            "**Profile**: this study keeps the settings that `climb-teacher` had before decision 061.",
        ),
    )
)
