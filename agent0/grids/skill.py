"""What a student that trains itself can do more than its base can be made to do without training, and what each part of
the training is worth for that."""

from agent0.exams import DRAWN
from agent0.grids import Arm, Grid, grid
from agent0.skill import asked_of_base, asked_of_student

FRESH = DRAWN["fresh 3"].set("fresh", "new tasks of three and four numbers, drawn and scored after training")
TAUGHT = DRAWN["taught 2"].set("taught", "tasks of two numbers, all kinds of which the base was taught")
HARDER = DRAWN["harder 2"].set("harder", "tasks of five numbers, which neither base nor run were taught")
SETS = (FRESH, HARDER, TAUGHT)
STUDENT = "training.student"

grid(
    Grid(
        name="skill",
        question="What can a student that taught itself to search do that its base cannot, however it is asked?",
        arms=(
            Arm("ours", {}, "lessons retraced from its own search, wrong tries first, an adaptive curriculum"),
            Arm(
                "random-reward",
                {"shuffle_rewards": "true"},
                "chance says which of its tries is right; what would tell the truth is left "
                "out, lessons of hindsight and of misses",
            ),
            Arm("uniform", {"curriculum.kind": "uniform"}, "every level is asked for as often"),
            Arm(
                "frozen",
                {"curriculum.kind": "uniform", "curriculum.levels": "[2]"},
                "the curriculum stands still: only three numbers, of which the base was taught most; what repeats an "
                "earlier task is refused, so it may get fewer attempts (no teacher of this profile is ever trained: "
                "`agent0 experiment curriculum` takes a trained one away)",
            ),
            Arm("no-hindsight", {f"{STUDENT}.hindsight": "false"}, "no lessons from wrong answers to other tasks"),
            Arm("no-diversity", {f"{STUDENT}.replay_by": "chance"}, "lessons drawn as they come, not by pattern"),
            Arm(
                "sft",
                {f"{STUDENT}.lessons": "", f"{STUDENT}.objective": "sft"},
                "rejection sampling: likelihood of its own right attempts as it wrote them, new and earlier ones",
            ),
            Arm("explore", {f"{STUDENT}.explore": "0.5"}, "no wrong tries in the lessons of the first half"),
        ),
        profile="search",
        more_seeds=(3, 4),
        measures=("validation",),
        controls=("untrained",),
        settings={"evaluation.test": "0", "evaluation.checked": "0", "evaluation.levels": "[2, 3]"},
        sets=SETS,
        exams=tuple(exam for one in SETS for exam in asked_of_student(one)),
        base_exams=tuple(exam for one in SETS for exam in asked_of_base(one)),
        course="search",
    )
)
