"""One message to its end: run control, look before you call, the call, its effects, its failure.

Failure becomes data exactly once, and here: this is where the catch-all is.
"""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Literal

from agent0.errors import Agent0Error, DependencyError, TransientError, bare_url, clean_text
from agent0.events.alarms import EventRedacted, ReactionFailed, ReactionRetried, ReactionTried
from agent0.events.base import Event, Recorded, effect_id, record
from agent0.infra.bus.deliveries import Advisory, Delivery, HandBackError, Reaction, RetryError, Work
from agent0.infra.bus.dependency_wait import Outages, Probe
from agent0.infra.bus.group_commit import Committer
from agent0.infra.bus.run_views import BrokenViewError, NewerRunError, Views, newer_event
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import ANY_TIME
from agent0.infra.storage.files import require_room
from agent0.infra.telemetry.json_logs import about
from agent0.registry import is_defect, raised_in
from agent0.settings import Settings

LONGEST_DELAY_S = 60.0
TRACE_CHARS = 4096
LEAVE_S = 2.0
HAND_BACK_S = 1.0
"""Until a message that cannot be handled now may come again."""


class Reactions:
    """What happens to a message, for every handler of this process."""

    def __init__(
        self,
        log: Log,
        views: Views,
        committer: Committer,
        ports: Mapping[str, object],
        settings: Settings,
        code_rev: str,
        clock: Callable[[], datetime],
        fatal: Callable[[str], None],
        lacks_for: Callable[[Work], Awaitable[bool]],
    ) -> None:
        """``lacks_for``: whether this process lacks something for what came by a handler's own consumer."""
        self._log, self._views, self._committer, self._ports = log, views, committer, ports
        self._settings, self._code_rev, self._clock = settings.handlers, code_rev, clock
        self._home, self._half_window = settings.home, settings.nats.duplicate_window_s / 2
        self._running: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._outages = Outages(self.report, settings.handlers.retry_delay_s, clock)
        self._fatal, self._lacks_for = fatal, lacks_for
        self._alone = asyncio.Lock()
        self._in_hand: dict[int, tuple[str, Recorded, float]] = {}
        """Of each message that is being handled its handler, its event, and since when."""

    def busy(self) -> bool:
        """Whether a message is being handled."""
        return bool(self._in_hand)

    def longest(self) -> str:
        """What has been in hand for longest, of which run, and the seconds so far; empty where nothing is."""
        handler, of, since = min(self._in_hand.values(), key=lambda entry: entry[2], default=("", None, 0.0))
        what = of and next((name for name in (of.attempt, of.task) if name != "-"), of.type)
        return f"{handler} of {what} in {of.run}, {monotonic() - since:.0f} s" if of else ""

    def stop_waiting(self) -> None:
        """Give back what only waits for a dependency, now and from now on."""
        self._outages.close()

    async def handle(self, handler: Reaction, delivery: Delivery) -> None:
        """React, store, acknowledge; or give back for another try. Raises nothing but cancellation."""
        of = delivery.recorded
        with about(run=of.run, task=of.task, attempt=of.attempt, event=of.seq, handler=handler.name):
            await self._handle(handler, delivery)

    async def _handle(self, handler: Reaction, delivery: Delivery) -> None:
        self._in_hand[id(delivery)] = handler.name, delivery.recorded, monotonic()
        try:
            with delivery.working():
                await self._route(handler, delivery.recorded, delivery.recorded, delivery)
            await delivery.ack()
        except asyncio.CancelledError:
            await delivery.nack(0)
            raise
        except (HandBackError, NewerRunError):
            await delivery.nack(HAND_BACK_S)
        except BrokenViewError as error:
            self._fatal(str(error))
        except Exception as error:
            if not isinstance(error, RetryError):
                logger = logging.getLogger(__name__)  # a traceback is recorded with the failure that no try mends
                logger.warning("%s will be tried again: %s", delivery.recorded.subject, error)
            if not await self._beyond_us(handler, delivery, error):
                delay_s = self._settings.retry_delay_s * 2.0 ** min(delivery.deliveries - 1, 32)
                await delivery.nack(min(delay_s, LONGEST_DELAY_S))
        finally:
            del self._in_hand[id(delivery)]

    async def give_up(self, advisory: Advisory) -> None:
        """Make a dead letter of a message that the server gave up at a bound on its deliveries."""
        cause = await self._log.message(advisory.event_seq)
        if isinstance(cause.event, EventRedacted):
            return
        view = await self._views.get(cause.run)
        await view.reach_end()
        if view.over or (cause.id, advisory.handler) in view.done:
            return
        what = ("CrashLoop", f"Every process that took it ended without an answer ({advisory.deliveries} deliveries).")
        failed = self._failed(advisory.handler, cause, cause, advisory.deliveries, what, "", waits=True)
        await self._committer.commit([failed])

    async def _beyond_us(self, handler: Reaction, delivery: Delivery, error: Exception) -> bool:
        """Whether a message that cannot even be brought to its handler was set aside for a person."""
        again = isinstance(error, RetryError | TransientError | DependencyError)
        if again or delivery.deliveries < self._settings.max_deliver:
            return False
        cause, tries = delivery.recorded, delivery.deliveries
        failed = self._failed(handler.name, cause, cause, tries, _what(error), _trace(error), waits=True)
        try:
            await self._committer.commit([failed])
        except Agent0Error:
            return False
        await delivery.ack()
        return True

    # --- run control ----------------------------------------------------------------------------------------------

    async def _route(self, handler: Reaction, cause: Recorded, trigger: Recorded, delivery: Delivery) -> None:
        view = await self._views.get(cause.run)
        view.require_known()
        await view.reach(cause.seq)
        if isinstance(cause.event, ReactionRetried) and cause.event.failed_handler == handler.name:
            retried = await self._log.message(cause.event.cause_seq)
            if delivery.of_run != (retried.type in ANY_TIME):
                await self._once(Work(handler, view, retried, trigger, delivery))
        if cause.type in handler.events:
            await self._once(Work(handler, view, cause, trigger, delivery))

    # --- one reaction ---------------------------------------------------------------------------------------------

    async def _once(self, work: Work) -> None:
        """Never two reactions of one handler to one cause at a time in this process."""
        while work.key in self._running:
            await asyncio.shield(self._running[work.key])
        ours = self._running[work.key] = asyncio.get_running_loop().create_future()
        try:
            await self._react(work)
        finally:
            del self._running[work.key]
            ours.set_result(None)

    async def _react(self, work: Work) -> None:
        view, delivery = work.view, work.delivery
        if work.key in view.done:
            return
        self._require_running(work)
        if not delivery.of_run and await self._lacks_for(work):
            raise HandBackError
        old = self._clock() - delivery.stored_at > timedelta(seconds=self._half_window)
        if (old or delivery.deliveries > 1) and await self._stored(work):
            return
        if view.crashed[work.key] >= self._settings.max_crashes:
            await self._set_aside(work)
            return
        began = monotonic()
        effects = await self._call(work)
        if effects is None:
            self._require_running(work)
        if effects and not (monotonic() - began > self._half_window and await self._stored(work)):
            try:
                await self._commit(work, effects)
            except asyncio.CancelledError:
                await self._leave(work)
                raise
            view.done.add(work.key)

    def _require_running(self, work: Work) -> None:
        """Raises HandBackError where the run stands, and goes on some day: the message is kept until then."""
        if not work.should_run and not work.view.over:
            raise HandBackError

    async def _set_aside(self, work: Work) -> None:
        """A reaction that ends its process again and again waits for a person; the others go on."""
        cause, name, times = work.cause, work.handler.name, work.view.crashed[work.key]
        about = "" if cause.task == "-" else f" of {cause.task if cause.attempt == '-' else cause.attempt}"
        why = f"Its process ended during each of the last {times} tries of {name} at {cause.type}{about}."
        do = f"Find out why, then `agent0 failures retry {name}-{cause.seq}`, or go on without it: drop."
        what = ("CrashLoop", f"{why} {do}")
        failed = self._failed(name, cause, work.trigger, work.delivery.deliveries, what, "", waits=True)
        await self._committer.commit([failed])
        work.view.done.add(work.key)

    async def _stored(self, work: Work) -> bool:
        """Look in the log, not in the server's window, which forgets."""
        await work.view.reach_end()
        return work.key in work.view.done

    async def _commit(self, work: Work, effects: Sequence[Recorded]) -> None:
        try:
            await self._committer.commit(effects)
        except Agent0Error as error:
            await self._committer.commit([self._failure(work, error)])

    async def _call(self, work: Work) -> list[Recorded] | None:
        """Effects as they will be stored; None where the run was stopped meanwhile."""
        view, task = work.view, asyncio.current_task()
        assert task is not None  # noqa: S101 - always inside a task
        probe = Probe(self._outages, work.handler.name, view, work.cause)
        view.tasks.add(task)
        try:
            while work.should_run:
                try:
                    effects = await self._attempt(work)
                    await probe.came_through()
                    return effects
                except DependencyError as error:
                    await probe.wait(error, None if work.of_the_end else view.stopped)
            return None
        except asyncio.CancelledError:
            if task not in view.ended:
                raise
            task.uncancel()
            return []
        finally:
            view.tasks.discard(task)
            view.ended.discard(task)
            probe.end()

    async def _attempt(self, work: Work) -> list[Recorded]:
        """One call. An error becomes another delivery, or in the end the one effect of this reaction."""
        handler, cause = work.handler, work.cause
        try:
            if not work.of_control:
                require_room(self._home)
            async with self._turn(work):
                events = await handler(cause, await work.view.state_at(cause.seq), self._ports)
            return [
                self._record(e, cause, effect_id(cause.id, handler.name, n), handler.name) for n, e in enumerate(events)
            ]
        except DependencyError:
            raise
        except Exception as error:
            if newer_event(error):
                raise HandBackError from error
            hopeless = not error.kind.retryable if isinstance(error, Agent0Error) else is_defect(error)
            if hopeless or work.view.failed[work.key] + 1 >= self._settings.max_deliver:
                return [self._failure(work, error)]
            await self._note(work, "failed", error)
            logging.getLogger(__name__).info("%s will be tried again: %s", cause.subject, error)
            raise RetryError(str(error)) from error

    @contextlib.asynccontextmanager
    async def _turn(self, work: Work) -> AsyncIterator[None]:
        """Where processes ended during this reaction: one such at a time, and its beginning is in the log, so that it
        stands apart from those that were merely under way in the same process."""
        if not work.suspect:
            yield
            return
        async with self._alone:
            try:
                await self._note(work, "begun")
                yield
            except (DependencyError, asyncio.CancelledError):
                await self._leave(work)
                raise

    async def _leave(self, work: Work) -> None:
        """Record that a reaction whose beginning is in the log ended, and its process did not."""
        if work.noted:
            with contextlib.suppress(Agent0Error, TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self._note(work, "left")

    async def _note(
        self, work: Work, outcome: Literal["begun", "failed", "left"], error: Exception | None = None
    ) -> None:
        """Record a try. What is cancelled meanwhile ends after that: a beginning without its end counts as a crash."""
        cause, ended = work.cause, work.noted and outcome != "begun"
        name, message = _what(error) if error else ("", "")
        tried = ReactionTried(
            cause_id=cause.id,
            cause_seq=cause.seq,
            cause_type=cause.type,
            tried_handler=work.handler.name,
            outcome=outcome,
            noted=ended,
            error=name,
            message=message,
        )
        work.noted = outcome == "begun"
        (seq,) = await _then_cancelled(self._committer.commit([self._record(tried, cause)]))
        await work.view.reach(seq)

    def _record(self, event: Event, cause: Recorded, id: str = "", handler: str = "") -> Recorded:
        return record(
            event, run=cause.run, time=self._clock(), id=id, cause=cause.id, handler=handler, code_rev=self._code_rev
        )

    async def report(self, event: Event, cause: Recorded) -> None:
        """Store an event because of a cause."""
        await self._committer.commit([self._record(event, cause)])

    # --- dead letters ---------------------------------------------------------------------------------------------

    def _failure(self, work: Work, error: Exception) -> Recorded:
        deliveries = work.delivery.deliveries
        return self._failed(work.handler.name, work.cause, work.trigger, deliveries, _what(error), _trace(error))

    def _failed(
        self,
        handler: str,
        cause: Recorded,
        trigger: Recorded,
        deliveries: int,
        what: tuple[str, str],
        trace: str,
        waits: bool = False,
    ) -> Recorded:
        event = ReactionFailed(
            failure=f"{handler}-{cause.seq}",
            cause_id=cause.id,
            cause_seq=cause.seq,
            cause_type=cause.type,
            cause_task=getattr(cause.event, "cause_task", cause.task),  # of a drop: what was dropped
            cause_attempt=getattr(cause.event, "cause_attempt", cause.attempt),
            failed_handler=handler,
            error=what[0],
            message=what[1],
            traceback=trace,
            deliveries=deliveries,
            waits=waits,
        )
        # A retry that fails again is another fact; the same failure delivered twice is not.
        id = effect_id(f"{trigger.id}/{cause.id}", handler, -1)
        return self._record(event, cause, id, handler)


async def _then_cancelled(stored: Coroutine[Any, Any, list[int]]) -> list[int]:
    """Wait for ``stored``; where this task is cancelled meanwhile, it ends after that, or after ``LEAVE_S``."""
    task = asyncio.create_task(stored)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=LEAVE_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _what(error: Exception) -> tuple[str, str]:
    """Its class and what it says, as it may be recorded: without user and password in an address. Where the code of a
    user's file raised it, which."""
    message, whose = clean_text(bare_url(str(error))), raised_in(error)
    message = f"{message.rstrip('.')} ({whose})".lstrip() if whose else message
    return type(error).__name__, message[:TRACE_CHARS]


def _trace(error: Exception) -> str:
    """Where it was raised, as it may be recorded; the end of it where it is long."""
    return clean_text(bare_url("".join(traceback.format_exception(error))))[-TRACE_CHARS:]
