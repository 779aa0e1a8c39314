"""Rewards: the registered sets, why a task or an attempt got its reward, and whether exploits earn more than honest
work."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, NotFoundError, OperationError, sentence
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


def list_(
    set_: Annotated[str, typer.Argument(metavar="SET", help="Parts of this set; empty: the sets themselves.")] = "",
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """The reward sets and how each puts its parts together; with a set, its parts, weights and formulas."""
    from agent0.rewards.describe import part_rows, set_rows

    console.settings(plugins=plugin)
    if not set_:
        console.table(set_rows(), as_json)
        return
    console.table(part_rows(_rules(set_, "").set), as_json, ("role", "part", "weight", "reads", "formula"))


def explain(
    name: Annotated[str, typer.Argument(metavar="TASK|ATTEMPT", help="For example t0-003, or t0-003-a2.")],
    run: console.Run = "LAST",
    of: Annotated[str, typer.Option("--run", help="The same as RUN.")] = "",
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """Explain the reward of a task's teacher, or of an attempt: each part with its inputs, value, weight and what
    the total would lack without it."""
    from agent0.projections.attempts import show_attempt
    from agent0.projections.rewards import explain_rewards
    from agent0.projections.runs import resolve
    from agent0.projections.tasks import show_task
    from agent0.rewards.describe import explain_receipt

    if plugin:
        console.settings(plugins=plugin)
    attempt = name if "-a" in name else ""
    with console.tables() as db:
        run_id = resolve(db, of or run)
        show_attempt(db, run_id, attempt) if attempt else show_task(db, run_id, name)
        receipts = explain_rewards(db, run_id, attempt=attempt) if attempt else explain_rewards(db, run_id, task=name)
    explained_receipts = [explain_receipt(receipt) for receipt in receipts if attempt or receipt["role"] == "teacher"]
    if not explained_receipts:
        with console.tables() as db:  # which does not know it either, says so
            (show_attempt if attempt else show_task)(db, run_id, name)
        raise NotFoundError(
            f"{name!r} of {run_id} has no receipt.", "No reward was assigned yet.", "See: agent0 task list"
        )
    if as_json:
        console.data(explained_receipts)
        return
    for receipt in explained_receipts:
        console.record({k: value for k, value in receipt.items() if k != "parts" and value not in ("", None)}, False)
        columns = ("part", "value", "weight", "worth", "contribution", "inputs", "part_formula")
        console.table([{**part, "part_formula": part["formula"]} for part in receipt["parts"]], False, columns)


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
    from agent0.assembly.replay.forks import pairs_of
    from agent0.assembly.validate.rewards import amended_rules
    from agent0.rewards.red_team.undone import undone

    if plugin:
        console.settings(plugins=plugin)
    named = [entry for entry in sets or () if "=" not in entry]
    changes = pairs_of([entry for entry in sets or () if "=" in entry])
    rules = amended_rules(_rules(named[-1] if named else "agent0", rewards), changes)
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


def calibrator(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Its name, as agent0 calibrate wrote it.")],
    checkpoint: Annotated[str, typer.Option(help="base, or RUN/CHECKPOINT.")] = "base",
    signal: Annotated[str, typer.Option(help="Of these signals alone, with + between them.")] = "",
    as_json: console.Json = False,
) -> None:
    """The newest and best calibrator of a model that needs no further samples, as a table for rules of rewards; with
    --signal that of certain signals, as strategies read them."""
    from agent0.projections.calibrators import list_calibrators
    from agent0.rollout.confidence.signals import SEVERAL

    with console.tables() as db:
        rows = list_calibrators(db, model, checkpoint)
    able = [row for row in rows if not set(row["signal"].split("+")) & {*SEVERAL}]
    able = [row for row in able if signal in ("", row["signal"])]
    if not able:
        raise NotFoundError(f"There is no calibrator of {model!r} at {checkpoint}.", fix="See: agent0 calibrate --help")
    settings_row = {key: able[0][key] for key in ("signal", "method", "parameters")}
    if as_json:
        console.data(settings_row)
        return
    console.text(f'[calibrator]\nsignal = "{settings_row["signal"]}"\nmethod = "{settings_row["method"]}"')
    console.text(f"parameters = {list(settings_row['parameters'])}")


def _rules(set_: str, file: str) -> RewardConfig:
    from agent0.assembly.validate.rewards import check_rewards, reward_policy

    if file:
        return reward_policy(file) or RewardConfig()
    rules = RewardConfig(set=set_)
    check_rewards(rules, "--set")
    return rules


def _played(rules: RewardConfig, seed: int) -> list[Any]:
    """Play every policy. What a reward of a user's raises is said of that reward."""
    from agent0.registry import LOADED
    from agent0.rewards.red_team.play import play_policies

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
    from agent0.report.markdown.rewards import page

    command = shlex.join(["agent0", "reward", "hack-test", "--seed", str(seed), "--page", str(path)])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(command, seed), encoding="utf-8")
    except OSError as error:
        what, why = "The page cannot be written.", f"{path}: {error.strerror}."
        raise OperationError(what, why, "Name another place: --page FILE") from error
    console.say(f"Written: {path}")
