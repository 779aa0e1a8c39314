"""Part of the rim: a judge that is asked anew about a run's past answers, call by call or by its vendor's batch API."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Literal

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import check_routing
from agent0.assembly.runtime.model_ports import OpenModels
from agent0.errors import ConfigError
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.settings import ActorConfig, JudgeConfig, RunConfig, Settings
from agent0.verification.panel import Opinion, Reader
from agent0.verification.panel.opinion import docstring_reader, judge_opinion

Asks = Literal["", "calls", "batch"]
"""How a judge is asked: not at all, by a call each, or by a vendor's batch API, which is cheaper and takes hours."""
Wait = Callable[[str, int], None]


class NewJudge:
    """Asks the judge of ``plan`` about answers, under the budgets of the experiment ``name``. The same question is the
    same request whenever it is asked, so that its answer is kept."""

    def __init__(self, settings: Settings, plan: RunConfig, name: str, log: Log) -> None:
        check_routing(settings.model_copy(update={"run": plan}))
        self._settings, self._seed, self._name = settings, plan.seed, name
        self._actor: JudgeConfig = plan.verification.judge
        self._models = OpenModels(settings, artifact_store(settings), log)
        self._heard: dict[GenerateRequest, None] | None = None

    def opinion(self, about: str) -> Opinion | None:
        """What is asked about the task ``about``."""
        models = self._models if self._heard is None else _Hearing(self._heard)
        return judge_opinion(models, self._actor, self._seed, self._name, about)

    def reader(self, about: str) -> Reader | None:
        """What has it read docstrings of the task ``about``."""
        models = self._models if self._heard is None else _Hearing(self._heard)
        return docstring_reader(models, self._actor, self._seed, self._name, about)

    async def fetch(self, look: Callable[[], Awaitable[object]], wait: Wait) -> None:
        """Have all answers that ``look`` asks for by the vendor's batch API, and keep them; ``look`` hears nothing
        true. ``wait`` hears what is waited for.

        Raises:
            ConfigError: its server has no such API, or its answers are not kept.
        """
        if "judge" not in self._settings.router.cache.roles:
            raise ConfigError("A judge's batch has no effect.", "router.cache.roles leaves its answers out.")
        batches = self._models.batches(self._actor)
        try:
            self._heard = {}
            await look()
            heard, self._heard = list(self._heard), None
            await batches.fetch(heard, self._settings.router.batch_s, wait)
        finally:
            self._heard = None
            await batches.close()

    async def close(self) -> None:
        """Close the models."""
        await self._models.close()


def open_judge(
    settings: Settings, plan: RunConfig, asks: Asks, name: str, log: Log, stack: AsyncExitStack
) -> NewJudge | None:
    """The judge of ``plan``, where it is to be asked; None: it is not. ``stack`` closes it.

    Raises:
        ConfigError: no judge is named.
    """
    if not asks:
        return None
    if not plan.verification.judge.provider:
        raise ConfigError("There is no judge to ask.", "None is named.", "--set verification.judge.provider=…")
    judge = NewJudge(settings, plan, name, log)
    stack.push_async_callback(judge.close)
    return judge


async def prefetch(judge: NewJudge | None, asks: Asks, look: Callable[[], Awaitable[object]], wait: Wait) -> None:
    """Have a vendor's batch answer what ``look`` will ask, where it is to."""
    if judge and asks == "batch":
        await judge.fetch(look, wait)


class _Hearing:
    """The ``Models`` and the ``Model`` port: writes requests down and is never sure."""

    name = "none"

    def __init__(self, heard: dict[GenerateRequest, None]) -> None:
        self._heard = heard

    def open(self, actor: ActorConfig) -> Model:
        return self

    async def generate(self, request: GenerateRequest) -> Generation:
        self._heard[request] = None
        return Generation("verdict: unsure")

    async def close(self) -> None:
        """Nothing is open."""
