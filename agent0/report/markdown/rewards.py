"""The Markdown page about rewards: sets, formulas and parts from the code, and the reward of exploits under each
set."""

import re
from typing import Any

from agent0.rewards import reward_sets, rules_of_set
from agent0.rewards.describe import ROLES, part_rows
from agent0.rewards.features import features
from agent0.rewards.red_team.play import PolicyReward, play_policies
from agent0.rewards.red_team.undone import undone

MEASURED = "## Do exploits earn more than honest work?\n"
"""The sections after this heading are measured; those before it come from the code."""

HEAD = """# Rewards

A receipt (`RewardAssigned`) names its set, its parts with their inputs, values and weights, and the total. A part is a
pure function in `agent0/rewards/`, bounded in [-1, 1]; one that cannot know its value has none, which is not 0. A set
is a file in `agent0/rewards/sets/` that says how parts become a total. All that parts read is in the run's log, so
`agent0 experiment rescore --rewards SET|FILE` rewards a run again under other rules.

```
agent0 reward list                    the sets; with a name, its parts
agent0 reward explain t0-003 LAST     why a teacher, or an attempt, got its reward
agent0 reward hack-test               exploits against honest work; exit code 1 where an exploit earns more
agent0 run start --profile tiny --set run.rewards.set=paper
agent0 experiment rescore LAST --rewards paper          the same run, rewarded by another set
agent0 experiment rescore LAST --rewards rules.toml
```

`rules.toml` may have what `run.rewards` has ([settings](config.md)):

```toml
set = "agent0"
normalize = true   # less the mean, by the deviation, of the role's receipts of earlier iterations
clip = 3.0         # then kept within -3 and 3; the receipt's facts have the raw total, mean and deviation

[weights]
skill_novelty = 0.2
token_cost = 0.05
```

A run is rewarded by the `edition` of the rewards that it began with; its log names it. The second rewarded students of
`paper` and `released` by the run's verdict and not by the majority (`paper/2`, `released/2`). The first, which is that
of logs that name none, besides counted any call that ran, and took the majority's share where nothing was verified
(`agent0/1`).
"""


def page(command: str, seed: int = 0) -> str:
    """Write the whole Markdown page: the part from the code, then the measured part; ``command`` made it."""
    return f"{code_part()}\n{MEASURED}\n{_measured(command, seed)}"


def code_part() -> str:
    """Write the part of the page that follows from the code alone."""
    lines = [HEAD]
    for name, one in reward_sets().items():
        beside = f" All other parts are those of `{one.like}`." if one.like else ""
        lines += [f"## `{name}`\n", f"{_plain(one.about)}{beside}\n"]
        lines.append("| role | part | weight | reads | value |\n|---|---|---|---|---|")
        lines += [
            _line([row[key] for key in ("role", "part", "weight", "reads", "formula")])
            for row in part_rows(name, own=True)
        ]
        lines.append("")
    lines += [
        "## Facts\n",
        "What parts may read beside the fields of every receipt.\n",
        "| role | fact | meaning |\n|---|---|---|",
    ]
    for role in ROLES:
        lines += [_line([role, name, " ".join((one.__doc__ or "").split())]) for name, one in features(role).items()]
    return "\n".join(lines) + "\n"


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(_plain(str(cell)).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    return re.sub(r"(?<!`)``(?!`)", "`", text)


def _measured(command: str, seed: int) -> str:
    names = list(reward_sets())
    found: dict[str, dict[tuple[str, str], PolicyReward]] = {}
    for name in names:
        found[name] = {(paid.role, paid.policy): paid for paid in play_policies(rules_of_set(name), seed)}
    lines = [
        "Cheating teachers and students are played against honest ones through the real rewards: the mean of what each",
        f"earned, **bold** where it is more than honest work. `{command}`\n",
        _line(["role", "policy", *(f"`{name}`" for name in names), "what it does"]),
        "|---" * (len(names) + 3) + "|",
    ]
    for key in found[names[0]]:
        cells = [_cell(found[name][key]) for name in names]
        lines.append(_line([*key, *cells, found[names[0]][key].about]))
    return "\n".join([*lines, "", *_undone(seed)]) + "\n"


def _undone(seed: int) -> list[str]:
    rows = undone(seed)
    lines = [
        "Answers that leave the work undone, put to the verifier of every family: how many of them were right.\n",
    ]
    policies = list(dict.fromkeys(row.policy for row in rows))
    lines += [_line(["family", *policies]), "|---" * (len(policies) + 1) + "|"]
    for family in dict.fromkeys(row.family for row in rows):
        own = {row.policy: row for row in rows if row.family == family}
        lines.append(_line([family, *(f"{own[name].right} of {own[name].tried}" for name in policies)]))
    return lines


def _cell(paid: PolicyReward) -> str:
    return f"**{paid.mean:.3f}**" if paid.exploits else f"{paid.mean:.3f}"
