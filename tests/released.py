"""The wiring of the released code (aiming-lab/Agent0 at 3cf8bfe) in miniature: only the calls that go wrong, as they
are made there. Beside it, what finds in a tree of files what is imported or read and is not there."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LOW, HIGH = 0.3, 0.8


def adpo_advantage(
    token_level_rewards: Sequence[float],
    response_mask: Sequence[int],
    index: Sequence[str],
    score: Sequence[float],
    config: Mapping[str, float] | None = None,
) -> list[float]:
    """verl_tool/trainer/ppo/core_algos.py:259; ``score`` has no default."""
    mean = sum(token_level_rewards) / len(token_level_rewards)
    scale = [0.6 + 0.4 * min(1.0, max(0.0, (p - LOW) / (HIGH - LOW))) for p in score]
    return [(reward - mean) * s for reward, s in zip(token_level_rewards, scale, strict=True)]


ESTIMATORS: dict[str, Callable[..., list[float]]] = {"adpo": adpo_advantage}


def compute_advantage(adv_estimator: str, data: Mapping[str, Any]) -> list[float]:
    """verl/trainer/ppo/ray_trainer.py:273-291; the script sets ``adpo``."""
    kwargs = {name: data[name] for name in ("token_level_rewards", "response_mask")}
    kwargs |= {"config": {}, "index": data["uid"]}
    if adv_estimator == "egrpo":
        kwargs["score"] = data["score"]
    return ESTIMATORS[adv_estimator](**kwargs)


def vanilla(ratio: float, advantage: float, score: float) -> float:
    """The clipped objective of one token, whatever ``score``."""
    return -min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)


def adpo(ratio: float, advantage: float, score: float) -> float:
    """core_algos.py:324: the upper bound grows as ``score`` falls."""
    bonus = 0.1 * min(1.0, max(0.0, (HIGH - score) / (HIGH - LOW)))
    return -min(ratio * advantage, min(max(ratio, 0.8), 1.2 + bonus) * advantage)


SCRIPT = {"actor.policy_loss_fn": "adpo"}
"""What train_qwen3_4b_adpo.sh adds to the configuration; actor.yaml:42 has ``policy_loss.loss_mode: vanilla``."""


def policy_loss(config: Mapping[str, str]) -> Callable[[float, float, float], float]:
    """verl/workers/actor/dp_actor.py:494: another key is read than the script sets."""
    return {"vanilla": vanilla, "adpo": adpo}[config.get("actor.policy_loss.loss_mode", "vanilla")]


def uploaded(question: str, answer: str, p: float) -> dict[str, Any]:
    """question_evaluate/upload.py:42: flat columns."""
    return {"problem": question, "answer": answer, "score": p}


def score_of(row: Mapping[str, Any]) -> float:
    """verl_tool/utils/dataset/rl_dataset.py:91-96: another column is read."""
    extra = row.get("extra_info")
    return float(extra["score"]) if isinstance(extra, dict) and "score" in extra else 0.6


TREE = {
    "question_generate/__init__.py": "",
    "question_generate/question_generate.py": "from evaluation.datasets_loader import get_dataset_handler\n",
    "question_evaluate/__init__.py": "",
    "verl/trainer/config/ppo_trainer.yaml": "defaults:\n  - data@data: legacy_data\n  - _self_\n",
}
"""The files in question, each by the line that fails; there is nothing of ``evaluation/``, and no ``legacy_data``."""


def unresolved(tree: Mapping[str, str], installed: Callable[[str], bool]) -> list[str]:
    """Modules that ``tree`` (path -> source) imports and that are neither in it nor ``installed``."""
    own = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in tree}
    found = {module for source in tree.values() for pair in _import.findall(source) for module in pair if module}
    return sorted(module for module in found if module not in own and not installed(module))


_import = re.compile(r"^[ ]*(?:from ([\w.]+) import |import ([\w.]+)(?= as \w+$|$))", re.M)


def unread(tree: Mapping[str, str]) -> list[str]:
    """Configurations that a configuration of ``tree`` is made from and that are not in it."""
    out = []
    for path, text in tree.items():
        folder = path.rpartition("/")[0]
        for group, name in re.findall(r"^\s*- (\w+)@\w+: (\w+)$", text, re.M):
            if f"{folder}/{group}/{name}.yaml" not in tree:
                out.append(f"{folder}/{group}/{name}.yaml")
    return out
