"""The rewards of the code released with arXiv 2511.16043 (aiming-lab/Agent0 at 3cf8bfe), defects included, for
comparison.

Deliberately not corrected: the teacher's answer is cut to its last character, tool calls are counted in the teacher's
own text, nothing keeps the sum from being negative, and format is no factor.
"""

from agent0.events.values import Role
from agent0.grading.normal_form import same
from agent0.rewards import Features, Worth, reward, reward_set

LEAST = 0.1
"""A majority's share up to this counts nothing."""


@reward_set("released", label="majority")
def released(role: Role, worth: Worth) -> float:
    """Teacher: ``(min(p, 1 - p) if question else -1) - |C_k|/B + 0.05 min(N, 4)``; p is the majority's share where the
    majority's answer is the last character of the teacher's, and N counts output marks in the teacher's text. Student:
    1 where the answer is the label, the majority's of the attempts at the task (there: of nine others, made without
    tools)."""
    return sum(worth.values())


@reward(
    "difficulty",
    role="teacher",
    weight=1.0,
    reads=("well_formed", "self_consistency", "majority", "teacher_answer"),
    set="released",
)
def difficulty(features: Features) -> float | None:
    """``min(p, 1 - p)``, -1 without a question or an answer. ``answers[-1]`` of a text is its last character
    (curriculum_reward.py), and p is 0 where the majority does not say that (start_vllm_server_tool.py)."""
    if features["well_formed"] is None:
        return None
    if not features["well_formed"] or not features["teacher_answer"]:
        return -1.0
    share = features["self_consistency"]
    if share is None:
        return None
    cut = features["teacher_answer"][-1].strip()
    graded = bool(cut) and same(features["majority"] or "", cut) and share > LEAST
    return float(min(share, 1 - share)) if graded else 0.0


@reward("repetition", role="teacher", weight=-1.0, reads=("cluster_share",), set="released")
def repetition(features: Features) -> float | None:
    """The share of the batch in this question's cluster: average linkage over ``1 - BLEU``, cut at 0.5."""
    return None if features["cluster_share"] is None else float(features["cluster_share"])


@reward("tools", role="teacher", weight=1.0, reads=("teacher_text",), set="released")
def tools(features: Features) -> float | None:
    """``0.05 min(N, 4)``, N the "```output" in the text that the teacher wrote."""
    return None if features["teacher_text"] is None else 0.05 * min(features["teacher_text"].count("```output"), 4)


@reward("accuracy", role="student", weight=1.0, reads=("agrees", "majority"), set="released")
def accuracy(features: Features) -> float | None:
    """1 where the answer is that of the majority, else 0."""
    return None if features["agrees"] is None else float(features["agrees"])
