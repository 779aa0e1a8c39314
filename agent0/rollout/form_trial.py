"""Tries in which form a model writes its calls: some never write the one that their chat template teaches."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from agent0.events.values import Task
from agent0.ports.models import GenerateRequest, Model, Sampling
from agent0.rollout.parsing import parse_turn
from agent0.rollout.student import begin, specs_of, student_prompt
from agent0.rollout.tool_prompts import FENCE, TEMPLATE, delivered, requested, stops, toolbox, until_call
from agent0.settings import StudentConfig

PROBES = (
    "A baker fills 7 trays with 24 rolls each. He sells 95 rolls in the morning and half of the rest in the afternoon, "
    "rounded down. How many rolls are left?",
    "A shop sells 37 boxes of 48 pens a day. How many pens does it sell in 19 days?",
    "Lena saves 12 dollars a week for 9 weeks. She buys a bag for 45 dollars and 3 books for 8 dollars each. How many "
    "dollars does she have left?",
    "A train has 8 cars of 64 seats. Three quarters of the seats are taken. At the next stop 57 people get off and 31 "
    "get on. How many seats are free?",
    "What is the remainder when 3**200 is divided by 1009?",
)
"""Mostly problems in words: on bare arithmetic some models call a tool that they do not call on these."""
MOST_TOKENS = 256
"""Tokens of a probe's reply: a call comes early or not at all."""


@dataclass(frozen=True)
class FormTrial:
    """The ``form`` in which a model is to call tools, and of ``PROBES`` those that it answered with a call, by form."""

    form: str
    calls: Mapping[str, int]

    def __str__(self) -> str:
        """One sentence for a person."""
        counts = ", ".join(f"{calls} of {len(PROBES)} in form {form}" for form, calls in self.calls.items())
        return f"The student called a tool in {counts}: run.student.tool_form is {self.form}."


async def tried_form(model: Model, config: StudentConfig) -> FormTrial:
    """Ask ``model`` the probes in the form of its template, and where it misses a call, with blocks of code.

    Raises:
        DependencyError, TransientError: from the model.
    """
    calls = {TEMPLATE: await _called(model, config.model_copy(update={"tool_form": TEMPLATE}))}
    if calls[TEMPLATE] == len(PROBES):
        return FormTrial(TEMPLATE, calls)
    calls[FENCE] = await _called(model, config.model_copy(update={"tool_form": FENCE}))
    return FormTrial(FENCE if calls[FENCE] >= max(calls[TEMPLATE], 1) else TEMPLATE, calls)


async def _called(model: Model, config: StudentConfig) -> int:
    """How many probes are answered with a call that can be made."""
    return sum(await asyncio.gather(*(_calls(model, config, question) for question in PROBES)))


async def _calls(model: Model, config: StudentConfig, question: str) -> bool:
    specs, form = specs_of(config.tools), config.form
    task = Task(question=question, domain="math", family="open", level=1, canonical=question)
    turns = begin(task, student_prompt(config, task.domain), config).transcript
    tokens = min(config.max_tokens, MOST_TOKENS)
    sampling = Sampling(0.0, 1.0, tokens, 0, stop=stops(form))
    written = await model.generate(GenerateRequest(delivered(turns, form), sampling, requested(specs, form)))
    parsed = parse_turn(until_call(written, specs, form).text, toolbox(specs), form=form)
    return any(call.name in config.tools and not call.error for call in parsed.calls)
