"""Two pages about rewards: sets, formulas and components as the code has them, and what cheating policies get."""

from agent0.report.markdown.rendering import render
from agent0.rewards import reward_sets
from agent0.rewards.describe import ROLES, part_rows
from agent0.rewards.features import features
from agent0.rewards.red_team.play import play_policies
from agent0.rewards.red_team.undone import undone
from agent0.settings import RewardConfig


def reference() -> str:
    """Markdown of the reference of rewards: every reward set, its components, and the features they read."""
    return render("rewards.md.jinja", sets=reward_sets(), parts=part_rows, roles=ROLES, features=features)


def page(command: str, seed: int = 0) -> str:
    """Markdown of ``docs/results/reward-hacking.md``: the mean reward of each cheating policy under each reward set."""
    played = {
        name: play_policies(RewardConfig(set=name), seed) for name, entry in reward_sets().items() if not entry.domain
    }
    cheats = {name: sum(play.exploits for play in rows) for name, rows in played.items()}
    rows = undone(seed)
    families: dict[str, dict[str, str]] = {}
    for play in rows:
        cells = families.setdefault(play.family, {"family": play.family})
        cells[play.policy] = f"{play.not_wrong} of {play.tried}"
    return render(
        "reward-hacking.md.jinja",
        cheats=cheats,
        safe=", ".join(f"`{name}`" for name, count in cheats.items() if not count),
        gamed=", ".join(f"`{name}` ({count})" for name, count in cheats.items() if count),
        policies=list(zip(*played.values(), strict=True)),
        undone=rows,
        families=families.values(),
        command=command,
    )
