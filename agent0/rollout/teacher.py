"""The teacher's rollout: how it is prompted for a task, and how its answer is parsed."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from agent0.chat_format import LONGEST_ANSWER
from agent0.events.base import sha256
from agent0.events.values import Artifact, Capture, Passage, Task, Trajectory, Turn, Usage
from agent0.grading.answer_types import ANSWER_KIND
from agent0.ports.models import GenerateRequest, Model, Sampling
from agent0.rollout.prompts import Prompt, render
from agent0.rollout.proposals import (
    LONGEST_PROGRAM,
    LONGEST_QUESTION,
    ProposalParts,
    read_parts,
    task_schema,
    with_checks,
)
from agent0.rollout.trajectories import assemble, total_usage
from agent0.settings import ActorConfig, TeacherConfig
from agent0.tasks.curriculum.sampler import ANY_LEVEL
from agent0.tasks.document_questions import in_tags, read_document_question
from agent0.tasks.families import OPEN_FAMILY, families, task_length
from agent0.tasks.splits import task_of
from agent0.tasks.subgoals import LONGEST_STEP, MOST_STEPS, split
from agent0.tasks.topics import topic_of
from agent0.turns.programs import is_python

LONGEST_KEPT = 32_768
"""Characters of a reply that are recorded."""


@dataclass(frozen=True)
class Draft:
    """A teacher's answer to a request. ``proposal`` is None where it holds no task; ``problem`` says why."""

    text: str
    proposal: Task | None
    problem: str
    trajectory: Trajectory | None
    trajectory_problem: str
    capture: Capture
    usage: Usage
    model: str
    passage: Passage | None = None
    """What it was to ask about, with the sentence that holds the answer."""


def request_turns(prompt: Prompt, domain: str, family: str, level: int, seed: int = 0) -> tuple[Turn, ...]:
    """Render the conversation that asks the teacher for one task; at ``ANY_LEVEL`` the level is its own choice. A
    prompt may have a ``{topic}``, which ``seed`` draws."""
    values = {"domain": domain, "family": family, "level": "any" if level == ANY_LEVEL else level}
    return render(prompt, values | {"topic": topic_of(seed)})


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
    task: str = "",
    unchecked: bool = False,
    bias: Sequence[tuple[str, float]] = (),
) -> Draft:
    """Ask ``model`` for one task, written under ``bias`` (``Sampling.bias``). Text that is no task is a draft without a
    proposal, never an exception.

    Raises:
        DependencyError, TransientError: from the model.
    """
    turns = request_turns(prompt, domain, family, level, seed)
    schema = task_schema(long=task_length(family) == "long") if config.json_schema else None
    read = partial(read_proposal, domain=domain, family=family, level=level, unchecked=unchecked)
    return await _draft(
        model,
        GenerateRequest(turns, _sampling(config, seed, bias), adapter=adapter, group=group, schema=schema, task=task),
        read,
    )


async def propose_about(
    model: Model,
    prompt: Prompt,
    passage: Passage,
    text: str,
    *,
    shown: bool,
    config: ActorConfig,
    seed: int,
    adapter: Artifact | None = None,
    group: str = "",
    task: str = "",
    bias: Sequence[tuple[str, float]] = (),
) -> Draft:
    """Ask ``model`` for one question about ``passage``, whose characters are ``text``; ``shown``: the student reads
    them. The rest as for ``propose``."""
    turns = render(prompt, {"passage": in_tags(text)})
    quoted = passage

    def read(reply: str) -> tuple[Task | None, str]:
        nonlocal quoted
        proposal, quoted, problem = read_document_question(reply, passage, text, shown=shown)
        return proposal, problem

    request = GenerateRequest(turns, _sampling(config, seed, bias), adapter=adapter, group=group, task=task)
    return replace(await _draft(model, request, read), passage=quoted)


def _sampling(config: ActorConfig, seed: int, bias: Sequence[tuple[str, float]]) -> Sampling:
    return Sampling(config.temperature, config.top_p, config.max_tokens, seed, tuple(bias))


async def _draft(model: Model, request: GenerateRequest, read: Callable[[str], tuple[Task | None, str]]) -> Draft:
    """The model's reply, as ``read`` reads it unless it was cut off."""
    written = await model.generate(request)
    proposal, problem = read(written.text)
    if written.finish == "length":
        proposal, problem = None, f"the reply was cut off at {request.sampling.max_tokens} tokens"
    trajectory, why = assemble([written])
    usage = total_usage([written])
    return Draft(_kept(written.text), proposal, problem, trajectory, why, written.capture, usage, written.model)


