"""A chain of models behind a strategy: it is called again after every answer, and each of its decisions is an event."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

from agent0.errors import Agent0Error, NotFoundError, RefusedError
from agent0.events.base import sha256
from agent0.events.models import CallRouted
from agent0.events.values import RouteAnswer, RouteOption, RouteStep
from agent0.infra.gateway.billed import Books, Priced
from agent0.infra.gateway.gateway import ELSEWHERE, Gateway, Link, LocalLink, labelled
from agent0.infra.gateway.measure import Measure
from agent0.infra.gateway.records import request_json
from agent0.infra.gateway.streaming import heard, with_held_text
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.routing.confidence import probability
from agent0.routing.strategies import Answer, Option, Question, RoutingStep, Rules, StrategyEntry
from agent0.settings import CalibratorConfig

MOST_STEPS = 64


@dataclass(frozen=True)
class Plan:
    """A strategy with its numbers, for one role. ``right``: how often each model is right, where that was measured;
    ``calibrators``: what makes a probability of a model's features; ``measure``: what these are."""

    role: str
    entry: StrategyEntry
    rules: Rules
    right: Mapping[str, float]
    calibrators: Mapping[str, CalibratorConfig] = field(default_factory=dict)
    measure: Measure = field(default_factory=Measure)


class StrategyGateway(Gateway):
    """The ``Model`` port in front of models that a strategy chooses from. Most know only at the end which answer they
    give: who listens hears nothing before. Others give the first one that they get, which is heard as a gateway's."""

    def __init__(self, links: Sequence[Link], inner: Model, plan: Plan, books: Books, hold: int = 0) -> None:
        super().__init__(links, inner, hold)
        self.plan, self._books, self.streams = plan, books, plan.entry.streams
        self._spent: dict[str, int] = {}

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn, by the model that the strategy chooses.

        Raises:
            RefusedError: the strategy finds nothing to ask. Otherwise as ``Gateway.generate``.
        """
        request, text = with_held_text(heard(self, request), self._hold)
        talk = await _RoutedRequest.begun(self, replace(request, margins=True))
        while len(talk.steps) < MOST_STEPS:
            talk.question = replace(talk.question, spent=self._spent[request.group] - talk.cost)
            step = self.plan.entry.decide(talk.question)
            talk.steps.append(step)
            if not step.ask:
                written = await self._finish(talk, step)
                if text:
                    text.require_whole(written.text)
                return written
            await self._ask(talk, step)
        raise RefusedError(f"The strategy {self.plan.entry.name} does not end.", f"It took {MOST_STEPS} steps.")

    async def _ask(self, talk: "_RoutedRequest", step: RoutingStep) -> None:
        link = next(candidate for candidate in self._links if candidate.id == step.ask)
        sent = talk.request if link is self._links[0] else replace(talk.request, adapter=None)
        sent = replace(sent, listen=None) if step.aside else sent
        run, most = sent.group, link.most(sent) or 0
        self._spent[run] += most  # questions at once see what the others may still cost
        try:
            priced = await link.ask(sent, talk.route, step.reason)
        except ELSEWHERE as error:
            talk.refuse(step, error)
            return
        finally:
            self._spent[run] -= most
        self._spent[run] += priced.cost or 0
        free = link.model if isinstance(link, LocalLink) else None
        measure, written = self.plan.measure, priced.answer
        calls = free is not None and measure.calls(written.text)
        talk.take(link.id, priced, await measure.of(None if calls else free, sent, written), calls)

    async def _finish(self, talk: "_RoutedRequest", step: RoutingStep) -> Generation:
        if step.give not in talk.written:
            raise RefusedError(f"The strategy {self.plan.entry.name} finds no model to ask.", step.reason)
        await self._note(talk, step)
        written = talk.written[step.give]
        return written if step.give == self._links[0].id else labelled(written, step.reason)

    async def _note(self, talk: "_RoutedRequest", last: RoutingStep) -> None:
        plan = self.plan
        event = CallRouted(
            task=talk.request.task or "-",
            attempt=talk.request.attempt or "-",
            route=talk.route,
            role=plan.role,
            strategy=plan.entry.name,
            rules={name: getattr(plan.rules, name) for name in plan.entry.reads},
            options=tuple(
                RouteOption(
                    model=option.model, cost=option.cost, right=option.right, refused=talk.refused.get(option.model, "")
                )
                for option in talk.options
            ),
            answers=tuple(talk.route_answer(answer) for answer in talk.question.answers),
            steps=tuple(RouteStep(ask=step.ask, give=step.give, reason=step.reason) for step in talk.steps),
            chosen=last.give,
            draw=talk.question.draw,
        )
        noted, log = [self._books.stamp(talk.request.group or "outside", event)], self._books.log

        async def stored() -> None:
            await log.append(noted, queued=True)

        await log.queue.put(stored)

    def options(self, request: GenerateRequest) -> tuple[Option, ...]:
        """The models that ``request`` may be asked of, each with the most that it may cost."""
        return tuple(Option(link.id, link.most(request), self.plan.right.get(link.id)) for link in self._links)

    async def question(self, request: GenerateRequest) -> Question:
        """The question as it stands before anybody was asked."""
        draw = int(sha256(request_json(request))[:8], 16) / 2**32
        return Question(self.options(request), (), self.plan.rules, await self._before(request.group), draw)

    async def _before(self, run: str) -> int:
        """What earlier questions of this role cost in ``run``, in nano-dollars, by the log at the first look, and what
        those under way may still cost."""
        if run not in self._spent:
            logged = await self._logged(run) if run else 0
            self._spent.setdefault(run, logged)  # another question may have looked meanwhile
        return self._spent[run]

    async def _logged(self, run: str) -> int:
        spent = 0
        try:
            async with aclosing(self._books.log.read(run, (CallRouted.__name__,))) as routed:  # type: ignore[type-var]
                async for recorded in routed:
                    event = recorded.event
                    if isinstance(event, CallRouted) and event.role == self.plan.role:
                        spent += sum(answer.cost or 0 for answer in event.answers)
        except NotFoundError:  # in an archive
            pass
        return spent


class _RoutedRequest:
    """One request on its way through a strategy."""

    def __init__(self, plan: Plan, request: GenerateRequest, question: Question) -> None:
        self.request, self.question, self.options, self.route = request, question, question.options, uuid4().hex
        self._plan = plan
        self.steps: list[RoutingStep] = []
        self.written: dict[str, Generation] = {}
        self.features: dict[str, dict[str, float]] = {}
        self.refused: dict[str, str] = {}
        self._first: Agent0Error | None = None

    @classmethod
    async def begun(cls, gateway: StrategyGateway, request: GenerateRequest) -> "_RoutedRequest":
        return cls(gateway.plan, request, await gateway.question(request))

    @property
    def cost(self) -> int:
        """What its answers cost so far, in nano-dollars."""
        return sum(answer.cost or 0 for answer in self.question.answers)

    def take(self, model: str, priced: Priced, features: dict[str, float], calls: bool) -> None:
        """Take an answer in, with its features, and whether it ``calls`` a tool at no cost."""
        self.written[model], self.features[model] = priced.answer, features
        key = self._plan.measure.key(priced.answer.text)
        sure = probability(features, self._plan.calibrators.get(model))
        answer = Answer(model, sha256(key)[:16], sure, priced.cost, calls)
        self.question = self.question.answered(answer)

    def refuse(self, step: RoutingStep, error: Agent0Error) -> None:
        """Go on without a model that failed; raises the first failure where none is left."""
        self._first = self._first or error
        self.refused[step.ask] = type(error).__name__
        self.question = self.question.without(step.ask)
        if not self.question.options and not self.question.answers:
            raise self._first

    def route_answer(self, answer: Answer) -> RouteAnswer:
        """An answer as the event has it."""
        plan = self._plan.calibrators.get(answer.model)
        return RouteAnswer(
            model=answer.model,
            key=answer.key,
            confidence=answer.confidence,
            features=self.features[answer.model],
            cost=answer.cost,
            calibrator=plan.version if plan else "",
            calls=answer.calls,
        )
