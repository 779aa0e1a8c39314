"""Part of the rim: a person talks with a student, which has its tools; outside of any run, and recorded nowhere."""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace

from agent0.assembly.log.access import open_log
from agent0.assembly.models.student_conditions import open_conditions
from agent0.assembly.routing.billing import check_routing, vendor_billing
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.events.values import Artifact, Task, ToolUse
from agent0.infra.gateway.streaming import streamed
from agent0.ports.models import GenerateRequest, Generation, Model, ToolSpec
from agent0.rollout.attempt import AttemptProgress
from agent0.rollout.student import Conditions, begin, follow_up, specs_of, step, student_prompt
from agent0.rollout.tool_prompts import whole_call
from agent0.settings import Settings

Hear = Callable[[str], None]
"""Takes each piece of a turn's text, in order."""


class HeardModel(Model):
    """A model whose turns are heard while they are written, where its provider streams. What it writes behind a block
    that calls one of ``tools`` is not heard, since a student's turn ends there; ``cuts``: nor waited for."""

    def __init__(self, model: Model, tools: Sequence[ToolSpec], form: str, hear: Hear, *, cuts: bool) -> None:
        self.name, self._model, self._tools, self._form = model.name, model, tools, form
        self._hear, self._cuts = hear, cuts

    async def generate(self, request: GenerateRequest) -> Generation:
        """As the model does."""
        text = heard = ""
        async with aclosing(streamed(self._model, request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generation):
                    return piece
                text += piece
                call = whole_call(text, self._tools, self._form)
                self._hear((call or text)[len(heard) :])
                heard = max(heard, call or text, key=len)
                if call and self._cuts:
                    return Generation(call, model=self.name)
        raise AssertionError("a turn ends with itself")

    async def close(self) -> None:
        """It is not ours to close."""


class ChatSession:
    """One conversation: each question is an attempt of the student that has what was said before in front of it."""

    def __init__(self, conditions: Conditions, domain: str) -> None:
        self.student = conditions.config
        self._conditions, self._domain = conditions, domain
        self._prompt = student_prompt(self.student, domain)
        self._progress: AttemptProgress | None = None

    async def ask(self, question: str, report: Callable[[Sequence[ToolUse]], None]) -> AttemptProgress:
        """Let the student reply; ``report`` takes the calls of each turn once they are made. A reply that fails or is
        cancelled leaves the conversation as it was, its question included.

        Raises:
            Agent0Error: as ``agent0.rollout.student.step``.
        """
        task = Task(question=question, domain=self._domain, family="open", level=1, canonical=question)
        options = self._prompt, self.student, self._conditions.tools
        progress = follow_up(self._progress, task, *options) if self._progress else begin(task, *options)
        while progress.end is None:
            calls = len(progress.called)
            progress = await step(progress, self._conditions)
            report(progress.called[calls:])
        self._progress = progress
        return progress

    def reset(self) -> None:
        """Begin a new conversation with an empty work folder."""
        self._progress = None


@asynccontextmanager
async def open_chat(
    settings: Settings, adapter: Artifact | None, hear: Hear, say: Callable[[str], None]
) -> AsyncIterator[ChatSession]:
    """A conversation with the student of ``settings`` and ``adapter``, whose text is passed to ``hear`` and whose calls
    run in a sandbox under the policy of now; ``say`` takes a notice.

    Raises:
        ConfigError: there is no such tool, or a model has to be named.
        DependencyError: its model, package or key is not here, or no sandbox passes its self-test.
    """
    settings = _for_one(await with_policy(settings))
    check_routing(settings)
    student = settings.run.student
    billed = bool(vendor_billing(student, settings.router))
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True)) if billed else None
        conditions = await open_conditions(settings, student, adapter, "chat", stack, say, log)
        student = conditions.config
        specs = specs_of(student.tools, conditions.tools) if student.uses_tools else ()
        heard = HeardModel(conditions.model, specs, student.form, hear, cuts=not billed)
        conditions = replace(conditions, model=heard, seed=secrets.randbits(31))
        yield ChatSession(conditions, settings.run.curriculum.domains[0])


def _for_one(settings: Settings) -> Settings:
    """``settings`` for one conversation."""
    changes = {
        "run": settings.run.model_copy(update={"student": settings.run.student.model_copy(update={"parallel": 1})}),
        "sandbox": settings.sandbox.model_copy(update={"workers": 1}),
    }
    return settings.model_copy(update=changes)
