"""Ablates the reward parts that read the student's uncertainty: each with a weight beside the shipped set, alone."""

from agent0.experiments.ablations import MARGIN, AblationStudy, Variant, ablation_study

WEIGHT = "rewards.weights"
HALF = "0.5"
"""Half of what the teacher earns for difficulty, and of what the student earns for a right answer."""
CALIBRATOR = {
    "rewards.calibrator.signal": "own_tokens+answer+grounded",
    "rewards.calibrator.method": "logistic",
    "rewards.calibrator.parameters": "[0.0, 0.5, 0.0, 0.5, 0.0, 0.1, 0.0]",
}
NOTES = (
    "**Small on purpose.** Three iterations of twelve tasks: all runs together take about fifteen minutes of one core. "
    "That shows great harm or gain; what a difference must be to show stands beside each conclusion. For more: "
    "`--set run.tasks=64 --set run.attempts=8 --set run.evaluation.test=300 --seeds 0-4`.",
    "**The fused confidence** here weighs three signals by hand and was not fitted; `agent0 reward calibrator` prints "
    "one that was.",
    "**Self-critique** asks one question more an answer, held-out items included; its tokens are in no cost. What the "
    "built-in base says of 320 answers to tasks it has not seen, three draws (`agent0 calibrate --provider tiny --set "
    "run.student.self_critique=true --samples 0 --seeds 3`): AUROC .51, .58 and .52 (intervals .44 to .59, .51 to .64, "
    ".43 to .59), ECE .49, .44 and .47 as it stands, .03, .04 and .03 once fitted. So it knows next to nothing of its "
    "answers; their log-probability has AUROC .88, .87 and .88.",
    "**Weights.** None of these parts is shown to help, so all have weight 0 in the shipped sets.",
)

ablation_study(
    AblationStudy(
        name="uncertainty",
        question="Does a weight on what the student's uncertainty tells, beside the shipped rewards, make a better "
        "student, where the same number of tasks and attempts is asked for?",
        variants=(
            Variant("shipped", {}, "the shipped weights: the verified solve rate alone stands for uncertainty"),
            Variant("log-probability", {f"{WEIGHT}.answer_doubt": HALF}, "teacher: doubt by the answer's tokens"),
            Variant("token-entropy", {f"{WEIGHT}.token_entropy": HALF}, "teacher: entropy of the student's tokens"),
            Variant("answer-entropy", {f"{WEIGHT}.answer_entropy": HALF}, "teacher: entropy of the answers to a task"),
            Variant("fused", {f"{WEIGHT}.fused_doubt": HALF, **CALIBRATOR}, "teacher: doubt by several signals fused"),
            Variant("calibration", {f"{WEIGHT}.calibration": HALF}, "student: Brier score of its tokens' confidence"),
            Variant(
                "self-critique",
                {"student.self_critique": "true", f"{WEIGHT}.self_critique": HALF, f"{WEIGHT}.self_doubt": HALF},
                "student: Brier score of what it says of its answer; teacher: doubt by the same",
            ),
        ),
        controls=("untrained",),
        settings={
            **MARGIN,
            "iterations": "3",
            "tasks": "12",
            "attempts": "4",
            "evaluation.validation": "20",
            "evaluation.test": "60",
            "evaluation.forced_tool": "false",
        },
        notes=NOTES,
    )
)
