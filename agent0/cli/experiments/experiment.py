"""Experiments: what a run would have come to under other rules, from its log and without a model call."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import typer

from agent0.cli import console
from agent0.errors import ConfigError
from agent0.events.values import Role
from agent0.settings import RoutingConfig, Settings

if TYPE_CHECKING:
    from agent0.assembly.replay.stored_experiments import Progress
    from agent0.experiments.compare_runs import AgainstRow, RunComparison

Name = Annotated[str, typer.Option("--name", "-n", help="Its name; run again with the same one, it goes on.")]


def list_(
    run: Annotated[str, typer.Option(help="Those of one run.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """List experiments, newest first; with --run only those of one run."""
    from agent0.projections.experiments import list_experiments

    with console.tables() as db:
        of = console.of_newest(run) if run else ""
        console.table(console.limited(lambda n: list_experiments(db, of, n), limit), as_json)


def show(experiment: str, as_json: console.Json = False) -> None:
    """One experiment: what it asked, under which rules, and what it found."""
    from agent0.projections.experiments import show_experiment

    with console.tables() as db:
        console.record(show_experiment(db, experiment), as_json)


def reroute(
    strategy: Annotated[str, typer.Option(help="One of `agent0 router strategies`.")],
    run: console.Run = "LAST",
    role: Annotated[str, typer.Option(help="Whose questions: teacher or judge.")] = "judge",
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Confidence from which an answer is given.")] = 0.7,
    worth: Annotated[float, typer.Option(metavar="USD", min=0, help="What a right answer is worth.")] = 0,
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the second model.")] = 0.5,
    allowance: Annotated[float | None, typer.Option(metavar="USD", min=0, help="For all questions together.")] = None,
    prices: Annotated[str, typer.Option(help="as-run, or settings: recorded tokens by today's prices.")] = "as-run",
    as_json: console.Json = False,
) -> None:
    """Route the questions of a finished run again, from their recorded answers: what they would have cost, how many
    answers would be the same, and what nobody can know. No model is asked. JSON: in nano-dollars."""
    from agent0.assembly.replay.reroute import Priced, Reroute, reroute_run

    if prices not in get_args(Priced):
        raise ConfigError(f"There are no prices {prices!r}.", fix="Give as-run or settings.")
    routing = RoutingConfig(
        strategy=strategy, threshold=threshold, worth_usd=worth, share=share, allowance_usd=allowance
    )
    request = Reroute(console.run_id(run), role, routing, cast("Priced", prices))
    results = console.run_async(lambda: reroute_run(console.settings(), request))
    console.record(results if as_json else _as_dollars(results), as_json)


def _as_dollars(results: dict[str, Any]) -> dict[str, Any]:
    """A rerouted run as people read it."""
    from agent0.routing.budgets import dollars

    least, most = results["cost"]
    low, high = results["same95"]
    cost = dollars(least) if least == most else f"{dollars(least)} to {'any' if most is None else dollars(most)}"
    same = f"{results['same']} of {results['decided']} known (95 %: {low:.2f} to {high:.2f})"
    rest = {name: value for name, value in results.items() if name != "same95"}
    return {**rest, "cost": cost, "cost_then": dollars(results["cost_then"]), "same": same}


Rules = Annotated[
    str,
    typer.Option(metavar="SET|FILE", help="A set, or TOML with `set` and \\[weights]; as-run: the run's own rules."),
]


def rescore(
    run: console.Run = "LAST",
    rewards: Rules = "as-run",
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    verdicts: Annotated[
        str,
        typer.Option(metavar="EXPERIMENT", help="Verdicts of a `reverify` instead, or `reviews`: those of reviewers."),
    ] = "",
    commit: Annotated[bool, typer.Option("--commit", help="Write it down; without it nothing is written.")] = False,
    as_json: console.Json = False,
) -> None:
    """Recompute all rewards of a run, its teacher's too, and show what changes: under a set, a file of rules, or
    single settings (--set run.rewards.weights.token_cost=0.1). With its own rules: nothing."""
    from agent0.assembly.replay.forks import pairs_of
    from agent0.assembly.replay.rescore import Rescore, rescore_run
    from agent0.assembly.validate.rewards import AS_RUN, reward_policy

    settings = console.settings(plugins=plugin)
    policy, changes = reward_policy(rewards), pairs_of(pairs)
    if commit and not name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    request = Rescore(console.run_id(run), name or "look", policy, verdicts, commit, changes)
    results = console.run_async(lambda: rescore_run(settings, request, _Reporter(quiet=as_json)))
    as_run = rewards == AS_RUN and not verdicts and not changes
    if as_json:
        console.data(results)
    else:
        _show(results)
    if as_run and not results["identical"] and results["redacted"]:
        console.say("The run's own rules do not give all of its own rewards: some rest on what was redacted.", "yellow")
    elif as_run and not results["identical"]:
        console.say("The run's own rules do not give its own rewards: see `agent0 run check`.")
        raise typer.Exit(1)


def reverify(
    run: console.Run = "LAST",
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    commit: Annotated[bool, typer.Option("--commit", help="Write it down; without it nothing is written.")] = False,
    asks: Annotated[
        Literal["", "calls", "batch"],
        typer.Option(
            "--ask", help="Ask the judge anew: by calls, or by its vendor's batch API (cheaper, takes hours)."
        ),
    ] = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Judge all attempts of a run again in fresh sandboxes, by today's verifiers or other settings of them (--set
    verification.agreeing=…), and show which verdicts change. With its own settings: none. Another judge (--set
    verification.judge.provider=…) has to be asked; killed while it waits for a batch, the same command goes on."""
    from agent0.assembly.replay.forks import pairs_of
    from agent0.assembly.replay.reverify import Reverify
    from agent0.assembly.replay.reverify import reverify as judge_again
    from agent0.report.score_answers import reverify_answer

    if commit and not name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    settings = console.settings(plugins=plugin)
    request = Reverify(console.run_id(run), name or "look", pairs_of(pairs), commit, asks)
    results = console.run_async(lambda: judge_again(settings, request, _Reporter(quiet=as_json), _waiting))
    answer = reverify_answer(results)
    if as_json:
        console.data({**results, "answer": answer})
    else:
        console.print_lines(answer)
        if full:
            _show_verdicts(results)
        _show_end(results)
    if results["own_settings"] and not results["identical"]:
        console.say("The run's own settings do not give its own verdicts: verifiers were changed since, or one failed.")
        raise typer.Exit(1)


