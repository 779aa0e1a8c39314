"""Cheats, played against a reward set."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.assembly.replay.forks import pairs_of
from agent0.assembly.validate.rewards import amended_rules
from agent0.cli import console, flags
from agent0.cli.tasks.reward import rules_of
from agent0.errors import ConfigError, OperationError, sentence
from agent0.registry import LOADED
from agent0.report.markdown.rewards import page
from agent0.rewards.red_team.play import play_policies
from agent0.rewards.red_team.undone import undone
from agent0.settings import RewardConfig

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="SET|KEY=VALUE",
        help="A registered set (agent0 reward list), or a setting of run.rewards.",
    ),
]


def hack_test(
    sets: Set = None,
    plugin: console.Plugin = None,
    rewards: Annotated[str, typer.Option(metavar="FILE", help="TOML rules instead, as for experiment rescore.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks and luck.")] = 0,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=console.in_folder, help="Write what each policy gets under every set as Markdown."
        ),
    ] = None,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Play cheating teachers and students against honest ones, through the real rewards, and put answers that leave the
    work undone to every family's verifier. Exit code 1 where a cheat is rewarded more, or such an answer at all. A
    reward of your own: --plugin my_reward.py --set run.rewards.weights.NAME=0.2"""
    if plugin:
        flags.settings(plugins=plugin)
    named = [entry for entry in sets or () if "=" not in entry]
    changes = pairs_of([entry for entry in sets or () if "=" in entry])
    rules = amended_rules(rules_of(named[-1] if named else "agent0", rewards), changes)
    rows = [_row(played) for played in _played(rules, seed)]
    rows += [_undone(kind) for kind in undone(seed)]
    if page:
        _write(page, seed)
    cheats = [row for row in rows if row["more"]]
    _tell(rows, rows if full else cheats, len(cheats), as_json)
    if cheats:
        raise typer.Exit(1)


def _tell(rows: list[dict[str, Any]], shown: list[dict[str, Any]], cheats: int, as_json: bool) -> None:
    """The answer, then a row each; JSON has all of them."""
    if as_json:
        console.data(rows)
        return
    outcome = f"{cheats} of {len(rows)} policies earn" if cheats else f"No policy of {len(rows)} earns"
    console.text(f"{outcome} more than honest work.")
    if shown:
        console.table(shown, False, ("role", "policy", "family", "paid", "honest", "more", "about"))


def _played(rules: RewardConfig, seed: int) -> list[Any]:
    """Play every policy. What a reward of a user's raises is said of that reward."""
    try:
        return [*play_policies(rules, seed)]
    except Exception as error:  # whatever a user's code raises
        notes = " ".join(getattr(error, "__notes__", ()))
        if not LOADED or not notes:
            raise
        why = f"{type(error).__name__}: {sentence(str(error))} {notes}"
        raise ConfigError("A reward failed while it was played.", why, "Correct the file of --plugin.") from error


def _row(played: Any) -> dict[str, Any]:
    row = {
        "role": played.role,
        "policy": played.policy,
        "family": "",
        "paid": round(played.mean, 4),
        "honest": round(played.honest, 4),
    }
    return {**row, "more": played.exploits, "receipts": played.receipts, "about": played.about}


def _undone(kind: Any) -> dict[str, Any]:
    """The share of answers that were right or undecided, beside that of the family's own."""
    question, answer = kind.example or ("", "")
    about = f"{kind.tried} answers of this kind, judged by the family's verifier"
    paid = round(kind.not_wrong / kind.tried, 4)
    row = {"role": "student", "policy": kind.policy, "family": kind.family, "paid": paid}
    more = {"honest": round(kind.honest, 4), "more": kind.not_wrong > 0, "receipts": kind.tried}
    description = f"{answer!r} is not wrong for {question!r}" if kind.not_wrong else about
    return {**row, **more, "undecided": kind.undecided, "about": description}


def _write(path: Path, seed: int) -> None:
    command = shlex.join(["agent0", "reward", "hack-test", "--seed", str(seed), "--page", str(path)])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(command, seed), encoding="utf-8")
    except OSError as error:
        what, why = "The page cannot be written.", f"{path}: {error.strerror}."
        raise OperationError(what, why, "Name another place: --page FILE") from error
    console.say(f"Written: {path}")
