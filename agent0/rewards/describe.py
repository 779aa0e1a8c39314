"""Rows and texts that describe reward sets, parts and receipts to users."""

from collections.abc import Mapping
from typing import Any, TypedDict

from agent0.events.values import RewardPart, Role
from agent0.rewards import Reward, reward_sets, rewards, total

ROLES: tuple[Role, ...] = ("teacher", "student")


def set_rows() -> list[dict[str, str]]:
    """One row for every reward set: name, formula, and whose label it uses."""
    return [
        {"set": name, "formula": reward_set.about, "label": reward_set.label}
        for name, reward_set in reward_sets().items()
    ]


def part_rows(set: str, only_new: bool = False) -> list[dict[str, str | float]]:
    """One row for every part of ``set``, or with ``only_new`` for its own parts: role, weight, features it reads,
    formula."""
    return [
        {
            "role": role,
            "part": entry.name,
            "weight": entry.weight,
            "reads": ", ".join(entry.reads),
            "formula": formula(entry),
        }
        for role in ROLES
        for entry in rewards(role, set).values()
        if entry.set == set or not only_new
    ]


def formula(entry: Reward) -> str:
    """The docstring of a part's scoring function, on one line."""
    return " ".join((entry.score.__doc__ or "").split())


UNKNOWN_PART = "not known here: see --plugin"


class ExplainedPart(TypedDict):
    """One part of a receipt: ``worth`` is value times weight, ``contribution`` the total minus the total without it."""

    part: str
    inputs: Mapping[str, object]
    value: float | None
    weight: float
    worth: float | None
    contribution: float | None
    formula: str


class ExplainedReceipt(TypedDict):
    """A receipt with its formulas. ``check`` is the total of all parts, computed again; ``scaled`` how the total came
    from it."""

    task: str
    attempt: str
    role: Role
    reward_set: str
    total: float
    checkpoint: str
    check: float | None
    scaled: str
    formula: str
    parts: list[ExplainedPart]


def explain_receipt(receipt: Mapping[str, Any]) -> ExplainedReceipt:
    """Explain a stored receipt (a row of ``agent0.projections.rewards.explain_rewards``) part by part."""
    role: Role = receipt["role"]
    recorded = [RewardPart.model_validate({k: part[k] for k in RewardPart.model_fields}) for part in receipt["parts"]]
    chosen = receipt["reward_set"] if receipt["reward_set"] in reward_sets() else ""
    registered = rewards(role, chosen) if chosen else {}
    whole = total(role, recorded, chosen) if chosen else None
    parts: list[ExplainedPart] = []
    for index, part in enumerate(recorded):
        others = [*recorded[:index], *recorded[index + 1 :]]
        less = whole - total(role, others, chosen) if whole is not None else None
        entry = registered.get(part.name)
        parts.append(
            {
                "part": part.name,
                "inputs": part.inputs,
                "value": part.value,
                "weight": part.weight,
                "worth": None if part.value is None else part.value * part.weight,
                "contribution": None if part.value is None or less is None else round(less, 12),
                "formula": formula(entry) if entry else UNKNOWN_PART,
            }
        )
    return {
        "task": receipt["task"],
        "attempt": receipt["attempt"],
        "role": role,
        "reward_set": receipt["reward_set"],
        "total": receipt["total"],
        "checkpoint": receipt["checkpoint"],
        "check": whole,
        "scaled": _scaled(receipt["facts"]),
        "formula": reward_sets()[chosen].about if chosen else "this version has no such set",
        "parts": parts,
    }


def _scaled(facts: Mapping[str, float]) -> str:
    """How the total came from that of the parts; empty where it is that."""
    raw = facts.get("raw_total")
    if raw is None:
        return ""
    if "earned" not in facts:
        return f"raw {raw:g}, kept within bounds"
    mean, deviation, count = facts["earned_mean"], facts["earned_deviation"], facts["earned"]
    return f"raw {raw:g}, less {mean:.4f}, by {deviation:.4f}: {count} receipts of earlier iterations"
