"""One model on several servers of OpenAI's API: each call goes to the one with the fewest under way. One that fails is
left alone for a while, and its calls go to the others."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic

from agent0.errors import (
    Agent0Error,
    DependencyError,
    ModelChangedError,
    RefusedError,
    TransientError,
    bare_url,
)
from agent0.infra.models.openai.provider import OpenAIServer, Profile
from agent0.infra.models.vllm_adapters import Readings
from agent0.ports.models import GenerateRequest, Generation, Listen
from agent0.ports.storage import Artifacts
from agent0.routing.breaker import Breaker
from agent0.settings import ActorConfig

_logger = logging.getLogger(__name__)
ALONE_S = 2.0
"""Seconds for which a server that failed is left alone at first."""


@dataclass
class _Member:
    """A server with its address, how it fares, whether it is known for a copy since a call failed last, how many calls
    it has, when that was, and whether nothing was answered since."""

    server: OpenAIServer
    address: str
    breaker: Breaker
    entry: asyncio.Lock = field(default_factory=asyncio.Lock)
    joined: bool = False
    calls: int = 0
    failed_s: float = -inf
    away: bool = False

    def fail(self, begun_s: float, error: Agent0Error) -> None:
        """Note a call that failed; those that had begun before another did say nothing new. The first is logged."""
        if not self.away:
            self.away = True
            _logger.warning(
                "%s fails, and its calls go to the others. %s", bare_url(self.address), bare_url(str(error))
            )
        if begun_s > self.failed_s:
            self.failed_s, self.joined = monotonic(), False
            self.breaker.fail(self.failed_s)

    def succeed(self) -> None:
        """Note a call that was answered; the first after a failure is logged."""
        self.breaker.succeed()
        if self.away:
            self.away = False
            _logger.warning("%s answers again.", bare_url(self.address))


class OpenAIServers:
    """The ``Model`` port on the model that each server at ``actor.addresses`` has; the rest as in ``OpenAIServer``."""

    streams = True

    def __init__(
        self,
        actor: ActorConfig,
        artifacts: Artifacts | None = None,
        *,
        shared: Path | None,
        patient: bool,
    ) -> None:
        same: Readings = {}
        actors = (actor.model_copy(update={"base_url": url}) for url in actor.addresses)
        self._members = [
            _Member(OpenAIServer(one, artifacts, "", shared, patient, same), one.base_url, Breaker(1, ALONE_S))
            for one in actors
        ]
        self.name, self._patient = self._members[0].server.name, patient
        self._first: tuple[str, Profile] | None = None

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn on one server, and where that fails on the next, until each has failed; errors are those of
        the last, as of ``OpenAIServer.generate``. What was passed on before a failure is not written again, and nothing
        is where each try has its price: then whoever calls asks again."""
        failure: Agent0Error | None = None
        left, heard = list(self._members), _Heard(request.listen) if request.listen else None
        while member := self._chosen(left, failure is None):
            left.remove(member)
            member.calls, begun_s = member.calls + 1, monotonic()
            try:
                await self._join(member)
                turn = await member.server.generate(replace(request, listen=heard))
            except (DependencyError, TransientError) as error:
                member.fail(begun_s, error)
                if not self._patient or (heard and heard.any):
                    raise
                failure = error
            else:
                member.succeed()
                self.name = turn.model
                return turn
            finally:
                member.calls -= 1
        assert failure  # noqa: S101 - the first is always asked
        raise failure

    async def check(self, rank: int = 0) -> Profile:
        """Find out what the servers do, as ``OpenAIServer.check``; some may be away, as long as one is not.

        Raises:
            RefusedError: two of them differ in the model, in what comes back of a turn, or in their kind.
        """
        checks = (member.server.check(rank) for member in self._members)
        results = await asyncio.gather(*checks, return_exceptions=True)
        profiles = [(m, r) for m, r in zip(self._members, results, strict=True) if isinstance(r, Profile)]
        for result in results:
            if isinstance(result, BaseException) and not (profiles and isinstance(result, DependencyError)):
                raise result
        for member, profile in profiles:
            self._copy(member.address, profile)
            member.joined = True
        present = [member.address for member, _ in profiles]
        away = tuple(member.address for member in self._members if member.address not in present)
        return replace(profiles[0][1], away=away)

    async def close(self) -> None:
        """Close the connections."""
        for member in self._members:
            await member.server.close()

    async def _join(self, member: _Member) -> None:
        """Raises ModelChangedError where ``member``, which was not asked yet or failed, is no copy of the others."""
        async with member.entry:
            if member.joined:
                return
            try:
                await member.server.profile(lambda profile: self._copy(member.address, profile))
            except RefusedError as error:
                if self._first is None:
                    raise
                fix = "Serve the model of the others there, or take it out of run.<role>.base_url."
                raise ModelChangedError(f"A copy of the model at {member.address}", error.why, fix) from error
            member.joined = True

    def _copy(self, address: str, profile: Profile) -> Profile:
        """``profile`` of the server at ``address``; raises RefusedError where it is not as the first one's was."""
        first_address, first = self._first = self._first or (address, profile)
        if _essence(profile) != _essence(first):
            why = f"{first_address} has {_essence(first)}, {address} has {_essence(profile)}."
            raise RefusedError("These servers are no copies of one another.", why, "Correct run.<role>.base_url.")
        return profile

    def _chosen(self, left: Sequence[_Member], first: bool) -> _Member | None:
        """The one of ``left`` that is asked next: of those that work, that with the fewest calls. The ``first`` try of
        a call is made even where none does."""
        by_calls, time_s = sorted(left, key=lambda member: member.calls), monotonic()
        working = (member for member in by_calls if not member.breaker.wait_s(time_s))
        return next(working, by_calls[0] if first and by_calls else None)


class _Heard:
    """Passes on what is written, and notes whether anything was."""

    def __init__(self, listen: Listen) -> None:
        self._listen, self.any = listen, False

    def __call__(self, text: str) -> None:
        self.any = self.any or bool(text)
        self._listen(text)


def opened(
    actor: ActorConfig, artifacts: Artifacts | None, *, shared: Path | None, patient: bool = True
) -> OpenAIServer | OpenAIServers:
    """The model of ``actor`` on its server, or on its servers; raises as ``OpenAIServer``."""
    several = len(actor.addresses) > 1
    return (OpenAIServers if several else OpenAIServer)(actor, artifacts, shared=shared, patient=patient)


def _essence(profile: Profile) -> tuple[str, str, str]:
    return profile.model, profile.capture, profile.kind
