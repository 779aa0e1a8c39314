"""Ablates a teacher that is a model and writes its tasks itself: against itself untrained, against itself rewarded at
random, and against rules that are given the ladder, at equal attempts and steps.

Test tasks are spread evenly over lengths 4 to 30, so 27 times a test accuracy is the accuracy added up over lengths.
"""

from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.ladder_aims import BASE, LadderAim

RECIPE = "training.teacher"
TESTED = str(list(range(4, 31)))
RULE = {
    "teacher.provider": "sampler",
    "teacher.explore": "0",
    f"{RECIPE}.enabled": "false",
    "curriculum.domains": '["math"]',
    "curriculum.families": '["reversal"]',
    "curriculum.levels": str(list(range(1, 41))),
    "evaluation.levels": TESTED,
}
"""A teacher without a model draws tasks of the levels that it is told, on the ladder of the profile."""
FORMER = {
    "training.student.steps": "100",
    "training.student.minibatch": "64",
    "training.student.fresh_per_task": "0",
    "training.student.replay_per_task": "2",
    f"{RECIPE}.stretch": "2",
}
"""Settings of the profile that it had before decision 062. Studies that were executed under them keep them."""

ablation_study(
    AblationStudy(
        name="teacher",
        question="Does a teacher that writes the tasks itself, taught six levels of a ladder and rewarded for tasks at "
        "the student's frontier, find that frontier and pull the student along?",
        variants=(
            Variant("trained", {}, "it writes the tasks, level and digits, and is trained on what they earned"),
            Variant("frozen", {f"{RECIPE}.enabled": "false", "teacher.explore": "0"}, "it writes them, untrained"),
            Variant(
                "exploring",
                {f"{RECIPE}.enabled": "false"},
                "untrained; a quarter of its tasks made longer, as for trained",
            ),
            Variant(
                "permuted-tasks",
                {f"{RECIPE}.rewards": "permuted_tasks"},
                "its rewards permuted over an iteration's attempted tasks; what is no task loses as always",
            ),
            Variant(
                "permuted",
                {f"{RECIPE}.rewards": "permuted", "guards.supply": "alarm", "max_untrained": "0"},
                "its rewards permuted over an iteration's proposals; it goes on where none of them is a task",
            ),
            Variant(
                "uniform",
                {**RULE, "curriculum.kind": "uniform", "curriculum.levels": TESTED},
                "tasks drawn of lengths 4 to 30, each as often",
            ),
            Variant(
                "rising",
                {**RULE, "curriculum.kind": "rising", "curriculum.levels": str(list(range(4, 16)))},
                "tasks drawn of lengths that rise from 4 to 15 at an even pace, whatever is solved: about as long as "
                "those that the trained teacher writes",
            ),
            Variant(
                "frontier",
                {**RULE, "curriculum.kind": "frontier"},
                "the oracle: tasks drawn around the student's frontier, on the ladder that it is given",
            ),
        ),
        profile="climb-teacher",
        seeds=(0, 1, 2, 3, 4),
        measures=("test", "validation"),
        controls=("untrained",),
        course="climb",
        ladder=True,
        aims=(
            LadderAim("trained", "frozen", "added", least=1.5),
            LadderAim("trained", "exploring", "added", least=0),
            LadderAim("trained", "permuted-tasks", "added", least=0),
            LadderAim("trained", "permuted-tasks", "added", least=2, mean=True),
            LadderAim("trained", "permuted", "added", least=0),
            LadderAim("trained", "uniform", "added", least=0),
            LadderAim("trained", BASE, "half_solved", least=0.25),
            LadderAim("permuted-tasks", BASE, "half_solved", most=0.23),
            LadderAim("trained", BASE, "half_solved_run", least=0.25),
            LadderAim("permuted-tasks", BASE, "half_solved_run", most=0.23),
            LadderAim("trained", BASE, "readable", least=0.9),
            LadderAim("trained", BASE, "different_texts", least=0.95),
            LadderAim("trained", BASE, "digit_entropy", least=3.1),
        ),
        notes=(
            "**Seeds** are fixed beforehand, the same for every variant; each has a student's base of its own. The "
            "teacher's base is the packaged one.",
            "**Chosen on these seeds**: the teacher's nucleus and bias, on seeds 3 and 4. What the student learns from "
            "a task, in how many steps, and how far the teacher's positions are stretched was chosen on other seeds "
            "([tried](../tried.md)).",
            "**Half-solved** tasks are those that one, two or three of four attempts solve. Aims on their share "
            "in the last four iterations alone, about 110 tasks a seed (standard error .04), were set first; those on "
            "the whole run, about 1,600 tasks, were added once these were missed.",
            "**Attempts**: what a teacher writes may be unreadable, a task it wrote before, or kept for held-out sets "
            "(16 of 100); none of these is attempted, and nothing takes its place. The table of cost has the attempts. "
            "What the teacher of `permuted` writes is soon no task at all, so a lead over it says little.",
            "**Rising** was added once the others had been run: it is given the ladder, and ends at the lengths that "
            "the trained teacher was seen to end at.",
        ),
    )
)
