"""The rewards of arXiv 2511.16043 as written, sections 3.2 and 3.3. What the paper leaves open is a constant here."""

from agent0.events.values import Role
from agent0.rewards import Features, Worth, reward, reward_set
from agent0.tasks.curriculum.sampler import frontier_value

GAMMA, MOST = 0.25, 4
"""R_tool: gamma, the reward per call (not in the paper: it keeps R_tool in [0, 1] like R_unc), and C, the cap."""


@reward_set("paper", label="majority")
def paper(role: Role, worth: Worth) -> float:
    """Teacher: ``R_C = R_format * max(0, l_unc R_unc + l_tool R_tool - l_rep R_rep)``. Student: ``R_i = 1[o_i = y~]``.
    Parts that were not measured count 0; weights are the lambdas. y~ is the most frequent answer among the attempts,
    whatever a verifier says, so all of them are rewarded once the last one is resolved."""
    if role == "student":
        return sum(worth.values())
    inside = sum(worth.get(name, 0.0) for name in ("uncertainty", "tools", "repetition"))
    return worth.get("format", 0.0) * max(0.0, inside)


@reward("format", role="teacher", weight=1.0, reads=("well_formed",), set="paper")
def well_formed(features: Features) -> float | None:
    """R_format: 1 where the teacher's text holds a task, else 0."""
    return None if features["well_formed"] is None else float(features["well_formed"])


@reward("uncertainty", role="teacher", weight=1.0, reads=("self_consistency",), set="paper")
def uncertainty(features: Features) -> float | None:
    """``R_unc = 1 - 2|p - 1/2|``, p the share of the student's answers that agree with the majority."""
    return None if features["self_consistency"] is None else frontier_value(features["self_consistency"])


@reward("tools", role="teacher", weight=0.6, reads=("calls_run",), set="paper")
def tools(features: Features) -> float | None:
    """``R_tool = gamma * min(N_tool, C)``, N_tool the calls executed in one of the student's attempts, C = 4; the mean
    over attempts. Lambda is 0.6."""
    if not features["calls_run"]:
        return None
    return float(GAMMA * sum(min(calls, MOST) for calls in features["calls_run"]) / len(features["calls_run"]))


@reward("repetition", role="teacher", weight=-1.0, reads=("cluster_share",), set="paper")
def repetition(features: Features) -> float | None:
    """``|C_k| / B``: the share of the batch in this task's cluster, questions apart by ``1 - BLEU``, cut at 0.5
    (average linkage; neither is in the paper). Its weight is -lambda_rep."""
    return None if features["cluster_share"] is None else float(features["cluster_share"])


@reward("pseudo_label", role="student", weight=1.0, reads=("agrees", "majority"), set="paper")
def pseudo_label(features: Features) -> float | None:
    """1 where the answer is that of the majority, else 0 (section 3.3)."""
    return None if features["agrees"] is None else float(features["agrees"])
