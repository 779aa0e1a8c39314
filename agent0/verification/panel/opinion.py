"""Check: the opinion of a judge model, one vote among others; no vote where no model is configured.

Its reply is parsed strictly. Whatever an answer says to the judge, it can move this one vote and no other.
"""

import json
import re

from agent0.events.values import Task
from agent0.ports.models import GenerateRequest, Models, Sampling
from agent0.rollout.prompts import ANY, JUDGE, JUDGE_ROW, READER, prompt, render
from agent0.settings import JudgeConfig
from agent0.tasks.seeds import derive_seed
from agent0.verification.panel import Opinion, PanelCase, Reader, VoteAndReason, check
from agent0.verification.programs.source import holds_program, program_of

CHECK = "opinion"
LONGEST_ANSWER, FUNCTION_TOKENS = 2_000, 400
"""Characters of an answer that a judge reads; tokens that a function may take at least."""
_VERDICT = re.compile(r"verdict:\s*(right|wrong|unsure)\.?", re.IGNORECASE)
_MEANING = {"right": True, "wrong": False, "unsure": None}


@check(CHECK)
async def opinion(case: PanelCase) -> list[VoteAndReason]:
    """Ask the judge model about each different answer once; no vote without a judge."""
    ask = case.context.ask
    if ask is None:
        return [(None, "no judge model is configured")] * len(case.answers)
    opinions: dict[str, VoteAndReason] = {}
    for answer in case.answers:
        if answer is not None and answer not in opinions:
            opinions[answer] = await ask(case.task, answer)
    return [(None, "no answer") if answer is None else opinions[answer] for answer in case.answers]


def read_verdict(reply: str) -> VoteAndReason:
    """Parse the judge's reply; no vote unless the whole reply is a verdict."""
    match = _VERDICT.fullmatch(reply.strip())
    if match is None:
        return None, f"the judge's reply is no verdict: {reply.strip()[:80]!r}"
    return _MEANING[match[1].lower()], f"the judge says {match[1].lower()}"


def judge_opinion(models: Models, actor: JudgeConfig, seed: int, group: str, about: str = "") -> Opinion | None:
    """Make the function that asks the judge model of ``actor``; None where it names no provider.

    The same question samples with the same seed. ``group`` and ``about`` are the run and the task that it is asked in.
    """
    if not actor.provider:
        return None

    async def ask(task: Task, answer: str) -> VoteAndReason:
        quoted = json.dumps(answer[:LONGEST_ANSWER], ensure_ascii=False)
        reference = json.dumps(task.row.answer, ensure_ascii=False) if task.row else ""
        judge_prompt = prompt(actor.prompts, task.domain, JUDGE_ROW if task.row else JUDGE)
        values = {"question": task.question, "domain": task.domain, "answer": quoted, "reference": reference}
        turns = render(judge_prompt, values)
        drawn = derive_seed(seed, "judge", task.canonical, answer)
        sampling = Sampling(actor.temperature, actor.top_p, actor.max_tokens, drawn)
        reply = await models.open(actor).generate(GenerateRequest(turns, sampling, group=group, task=about))
        return read_verdict(reply.text)

    return ask


def docstring_reader(models: Models, actor: JudgeConfig, seed: int, group: str, about: str = "") -> Reader | None:
    """Make the function that has the judge model of ``actor`` write functions; the rest as for ``judge_opinion``."""
    if not actor.provider:
        return None

    async def read(signature: str, docstring: str) -> str:
        turns = render(prompt(actor.prompts, ANY, READER), {"signature": signature, "docstring": docstring})
        tokens = max(actor.max_tokens, FUNCTION_TOKENS)
        sampling = Sampling(actor.temperature, actor.top_p, tokens, derive_seed(seed, "reader", signature, docstring))
        reply = await models.open(actor).generate(GenerateRequest(turns, sampling, group=group, task=about))
        name = signature.removeprefix("def ").partition("(")[0]
        return program_of(reply.text, "", name) if holds_program(reply.text, name) else ""

    return read
