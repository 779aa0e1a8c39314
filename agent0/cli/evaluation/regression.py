"""``agent0 bench regression``: whether a change of prompts, rewards, settings, a plugin or a model may be merged."""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.evaluation.benchmark_run import begun_plan, scored_items
from agent0.assembly.evaluation.regression_side import PLAN, SCORE, SidePlan, SideRequest, SideScore
from agent0.cli import console, flags, lookup
from agent0.cli.evaluation.bench import located
from agent0.cli.evaluation.options import HERE, Data
from agent0.config.setting_entries import leaves
from agent0.errors import ConfigError, NotFoundError
from agent0.evaluation.benchmark_scores import scored_regression
from agent0.events.benchmarks import ItemScored
from agent0.infra.log.event_log import NoLogError
from agent0.report.markdown.regression import SideCost, answer, comment, plan_words
from agent0.rewards.verdict_agreement import reward_regression
from agent0.settings import Settings
from agent0.stats.regression_rule import Regression, RegressionRule

SETS = "heldout_math,heldout_logic,heldout_code"
BLOCKED = 3
"""The exit code of a change that is blocked."""
WORKER = "agent0.cli.evaluation.worker_regression"
Side = Annotated[str, typer.Argument(help="A folder with agent0.toml, or a benchmark run.")]
Items = Annotated[int, typer.Option(min=0, max=100_000, help="Pairs; 0: as many as the rule asks for.")]
Loss = Annotated[float, typer.Option(min=0.1, max=99, help="Points whose loss is to be caught.")]
Changing = Annotated[
    float, typer.Option(min=0.1, max=99, help="Percent of outcomes that may change; more: more items.")
]
Prompt = Annotated[str, typer.Option(help="A prompt of `prompt list`, or a file in both folders.")]
Replayed = Annotated[str, typer.Option(metavar="RUN", help="Compare rewards on a stored run's attempts.")]
Write = Annotated[
    Path | None, typer.Option(metavar="FILE", callback=console.in_folder, help="Write the comment, as Markdown.")
]


