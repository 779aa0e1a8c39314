"""Two pages about rewards: sets, formulas and components as the code has them, and what cheating policies get."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent0.rewards import reward_sets, rules_of_set
from agent0.rewards.describe import ROLES, part_rows
from agent0.rewards.features import features
from agent0.rewards.red_team.play import PolicyReward, play_policies
from agent0.rewards.red_team.undone import Undone, undone

MADE = "<!-- Written by `agent0 reward hack-test --page`; not by hand. -->\n"

HEAD = """# Rewards

What is a proposal or an attempt rewarded for? A **reward set** (`run.rewards.set`) names **components** and their
weights, and says how they become a total. Each receipt (`RewardAssigned`) names the set, and every component with its
inputs, value and weight. A component is a pure function in `agent0/rewards/components/` with values in [-1, 1]; where
it cannot know its value it has none, which is not 0. All inputs come from the run's log, so
`agent0 experiment rescore --rewards SET|FILE` computes a run's rewards again under other rules.

- To write one of your own: [your own reward](../guide/your-own-reward.md).
- Which sets can be gamed: [reward hacking](../results/reward-hacking.md).

```
agent0 reward list                    the sets; with a name, its components
agent0 reward explain t0-003 LAST     each component of a task's or an attempt's reward
agent0 reward hack-test               cheating policies against honest ones; exit code 1 where a cheat gets more
agent0 run start --profile tiny --set run.rewards.set=paper
agent0 experiment rescore LAST --rewards paper          the same run, rewarded by another set
agent0 experiment rescore LAST --rewards rules.toml
```

`rules.toml` may have what `run.rewards` has ([settings](config.md)):

```toml
set = "agent0"
normalize = true   # z-score: less the mean of the role's rewards of earlier iterations, by their deviation
clip = 3.0         # then kept within -3 and 3; the receipt has the raw total, mean and deviation

[weights]
skill_novelty = 0.2
token_cost = 0.05
```

A run keeps the version of the rules that it began with (`run.rewards.edition`). Version 2 rewarded students of `paper`
and `released` by the run's verdict and not by the majority (`paper/2`, `released/2`). Version 1, which logs without an
`edition` have, also counted every call that ran, and used the majority's share where nothing was verified (`agent0/1`).
"""


def reference() -> str:
    """Markdown of ``docs/reference/rewards.md``: every reward set, its components, and the features they read."""
    lines = [HEAD]
    for name, one in reward_sets().items():
        beside = f" All other components are those of `{one.like}`." if one.like else ""
        lines += [f"## `{name}`\n", f"{_plain(one.about)}{beside}\n"]
        lines.append("| role | component | weight | reads | value |\n|---|---|---|---|---|")
        lines += [
            _line([row[key] for key in ("role", "part", "weight", "reads", "formula")])
            for row in part_rows(name, own=True)
        ]
        lines.append("")
    lines += [
        "## Features\n",
        "What components may read beside what every receipt has.\n",
        "| role | feature | meaning |\n|---|---|---|",
    ]
    for role in ROLES:
        lines += [_line([role, name, " ".join((one.__doc__ or "").split())]) for name, one in features(role).items()]
    return "\n".join(lines) + "\n"


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(_plain(str(cell)).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    return re.sub(r"(?<!`)``(?!`)", "`", text)


def page(command: str, seed: int = 0) -> str:
    """Markdown of ``docs/results/reward-hacking.md``: the mean reward of each cheating policy under each reward set."""
    found: dict[str, dict[tuple[str, str], PolicyReward]] = {}
    for name in reward_sets():
        found[name] = {(paid.role, paid.policy): paid for paid in play_policies(rules_of_set(name), seed)}
    rows = undone(seed)
    lines = [
        MADE,
        "# Reward hacking\n",
        "Does cheating get a higher reward than honest work?\n",
        *_answer(found, rows),
        *_policies(found),
        "**Bold**: more than honest work. Cheating teachers and students are played against honest ones through the "
        "real rewards; the table has the mean reward of each.\n",
        f"```\n{command}\n```\n",
        "<details>\n<summary>Answers that leave the work undone, by family</summary>\n",
        *_undone(rows),
        "\n</details>",
    ]
    return "\n".join(lines) + "\n"


def _answer(found: Mapping[str, Mapping[tuple[str, str], PolicyReward]], rows: Sequence[Undone]) -> list[str]:
    """Which sets can be gamed, in two lines."""
    cheats = {name: sum(row.exploits for row in by_policy.values()) for name, by_policy in found.items()}
    safe = [f"`{name}`" for name, count in cheats.items() if not count]
    gamed = [f"`{name}` ({count})" for name, count in cheats.items() if count]
    right, tried = sum(row.not_wrong for row in rows), sum(row.tried for row in rows)
    return [
        f"- No policy of the table gets more than honest work under: {', '.join(safe) or 'none'}. Some do under: "
        f"{', '.join(gamed) or 'none'}.",
        f"- Answers that leave the work undone: {right} of {tried} were not refused by the families' verifiers.\n",
    ]


def _policies(found: Mapping[str, Mapping[tuple[str, str], PolicyReward]]) -> list[str]:
    first = next(iter(found.values()))
    rows = [_line([*key, *(_cell(one[key]) for one in found.values()), first[key].about]) for key in first]
    head = _line(["role", "policy", *(f"`{name}`" for name in found), "what it does"])
    return [head, "|---" * (len(found) + 3) + "|", *rows, ""]


def _undone(rows: Sequence[Undone]) -> list[str]:
    lines = [
        "Answers that leave the work undone, put to the verifier of every family: how many of them were right, or "
        "undecided without symbolic algebra.\n",
    ]
    policies = list(dict.fromkeys(row.policy for row in rows))
    lines += [_line(["family", *policies]), "|---" * (len(policies) + 1) + "|"]
    for family in dict.fromkeys(row.family for row in rows):
        own = {row.policy: row for row in rows if row.family == family}
        lines.append(_line([family, *(f"{own[name].not_wrong} of {own[name].tried}" for name in policies)]))
    return lines


def _cell(paid: PolicyReward) -> str:
    return f"**{paid.mean:.3f}**" if paid.exploits else f"{paid.mean:.3f}"