def _waiting(batch: str, count: int) -> None:
    console.say(f"Waiting for {count} answers of batch {batch}; Ctrl-C, and the same command goes on.")


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="An experiment, or a run.")]
Roles = Annotated[str, typer.Option(help="student, teacher, or student,teacher.")]
Purge = Annotated[list[str] | None, typer.Option("--purge", metavar="TASK", help="A task to leave out.")]
Evaluate = Annotated[bool, typer.Option(help="Score each new student on the validation tasks.")]


def retrain(
    source: Source,
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    roles: Roles = "student",
    purge: Purge = None,
    evaluate: Evaluate = True,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Train a run's checkpoints again from what is stored: with the rewards of an experiment, another recipe
    (--set training.student.lr=…), or without some tasks. Nothing is generated again."""
    settings = console.settings(plugins=plugin)
    _retrain(settings, source, name, pairs, roles, tuple(purge or ()), evaluate, full, as_json)


def purge_task(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task to train without.")],
    run: console.Run = "LAST",
    name: Name = "",
    roles: Roles = "student",
    evaluate: Evaluate = True,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Train a run's checkpoints again as if one of its tasks had never been. Checkpoints of a role that --roles does
    not name stay; those that saw the task are listed."""
    _retrain(console.settings(), run, name or f"without-{task}", None, roles, (task,), evaluate, full, as_json)


def _retrain(
    settings: Settings,
    source: str,
    name: str,
    pairs: list[str] | None,
    roles: str,
    purged: tuple[str, ...],
    evaluate: bool,
    full: bool,
    as_json: bool,
) -> None:
    from agent0.assembly.replay.forks import pairs_of
    from agent0.assembly.replay.retrain import Retrain, roles_of
    from agent0.assembly.replay.retrain import retrain as train_again
    from agent0.report.score_answers import retrain_answer

    if not name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    request = Retrain(console.of_newest(source), name, pairs_of(pairs), purged, roles_of(roles), evaluate)
    results = console.run_async(lambda: train_again(settings, request, (lambda _: None) if as_json else console.say))
    stay = [name for task in purged for name in _staying(settings, results["run"], task, request.roles)]
    scored = evaluate and "student" in request.roles
    held_out = _beside_its_own(settings, results["run"], results["experiment"]) if scored else None
    whole = {**results, "stay": stay, "held_out": held_out}
    answer = retrain_answer(whole, purged)
    if as_json:
        console.data({**whole, "answer": answer})
        return
    console.print_lines(answer)
    if full:
        console.table(results["checkpoints"], False)
    if stay:
        others = "student,teacher"
        console.say(f"These saw what was left out, and stay (--roles {others}): {', '.join(stay)}", "yellow")


def _beside_its_own(settings: Settings, run: str, experiment: str) -> dict[str, object] | None:
    """The last student trained again compared with the run's own, where both answered the same validation tasks."""
    from agent0.assembly.replay.compare_runs import gather
    from agent0.experiments.compare_runs import same_checkpoint

    original, again = console.run_async(lambda: gather(settings, [run, experiment]))
    return same_checkpoint(original, again)


def _staying(settings: Settings, run: str, task: str, roles: Sequence[Role]) -> list[str]:
    """Checkpoints of the run's other roles whose training saw ``task``."""
    from agent0.assembly.models.lineage import TouchedCheckpoint, touched
    from agent0.assembly.runtime.read_models import reading_log
    from agent0.infra.storage.artifacts import FileArtifacts

    async def work() -> list[TouchedCheckpoint]:
        async with reading_log(settings) as log:
            return await touched(log, FileArtifacts(settings.home), run, task)

    rows = console.run_async(work)
    return [f"{row['run']}/{row['checkpoint']}" for row in rows if row["run"] == run and row["role"] not in roles]


def compare(
    names: Annotated[
        list[str], typer.Argument(metavar="A B …", help="Runs and experiments; the first is the measure.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="Also write one HTML file."),
    ] = None,
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Runs and experiments side by side: rewards, held-out curves with paired tests, what changed sides, how much of
    what models wrote could be read, cost."""
    from agent0.assembly.replay.compare_runs import gather_different
    from agent0.experiments.compare_runs import side_by_side
    from agent0.report.answers import compare_answer

    names = [console.of_newest(name) for name in names]
    settings = console.settings()
    comparison = side_by_side(console.run_async(lambda: gather_different(settings, names)))
    if out is not None:
        from agent0.report.html.benchmark_page import compare_page

        console.write(out, compare_page(comparison))
    if as_json:
        console.data(comparison)
        return
    console.print_lines(compare_answer(comparison))
    if full:
        _show_sides(comparison)
    if out is not None:
        console.text(str(out))


def _show_sides(comparison: "RunComparison") -> None:
    console.table(comparison["rewards"], False, title="Rewards")
    last = [{"name": name, **curve[-1]} for name, curve in comparison["curves"].items() if curve]
    console.table(last, False, title="\nLast validation score")
    rows = [_against(row) for row in comparison["against"]]
    heads = ("name", "conclusion", "mean", "lower95", "upper95", "adjusted_p", "detectable", "teacher_rank_correlation")
    first = comparison["names"][0]
    console.table(rows, False, (*heads, "changed_sides"), title=f"\nAgainst {first}, on the same items")
    console.table(comparison["read"], False, title="\nWhat was written, and what of it could be read")
    console.table(comparison["cost"], False, title="\nCost")


def _against(row: "AgainstRow") -> dict[str, object]:
    """The columns of one comparison, its conclusion in words."""
    from agent0.report.conclusions import conclusion

    held_out = row["held_out"]
    concluded = {**held_out, "conclusion": conclusion(held_out["word"])} if held_out else {}
    return {**row, **concluded, "changed_sides": len(row["changed_sides"])}


class _Reporter:
    """Says now and then how far the reading is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, at: "Progress") -> None:
        if not self._quiet:
            rate = at.done / at.wall_s if at.wall_s else 0.0
            console.say(f"{at.done:,} of {at.all:,} events, {rate:,.0f} a second, {at.left_s:.0f} s left")


def _show(results: dict[str, Any]) -> None:
    from agent0.report.answers import rescore_answer

    console.print_lines(rescore_answer(results))
    roles = [{"role": role, **results[role]} for role in ("student", "teacher") if role in results]
    sides = results["changed_sides"]
    console.table(roles, False, ("role", "n", "changed", "mean_before", "mean_after", "rank_correlation"))
    if sides:
        console.text(f"{len(sides)} tasks change sides: {', '.join(sides[:20])}{' …' if len(sides) > 20 else ''}")
    if results["failed"]:
        console.text(f"{results['failed']} rewards could not be computed, the first: {results['first_failure']}")
    if results["redacted"]:
        console.text(f"{results['redacted']} events of the run were redacted: their content is left out.")
    _show_end(results)


def _show_end(results: dict[str, Any]) -> None:
    if results["committed"]:
        console.text(f"Written down as {results['experiment']}.")
    else:
        console.say("Nothing is written; --commit writes it down.")


SHOWN = 20
"""Changed verdicts that are printed; --json has them all."""


def _show_verdicts(results: dict[str, Any]) -> None:
    for rows in (results["by_verifier"], [row for row in results["by_family"] if row["changed"]]):
        if rows:
            console.table([_labels(row) for row in rows], False)
    if results["changes"]:
        first = sorted(results["changes"], key=lambda row: not row["flip"])[:SHOWN]
        console.table([_changed(row) for row in first], False)
    if len(results["changes"]) > SHOWN:
        console.text(f"… and {len(results['changes']) - SHOWN} more: --json has them all.")
    for row in results["failures"][:SHOWN]:
        console.text(f"{row['attempt']} could not be judged: {row['error']}: {console.one_line(row['message'])}")


def _labels(row: dict[str, Any]) -> dict[str, Any]:
    """Counts as ``before > after``."""
    plain = {key: value for key, value in row.items() if not key.endswith(("_before", "_after"))}
    labels = ("right", "wrong", "undecided")
    return plain | {label: f"{row[f'{label}_before']} > {row[f'{label}_after']}" for label in labels}


def _changed(row: dict[str, Any]) -> dict[str, Any]:
    labels = {True: "right", False: "wrong", None: "undecided"}
    verdicts = {when: labels[row[when]["correct"]] if row[when] else "none" for when in ("before", "after")}
    reason = console.one_line(row["after"]["reason"] if row["after"] else "")
    return {"attempt": row["attempt"], "family": row["family"], **verdicts, "reason": reason}