def regression(
    base: Side,
    change: Side,
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARKS|FILE", help="What both answer.")] = SETS,
    items: Items = 0,
    loss: Loss = 5.0,
    changing: Changing = 20.0,
    prompt: Prompt = "",
    replay: Replayed = "",
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would ask, and its cost.")] = False,
    write: Write = None,
    title: Annotated[str, typer.Option(help="Stands in the comment.")] = "",
    data: Data = HERE,
    seed: Annotated[int, typer.Option(min=0, help="Draws items.")] = 0,
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Block a change that makes the student worse: base and change answer the same items, and an exact paired test
    decides, with error rates that are stated before anything is asked. Exits with 3 where it is blocked; what is
    scored already is not asked again."""
    rule, settings = _rule(loss, changing), flags.settings()
    benchmarks = _benchmarks(on)
    request = SideRequest(
        benchmarks=benchmarks,
        data=str(data.absolute()),
        items=math.ceil((items or rule.items()) / len(benchmarks)),
        seed=seed,
        prompt=prompt,
        profile=profile,
        pairs=tuple(set_ or ()),
        replay=lookup.run_id(replay, settings) if replay else "",
        quiet=as_json,
    )
    if sides := _compared(settings, (base, change), request, rule, plan):
        _show(sides, rule, write, title, as_json)


def _benchmarks(on: str) -> tuple[str, ...]:
    if benchmarks := tuple(dict.fromkeys(located(name.strip()) for name in on.split(",") if name.strip())):
        return benchmarks
    raise ConfigError("No benchmark is named.", "--on is empty.", "See: agent0 bench list")


def _show(sides: "list[ComparedSide]", rule: RegressionRule, write: Path | None, title: str, as_json: bool) -> None:
    """Print, write and decide."""
    outcome, changed = _outcome(sides, rule), _changed(*sides)
    costs = [side.cost for side in sides]
    if write:
        console.write(write, comment(outcome, costs, changed, title), "--write")
    if as_json:
        console.data(_as_json(outcome, costs, changed))
    else:
        console.print_lines([*answer(outcome), *(f"{n}: {c.phrase}." for n, c in zip(NAMES, costs, strict=True))])
    if outcome.blocked:
        raise typer.Exit(BLOCKED)


NAMES = ("Base", "Change")
FOLDERS = "Name two folders, each with an agent0.toml."


@dataclass
class ComparedSide:
    """One side with what it is and came to: a process in its folder, or a stored benchmark run."""

    name: str
    process: subprocess.Popen[str] | None = None
    plan: SidePlan = field(default_factory=lambda: SidePlan(run="", settings={}))
    score: SideScore = field(default_factory=lambda: SideScore(run="", rewards={}))
    items: list[ItemScored] = field(default_factory=list)

    def ask(self, what: str) -> str:
        """Send a line to the process and read its answer; it has complained where it ended."""
        assert self.process and self.process.stdin and self.process.stdout  # noqa: S101 - opened with pipes
        try:
            self.process.stdin.write(what)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            console.say(f"That is of {self.name}; nothing was compared.")
            raise typer.Exit(self.process.wait() or 1)
        return line

    @property
    def cost(self) -> SideCost:
        """What it took."""
        score = self.score
        return SideCost(score.run, score.new_items, score.read, score.written, score.usd, bool(score.rewards))


def _rule(loss: float, changing: float) -> RegressionRule:
    try:
        return RegressionRule(loss=loss / 100, discordance=changing / 100)
    except ValueError as error:
        raise ConfigError("There is no such rule.", f"{error}.", "Raise --changing, or lower --loss.") from None


def _compared(
    settings: Settings, names: tuple[str, str], request: SideRequest, rule: RegressionRule, plan: bool
) -> list[ComparedSide] | None:
    """Both sides, planned and scored, the base first; None where only the ``plan`` is asked for."""
    with ExitStack() as stack:
        sides = [stack.enter_context(_side(settings, name, request)) for name in names]
        for side in sides:
            if side.process:
                side.plan = SidePlan.model_validate_json(side.ask(PLAN))
        _say_plan(sides, request, rule, plan)
        if plan:
            return None
        for side in sides:
            if side.process:
                side.score = SideScore.model_validate_json(side.ask(SCORE))
    for side in sides:
        if not request.replay:
            side.items = _items(settings, side.score.run)
    return sides


def _items(settings: Settings, run: str) -> list[ItemScored]:
    return console.run_async(lambda: scored_items(settings, run))[0]


@contextmanager
def _side(settings: Settings, name: str, request: SideRequest) -> Iterator[ComparedSide]:
    """A stored benchmark run, or a process in the folder ``name``, which ends with this."""
    if not Path(name).is_dir():
        if os.sep in name or request.replay:
            raise ConfigError(f"There is no folder {name[:80]!r}.", fix=FOLDERS)
        try:
            side = _stored_side(settings, name)
        except (NotFoundError, NoLogError) as error:
            why = f"Nor is it a stored benchmark run: {error.what}"
            raise NotFoundError(f"There is no folder {name[:80]!r}.", why, FOLDERS) from None
        yield side
        return
    if not Path(name, "agent0.toml").is_file():
        raise ConfigError(f"The folder {name[:80]} has no agent0.toml.", fix=FOLDERS)
    command = [sys.executable, "-P", "-m", WORKER, request.model_dump_json()]
    pipe, environment = subprocess.PIPE, console.environment(settings.home)
    with subprocess.Popen(  # noqa: S603 - our own module; the folder's plugins are code that its owner wants run
        command, cwd=name, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            yield ComparedSide(name, process)
        finally:
            if process.stdin:
                with suppress(BrokenPipeError):  # it ended with a line unread
                    process.stdin.close()


def _stored_side(settings: Settings, run: str) -> ComparedSide:
    items = _items(settings, run)
    mode = max(item.mode for item in items)  # with tools, where it has scored with them
    usage = [item.usage for item in items if item.mode == mode]
    read, written = sum(each.prompt_tokens for each in usage), sum(each.completion_tokens for each in usage)
    score = SideScore(run=run, rewards={}, read=read, written=written, usd=None)
    begun, plan = console.run_async(lambda: begun_plan(settings, run, HERE))
    student = {key: str(value) for key, value in leaves({"run.student": begun.run.student.model_dump(mode="json")})}
    student["checkpoint"] = plan.checkpoint
    return ComparedSide(run, plan=SidePlan(run=run, settings=student, items=len(items), stored=len(items)), score=score)


def _say_plan(sides: list[ComparedSide], request: SideRequest, rule: RegressionRule, plan: bool) -> None:
    """What will be asked, what it shows and the most it costs, before it is asked."""
    if request.replay:
        console.say(f"Rewards of {request.replay} again under both rules: no model is asked.")
        return
    counts = [side.plan.items for side in sides]
    new = sum(max(0, side.plan.items - side.plan.stored) for side in sides)
    usd = sum(side.plan.most_usd for side in sides)
    written = sum((side.plan.items - side.plan.stored) * side.plan.most_written for side in sides)
    read = max(side.plan.price[0] for side in sides)
    money = f"${usd:.4g} for these, ${read:g} for each million read" if usd or read else "no price is known"
    for line in (plan_words(rule, min(counts)), f"To ask: {new:,} items, at most {written:,} tokens written; {money}."):
        if plan:
            console.print_lines([line])
        else:
            console.say(line)


def _outcome(sides: list[ComparedSide], rule: RegressionRule) -> Regression:
    base, change = sides
    if not base.items:
        return reward_regression(base.score.rewards, change.score.rewards, rule)
    return scored_regression(base.items, change.items, rule)


def _changed(base: ComparedSide, change: ComparedSide) -> dict[str, tuple[str, str]]:
    """Settings that differ; a stored run knows those of its student alone."""
    old, new = base.plan.settings, change.plan.settings
    keys = old.keys() | new.keys() if base.process and change.process else old.keys() & new.keys()
    pairs = {key: (old.get(key, ""), new.get(key, "")) for key in sorted(keys)}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _as_json(outcome: Regression, costs: list[SideCost], changed: dict[str, tuple[str, str]]) -> dict[str, object]:
    shown = outcome.rule.interval(outcome.difference)
    return {
        "blocked": outcome.blocked,
        "base": outcome.base,
        "change": outcome.change,
        "difference": shown.mean,
        "lower": shown.lower95,
        "upper": shown.upper95,
        "p": outcome.rule.one_sided(outcome.difference),
        "items": shown.items,
        "gained": shown.gained,
        "lost": shown.lost,
        "power": outcome.power,
        "items_needed": outcome.items_needed,
        "costs": [vars(each) for each in costs],
        "changed": changed,
        "answer": answer(outcome),
    }
