"""Part of the rim: one side of a comparison of a change with its base: a folder's settings, plugins and prompt, scored
on items or as rewards of a stored run. Each side runs in a separate process, since both may register the same names."""

from dataclasses import replace
from pathlib import Path

from agent0.assembly.evaluation.benchmark_run import Plan, Report, read_plan, run_benchmarks, same_run, scored_items
from agent0.assembly.log.access import open_log
from agent0.assembly.replay.receipts import compared_receipts
from agent0.assembly.replay.stored_experiments import extent, start_of_run
from agent0.assembly.routing.billing import price_of, spent_usd
from agent0.assembly.runtime.read_models import sound_log
from agent0.config.loading import public
from agent0.config.setting_entries import leaves
from agent0.errors import NotFoundError
from agent0.events.base import Value, sha256
from agent0.events.benchmarks import ItemScored, Mode
from agent0.events.tasks import ResultVerified
from agent0.events.values import Usage
from agent0.rewards.verdict_agreement import RewardedAttempt
from agent0.settings import Settings

AGAIN = "the same command"
PLAN, SCORE = "plan\n", "score\n"
"""What a side's process is asked for."""


class SideRequest(Value):
    """The request to a side: ``benchmarks`` with ``items`` of each, drawn with ``seed``; or rewards of the run
    ``replay``. ``prompt`` is a prompt's name or a file of the side's folder."""

    benchmarks: tuple[str, ...]
    data: str
    items: int
    seed: int
    prompt: str = ""
    profile: str | None = None
    pairs: tuple[str, ...] = ()
    replay: str = ""
    quiet: bool = False


class SidePlan(Value):
    """What a side will do, before it asks anything: how many ``items`` there are, how many of them are ``stored``, and
    the most tokens that an item's turns write; ``settings`` are those of its run and its plugins' digests, by dotted
    key. ``price``: of a million tokens read and written."""

    run: str
    settings: dict[str, str]
    items: int = 0
    stored: int = 0
    most_written: int = 0
    price: tuple[float, float] = (0.0, 0.0)

    @property
    def most_usd(self) -> float:
        """The most that the tokens to be written cost, in US dollars."""
        return (self.items - self.stored) * self.most_written * self.price[1] / 1_000_000


class SideScore(Value):
    """The score of a side in the benchmark run ``run``. ``new_items`` were asked by this command, the others stored;
    ``usd`` None: a price is not known. ``rewards`` by attempt, where a run was replayed."""

    run: str
    rewards: dict[str, RewardedAttempt]
    new_items: int = 0
    read: int = 0
    written: int = 0
    usd: float | None = 0.0


def bench_plan(settings: Settings, request: SideRequest) -> Plan:
    """The benchmark run of a side, in one mode: with tools where its student has some."""
    mode: Mode = "tools" if settings.run.student.uses_tools else "plain"
    plan = Plan(request.benchmarks, Path(request.data), (mode,), limit=request.items, seed=request.seed)
    return replace(plan, questions=settings.run.questions)


def _identity(settings: Settings, plan: Plan) -> str:
    """The same for all that scores depend on, plugins' code too: what is scored so already is replayed."""
    return f"bench-{sha256(same_run(settings, plan) + repr(sorted(settings.run.plugins.items())))[:10]}"


async def _stored(settings: Settings, run: str) -> list[ItemScored]:
    try:
        return (await scored_items(settings, run))[0]
    except NotFoundError:
        return []


async def plan_side(settings: Settings, request: SideRequest) -> SidePlan:
    """Read what this side will do. Errors as for ``read_plan``."""
    run_settings = {key: str(value) for key, value in leaves({"run": public(settings)["run"]})}
    if request.replay:
        return SidePlan(run=request.replay, settings=run_settings)
    plan, student = bench_plan(settings, request), settings.run.student
    run = _identity(settings, plan)
    async with open_log(settings, make=True):
        pass
    benchmarks = read_plan(plan)[0].values()
    factor = student.long_factor if any(entry.in_folders for entry, _ in benchmarks) else 1
    return SidePlan(
        run=run,
        items=sum(len(items) for _, items in benchmarks),
        stored=len(await _stored(settings, run)),
        most_written=student.max_turns * factor * student.max_tokens,
        price=price_of(settings, student),
        settings=run_settings,
    )


async def score_side(settings: Settings, request: SideRequest, report: Report) -> SideScore:
    """Score this side, or reward the run again by its rules. Errors as for ``run_benchmarks`` and ``rescore_run``."""
    if request.replay:
        return SideScore(run=request.replay, rewards=await _rewards(settings, request.replay))
    plan = bench_plan(settings, request)
    run = _identity(settings, plan)
    stored = len(await _stored(settings, run))
    await run_benchmarks(settings, plan, run, report, command=AGAIN)
    items, _ = await scored_items(settings, run)
    usage = Usage(
        prompt_tokens=sum(item.usage.prompt_tokens for item in items),
        completion_tokens=sum(item.usage.completion_tokens for item in items),
    )
    async with open_log(settings, make=True) as log:
        usd = await spent_usd(settings, log, run, settings.run.student, usage)
    read, written = usage.prompt_tokens, usage.completion_tokens
    return SideScore(run=run, rewards={}, new_items=len(items) - stored, read=read, written=written, usd=usd)


async def _rewards(settings: Settings, run: str) -> dict[str, RewardedAttempt]:
    """The student's rewards of ``run`` under the rules of ``settings``, beside the verdicts that it recorded."""
    async with sound_log(settings) as log:
        await start_of_run(log, run)
        until = await extent(log, run, None)
        comparison = await compared_receipts(log, run, until, settings.run.rewards, {}, lambda _: None)
        comparison.check_finite()
        verdicts = {
            stored.event.attempt: stored.event.correct
            async for stored in log.read(run, ["ResultVerified"])
            if isinstance(stored.event, ResultVerified)
        }
    rewards = [new.receipt.reward for new in comparison.after.values() if new.receipt.role == "student"]
    return {
        reward.attempt: RewardedAttempt(reward.task, verdict, reward.total)
        for reward in rewards
        if (verdict := verdicts.get(reward.attempt)) is not None
    }
