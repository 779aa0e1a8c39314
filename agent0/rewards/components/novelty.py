"""The teacher's reward for tasks unlike those accepted before."""

from agent0.rewards import Features, reward


@reward("novelty", role="teacher", weight=0.2, reads=("novelty",))
def novelty(features: Features) -> float | None:
    """1 - highest cosine similarity to the archive, clipped to [0, 1]; None where it was not measured."""
    return None if features["novelty"] is None else max(0.0, min(1.0, features["novelty"]))


@reward("skill_novelty", role="teacher", weight=0.0, reads=("novelty", "skill", "skill_seen"))
def skill_novelty(features: Features) -> float | None:
    """Half the question's novelty, half the rarity of the skill that solved it: ``1 / (1 + n)`` for a solution whose
    signature (``agent0.rewards.skill_signature``) n tasks of earlier iterations had. None where no attempt solved it,
    or novelty was not measured."""
    if features["novelty"] is None or features["skill_seen"] is None or not features["skill"]:
        return None
    rarity = 1 / (1 + features["skill_seen"])
    return float(max(0.0, min(1.0, features["novelty"])) + rarity) / 2


@reward("repetition", role="teacher", weight=0.0, reads=("cluster_share",))
def repetition(features: Features) -> float | None:
    """Minus the share of the batch in this question's cluster (``agent0.rewards.batch_similarity``); None without a
    question."""
    return None if features["cluster_share"] is None else -float(features["cluster_share"])
