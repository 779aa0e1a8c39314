"""The teacher's thought: how it is asked for a task, and how its answer is read."""

import json
import unicodedata
from dataclasses import dataclass

from agent0.families import families
from agent0.heldout import task_of
from agent0.ports import GenerateRequest, Model, Sampling
from agent0.prompts import Prompt, render
from agent0.settings import ActorConfig
from agent0.trajectories import assemble, total_usage
from events.base import sha256
from events.values import Artifact, Task, Trajectory, Turn, Usage

LONGEST_QUESTION = 2_000
LONGEST_PROGRAM = 8_000

OPEN_FAMILY = "open"
"""The family of free questions, which bring a checking program of their own."""


@dataclass(frozen=True)
class Draft:
    """What the teacher wrote. ``proposal`` is None where it is no task; ``problem`` says why."""

    text: str
    proposal: Task | None
    problem: str
    trajectory: Trajectory | None
    usage: Usage
    model: str


def request_turns(prompt: Prompt, domain: str, family: str, level: int) -> tuple[Turn, ...]:
    """The conversation that asks for one task."""
    return render(prompt, {"domain": domain, "family": family, "level": level})


async def propose(
    model: Model,
    prompt: Prompt,
    *,
    domain: str,
    family: str,
    level: int,
    config: ActorConfig,
    seed: int,
    adapter: Artifact | None = None,
    group: str = "",
) -> Draft:
    """Ask ``model`` for one task. Text that is no task is a draft without a proposal, never an exception.

    Raises:
        DependencyError, TransientError: from the model.
    """
    sampling = Sampling(config.temperature, config.top_p, config.max_tokens, seed)
    turns = request_turns(prompt, domain, family, level)
    written = await model.generate(GenerateRequest(turns, sampling, adapter=adapter, group=group))
    proposal, problem = read_proposal(written.text, domain, family, level)
    trajectory, _ = assemble([written])
    return Draft(written.text, proposal, problem, trajectory, total_usage([written]), written.model)


def read_proposal(text: str, domain: str, family: str, level: int) -> tuple[Task | None, str]:
    """The task in ``text``, or None and why not.

    A JSON object with ``question`` (and ``program``) or the bare question. A question that a family can read becomes
    that family's task, ``family`` and those of ``domain`` tried first: level, parameters and identity are what the
    family says. Any other question needs a program to be an open task at ``level``.
    """
    found = _written(text)
    if isinstance(found, str):
        return None, found
    question, program = found
    problem = _unfit(question, LONGEST_QUESTION, "question") or _unfit(program, LONGEST_PROGRAM, "program")
    if problem:
        return None, problem
    if task := _of_family(question, domain, family):
        return task, ""
    if not program:
        return None, "no family reads this question, and it brings no program"
    return Task(
        question=question,
        domain=domain,
        family=OPEN_FAMILY,
        level=level,
        canonical=f"{OPEN_FAMILY} {normal(question)}",
        program=program,
    ), ""


def normal(question: str) -> str:
    """A question without case, spacing and compatibility forms; long ones by their sha256."""
    plain = " ".join(unicodedata.normalize("NFKC", question).casefold().split())
    return plain if len(plain) <= 200 else sha256(plain)


def _written(text: str) -> tuple[str, str] | str:
    """Question and program, or what is wrong."""
    body = text.strip()
    if body.startswith("```"):
        body = body.removesuffix("```").partition("\n")[2].strip()
    if not body:
        return "nothing was written"
    if not body.startswith("{"):
        return body, ""
    if len(body) > LONGEST_QUESTION + 2 * LONGEST_PROGRAM:
        return "the JSON is too long"
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return "broken JSON"
    question, program = value.get("question"), value.get("program", "")
    if not isinstance(question, str) or not isinstance(program, str):
        return "question and program must be text"
    return question.strip(), program.strip("\n")


def _unfit(text: str, longest: int, what: str) -> str:
    """What is wrong with ``text``; control, format, private and surrogate characters are not for questions."""
    if len(text) > longest:
        return f"the {what} is longer than {longest} characters"
    if any(unicodedata.category(c).startswith("C") and c not in "\n\t" for c in text):
        return f"control characters in the {what}"
    return "" if text or what == "program" else f"no {what}"


def _of_family(question: str, domain: str, family: str) -> Task | None:
    """``question`` as a task of a family: the one asked for, else one of its domain, else any."""
    order = sorted(families().values(), key=lambda f: (f.name != family, f.domain != domain, f.name))
    return next((task for entry in order if (task := task_of(entry, question))), None)
