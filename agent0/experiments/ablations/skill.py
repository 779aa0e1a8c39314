"""Ablates supervised training on search traces, which a tool makes from a student's tries: its gain over everything
that needs no training, and how much of it the student's own tries, their verdicts and the tool account for."""

from agent0.evaluation.protocol import DRAWN
from agent0.experiments.ablations import AblationStudy, Variant, ablation_study
from agent0.experiments.training_gain import base_protocols, student_protocols

FRESH = DRAWN["fresh"].set("fresh", "new tasks of three and four numbers, drawn and scored after training")
TAUGHT = DRAWN["taught"].set("taught", "tasks of two numbers, all kinds of which the base was taught")
HARDER = DRAWN["harder"].set("harder", "tasks of five numbers, which neither base nor run were taught")
OUTSIDE = DRAWN["outside"].set(
    "outside", "tasks of three and four numbers, each larger than any that training draws (13 to 24 and 10 to 18)"
)
SETS = (FRESH, HARDER, OUTSIDE, TAUGHT)
STUDENT = "training.student"
NOTES = (
    "**Fresh sets and looks.** This page's is the third. The first (seed 20270101) was scored after three seeds of the "
    "first variant; two seeds were then added, and a second set (seed 20270303) was scored for the page before this "
    "one; 23 of its 150 tasks stood in the first. An audit scored that set again, with variants. All sets of this "
    "page are new: none shares a task with a set drawn before, which the command checks, and tasks on the same numbers "
    "are in one split. Each student and base is scored on them once, after variants, seeds and rules were fixed.",
    "**Seeds** are fixed beforehand, the same for every variant; none is added after a look.",
    "**Superseded.** The page before this one lacked the controls by chance and the variants `random-tries`, "
    "`permuted-verdicts` and `right-as-written`, so its aims do not count as reached ([tried](../tried.md)).",
)

ablation_study(
    AblationStudy(
        name="skill",
        question="What is supervised training on synthetic search traces worth, which a tool makes from a student's "
        "tries, and how much of that is due to these tries?",
        variants=(
            Variant("ours", {}, "traces retraced by the tool from the student's tries, wrong tries first"),
            Variant(
                "random-tries",
                {f"{STUDENT}.source": "random"},
                "as many uniformly random derivations in place of the student's tries: nothing that a model wrote "
                "enters; the same tool makes the traces",
            ),
            Variant(
                "permuted-verdicts",
                {f"{STUDENT}.source": "permuted"},
                "as ours, hindsight included, but the verdicts that reach the tool are permuted among the attempts of "
                "an iteration; the tool computes itself what each try solves, and the curriculum sees true verdicts",
            ),
            Variant(
                "right-as-written",
                {f"{STUDENT}.source": "written", f"{STUDENT}.hindsight": "false"},
                "only tries that the tool leaves as the student wrote them, verbatim: nothing is corrected, and no "
                "training example is for another task than the one that was asked",
            ),
            Variant("all-wrong", {f"{STUDENT}.source": "wrong"}, "as ours, every verdict that reaches the tool wrong"),
            Variant(
                "coin-verdicts-no-hindsight",
                {"shuffle_rewards": "true"},
                "chance says which of its tries is right; training examples of hindsight and of misses are left out",
            ),
            Variant("uniform", {"curriculum.kind": "uniform"}, "every level is asked for as often"),
            Variant(
                "three-numbers-only",
                {"curriculum.kind": "uniform", "curriculum.levels": "[2]"},
                "only tasks of three numbers, of which the base was taught most; what repeats an earlier task is "
                "refused, so there may be fewer attempts",
            ),
            Variant(
                "no-hindsight", {f"{STUDENT}.hindsight": "false"}, "no training examples for tasks that were not asked"
            ),
            Variant(
                "no-diversity",
                {f"{STUDENT}.replay_by": "chance"},
                "training examples drawn as they come, not by pattern",
            ),
            Variant(
                "sft",
                {f"{STUDENT}.lessons": "", f"{STUDENT}.objective": "sft"},
                "rejection sampling: likelihood of its own right attempts as it wrote them, new and earlier ones",
            ),
            Variant(
                "explore", {f"{STUDENT}.explore": "0.5"}, "no wrong tries in the training examples of the first half"
            ),
        ),
        profile="search",
        seeds=(0, 1),
        measures=("validation",),
        controls=("untrained",),
        settings={"evaluation.test": "0", "evaluation.checked": "0", "evaluation.levels": "[2, 3]"},
        sets=SETS,
        protocols=tuple(protocol for one in SETS for protocol in student_protocols(one)),
        base_protocols=tuple(protocol for one in SETS for protocol in base_protocols(one)),
        course="search",
        notes=NOTES,
    )
)