def exploring_bias(config: TeacherConfig, slot: int, tasks: int) -> Sequence[tuple[str, float]]:
    """The bias that the request of ``slot`` is written under: ``config.bias`` on the first ``config.explore`` of an
    iteration's ``tasks``, none on the others."""
    return config.bias if slot < round(config.explore * tasks) else ()


def _kept(text: str) -> str:
    """What is recorded of a reply: its two ends where it is longer than ``LONGEST_KEPT``, always text that can be
    stored."""
    text = text.encode(errors="replace").decode()
    if len(text) <= LONGEST_KEPT:
        return text
    half = LONGEST_KEPT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def read_proposal(text: str, domain: str, family: str, level: int, unchecked: bool = False) -> tuple[Task | None, str]:
    """Parse a task from the teacher's text; returns (task, "") or (None, why not).

    An object with ``question`` (and ``program``, ``answer_kind``, ``tests`` or ``checker``; for a long task
    ``subgoals`` and ``programs``, one each), fields of these names, or the bare question
    (``agent0.rollout.proposals``). A question that a family can parse becomes that family's task, ``family`` and those
    of ``domain`` tried first: level, parameters and identity are the family's. Any other question needs a program to be
    an open task at ``level``, unless ``unchecked`` ones are allowed; a long one, which it is where ``family`` is long,
    needs steps, too, and has neither tests nor a checker.
    """
    parts = read_parts(text)
    if isinstance(parts, str):
        return None, parts
    if problem := _unfit_parts(parts):
        return None, problem
    if task := _of_family(parts.question, domain, family):
        return task, ""
    long = task_length(family) == "long"
    parts = replace(parts, tests="", checker="") if long else with_checks(parts)
    if isinstance(parts, str):
        return None, parts
    program = parts.program or (parts.programs[-1] if long and parts.programs else "")
    if not program and not unchecked:
        return None, "no family reads this question, and it brings no program"
    if any(not is_python(code) for code in (program, *parts.programs)):
        return None, "the program is no Python"
    task = Task(
        question=parts.question,
        domain=domain,
        family=OPEN_FAMILY,
        level=level,
        canonical=f"{OPEN_FAMILY} {normal(parts.question)}",
        program=program,
        params={ANSWER_KIND: parts.answer_kind} if parts.answer_kind else {},
        tests=parts.tests,
        checker=parts.checker,
    )
    return _with_steps(task, parts) if long else (task, "")


def _with_steps(task: Task, parts: ProposalParts) -> tuple[Task | None, str]:
    """``task`` as a long one, its steps as given or as the question names them."""
    steps = parts.subgoals or split(task.question)
    if not 2 <= len(steps) <= MOST_STEPS:
        return None, f"a long task has 2 to {MOST_STEPS} steps; {len(steps) or 'none'} are found here"
    if parts.programs and len(parts.programs) != len(steps):
        return None, f"there are {len(parts.programs)} programs for {len(steps)} steps"
    return task.model_copy(update={"kind": "long", "subgoals": steps, "programs": parts.programs}), ""


def normal(question: str) -> str:
    """Normalise a question for comparison: case, spacing and compatibility forms; long ones become their sha256."""
    plain = " ".join(unicodedata.normalize("NFKC", question).casefold().split())
    return plain if len(plain) <= 200 else sha256(plain)


def _unfit_parts(parts_written: ProposalParts) -> str:
    """What is wrong with the first part of a proposal that is not fit."""
    parts = [
        (parts_written.question, LONGEST_QUESTION, "question"),
        (parts_written.program, LONGEST_PROGRAM, "program"),
        (parts_written.tests or "-", LONGEST_PROGRAM, "tests"),
        (parts_written.checker or "-", LONGEST_PROGRAM, "checker"),
        (parts_written.answer or "-", LONGEST_ANSWER, "answer"),
        *((step, LONGEST_STEP, "subgoal") for step in parts_written.subgoals),
        *((program, LONGEST_PROGRAM, "program") for program in parts_written.programs),
    ]
    return next((problem for part in parts if (problem := _unfit(*part))), "")


def _unfit(text: str, longest: int, what: str) -> str:
    """What is wrong with ``text``; control, format, private and surrogate characters are not for questions."""
    if len(text) > longest:
        return f"the {what} is longer than {longest} characters"
    if any(unicodedata.category(c).startswith("C") and c not in "\n\t" for c in text):
        return f"control characters in the {what}"
    return "" if text or what == "program" else f"no {what}"


def _of_family(question: str, domain: str, family: str) -> Task | None:
    """``question`` as a task of a family: the one asked for, else one of its domain, else any."""
    order = sorted(families(long=None).values(), key=lambda f: (f.name != family, f.domain != domain, f.name))
    return next((task for entry in order if (task := task_of(entry, question))), None)
