"""Part of the rim: rules of rewards as people write them, and what a stored receipt was made of."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from agent0.assembly.runtime.plugins import load_plugins
from agent0.config.setting_entries import amended, nearest
from agent0.errors import ConfigError
from agent0.infra.storage.files import read_regular
from agent0.rewards import reward_sets, rewards
from agent0.routing.confidence import is_whole
from agent0.settings import RewardConfig, RunConfig

AS_RUN = "as-run"
LARGEST = 1 << 20
"""Bytes of a file of rules."""


def check_rewards(rules: RewardConfig, where: str) -> None:
    """The set and every part that ``rules`` name must exist, and a calibrator be whole; ``where`` they are written.

    Raises:
        ConfigError: the first that does not.
    """
    load_plugins()
    set_names = [*reward_sets()]
    if rules.set not in set_names:
        what = f"{where}: there is no reward set {rules.set[:80]!r}."
        raise ConfigError(what, f"Known: {', '.join(set_names)}.", nearest(rules.set, set_names))
    parts = sorted({**rewards("student", rules.set), **rewards("teacher", rules.set)})
    for name in rules.weights:
        if name not in parts:
            what = f"{where}: there is no reward {name[:80]!r}."
            raise ConfigError(what, f"Known: {', '.join(parts)}.", nearest(name, parts))
    _check_calibrator(rules, where)


def _check_calibrator(rules: RewardConfig, where: str) -> None:
    from agent0.rollout.confidence.signals import MEANING  # noqa: PLC0415 - a hundred modules for one kind of reward

    plan = rules.calibrator
    if not plan.signal:
        return
    names = plan.signal.split("+")
    if unknown := [name for name in names if name not in MEANING]:
        what = f"{where}: there is no signal {unknown[0][:80]!r}."
        raise ConfigError(what, f"Known: {', '.join(sorted(MEANING))}.", nearest(unknown[0], list(MEANING)))
    if not is_whole(plan):
        what = f"{where}: a {plan.method} calibrator of {plan.signal} does not have {len(plan.parameters)} parameters."
        raise ConfigError(what, "", "Take one whole: agent0 reward calibrator MODEL")


def amended_rules(rules: RewardConfig, changes: Mapping[str, str]) -> RewardConfig:
    """Change rules of rewards by settings: dotted key below ``run.rewards`` -> text.

    Raises:
        ConfigError: a key elsewhere, a value that does not fit, or a set or part that does not exist.
    """
    for key in changes:
        if not key.removeprefix("run.").startswith("rewards."):
            fix = "Name keys below run.rewards, as in run.rewards.weights.token_cost=0.1."
            raise ConfigError(f"{key} has no effect.", "Only rewards are computed here.", fix)
    changed_rules = amended(RunConfig(rewards=rules), changes).rewards
    check_rewards(changed_rules, "--set")
    return changed_rules


def _first_problem(error: ValueError) -> str:
    """The first thing that is wrong with rules, as in ``weights.novelty = 'abc': Input should be a valid number``."""
    problems = getattr(error, "errors", None)
    if problems is None:
        return str(error)
    first = problems()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where} = {str(first['input'])[:80]!r}: {first['msg']}"


def reward_policy(reference: str) -> RewardConfig | None:
    """Rules of a set by its name, or of a TOML file with ``set``, ``[weights]`` and what else ``run.rewards`` may have;
    None for ``as-run``.

    Raises:
        ConfigError: no such file, no TOML, or a set or part that does not exist.
    """
    if reference == AS_RUN:
        return None
    load_plugins()
    if reference in reward_sets():
        return RewardConfig(set=reference)
    path = Path(reference)
    try:
        given_rules = tomllib.loads(read_regular(path, LARGEST).decode())
    except OSError as error:
        fix = f"Name a set, a TOML file, or {AS_RUN}."
        near = nearest(reference, [*reward_sets()])
        raise ConfigError(f"{path} cannot be read.", f"{error.strerror}.", f"{near} {fix}".strip()) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is no TOML.", f"{error}.") from error
    try:
        policy = RewardConfig.model_validate(given_rules)
    except ValueError as error:
        why = _first_problem(error)
        fix = f"It may have: {', '.join(RewardConfig.model_fields)}; weights and calibrator are tables."
        raise ConfigError(f"{path} holds no rules.", f"{why}.", fix) from error
    check_rewards(policy, str(path))
    return policy
