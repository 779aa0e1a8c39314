"""The student's rollout: generate a turn, call tools, read their output, answer. One attempt is ``begin``, ``step`` by
``step``, ``conclude``, in one go or with a restart between any two steps.

Nothing here acts except through the model, the tools and the store of work folders, and no right answer is known here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent0.errors import ConfigError, TransientError
from agent0.events.values import Artifact, Task, ToolCall, ToolResult, ToolState, ToolUse, Turn
from agent0.grading.normal_form import same
from agent0.ports.models import GenerateRequest, Model, Sampling, ToolSpec
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt import AttemptProgress, AttemptResult, generations, next_turn
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.confidence.signals import SELF_CRITIQUE, signals
from agent0.rollout.parsing import ParsedTurn, as_action, as_message, parse_turn
from agent0.rollout.prompts import Prompt, prompt, render
from agent0.rollout.tool_prompts import FORMS, delivered, requested, result_turn, shown, stops, toolbox, until_call
from agent0.rollout.trajectories import assemble, least_capture, mean_logprob, total_usage
from agent0.rollout.workspace_store import Keeper, StoredFolder, opened
from agent0.settings import PolicyConfig, StudentConfig
from agent0.tasks.seeds import derive_seed
from agent0.tools import control_names, tools
from agent0.tools.cache import ToolCache
from agent0.tools.calling import call_tool
from agent0.tools.definition import Tool
from agent0.tools.episode import record_of
from agent0.tools.snapshots import as_answer
from agent0.tools.workspace import Done, Workspace
from agent0.turns.folder_text import folder_text
from agent0.turns.observations import observation, plain_output

_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR)
"""States that say nothing of the student's code: the attempt is made again rather than scored."""


@dataclass(frozen=True)
class Conditions:
    """What stays the same throughout an attempt.

    ``artifacts`` hold its work folders, ``start`` is the manifest of the one it begins with (None: an empty one),
    ``by_files``: its answer is the one it leaves, ``by_steps``: the record of its steps. ``prefill`` begins its first
    turn only, ``temperature`` None is the configured one, ``tools`` None are the registered ones. ``joint``: a server
    may draw its turns with those of other attempts, which is recorded. ``messages``: the tool that a turn without a
    call is, ``user``: the model that reads them (None: its own, no adapter). ``task``, ``attempt``: subject tokens.
    """

    model: Model
    config: StudentConfig
    sandbox: Sandbox
    artifacts: Artifacts
    seed: int
    adapter: Artifact | None = None
    group: str = ""
    prefill: str = ""
    temperature: float | None = None
    cache: ToolCache | None = None
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    web: Web | None = None
    tools: Mapping[str, Tool] | None = None
    start: Artifact | None = None
    by_files: bool = False
    by_steps: bool = False
    messages: str = ""
    user: Model | None = None
    joint: bool = False
    task: str = ""
    attempt: str = ""


def student_prompt(config: StudentConfig, domain: str, *, long: bool = False) -> Prompt:
    """Load what the student of ``config`` reads of tasks of ``domain``: without tools, nothing of tools.

    Raises:
        NotFoundError: there is no such style.
    """
    return prompt(config.prompts, domain, "student", long=long, tools=config.uses_tools)


def student_of(config: StudentConfig, task: Task) -> StudentConfig:
    """The student of ``config`` as it attempts ``task``: with those of its tools that a row of a file names."""
    if not task.row or not task.row.tools:
        return config
    return config.model_copy(update={"tools": tuple(name for name in config.tools if name in task.row.tools)})


def start_folder(task: Task) -> Artifact | None:
    """The work folder that ``task`` asks to change; None where it asks for none."""
    return task.row.repository.tree if task.row and task.row.repository else None


async def solve(task: Task, prompt: Prompt, conditions: Conditions) -> AttemptResult:
    """Attempt ``task`` from beginning to end; errors as for ``step``."""
    progress = begin_in_folder(task, prompt, conditions)
    while progress.end is None:
        progress = await step(progress, conditions)
    return conclude(progress)


def begin_in_folder(task: Task, prompt: Prompt, conditions: Conditions) -> AttemptProgress:
    """The attempt at ``task`` under ``conditions`` before its first turn, in its work folder."""
    shown = folder_text(StoredFolder(conditions.start, conditions.artifacts), conditions.config.shown_files)
    return begin(task, prompt, conditions.config, conditions.tools, shown).but(work=conditions.start)


def begin(
    task: Task,
    prompt: Prompt,
    config: StudentConfig,
    available: Mapping[str, Tool] | None = None,
    folder: str = "",
) -> AttemptProgress:
    """Start an attempt: returns its progress before the first turn; of the task only question, subgoals and a passage
    that the student is to read are looked at.

    ``available`` are the tools there are, None: the registered ones; ``folder`` is what is read of its work folder.
    """
    passage = task.row.passage if task.row else ""
    question = "\n\n".join(filter(None, (passage, task.question, folder)))
    turns = render(prompt, {"question": question, "domain": task.domain})
    specs = specs_of(config.tools, available) if config.max_calls and config.form in FORMS else ()
    factor = config.long_factor if task.kind == "long" else 1
    return AttemptProgress(
        transcript=shown(turns, specs, config.form),
        prompt=prompt.version,
        turns=config.max_turns * factor,
        calls=config.max_calls * factor,
        seconds=config.tool_seconds,
        characters=config.tool_output,
        subgoals=(None,) * len(task.subgoals),
        question=task.question,
    )


def follow_up(
    progress: AttemptProgress,
    task: Task,
    prompt: Prompt,
    config: StudentConfig,
    available: Mapping[str, Tool] | None = None,
) -> AttemptProgress:
    """Start an attempt at ``task`` as the next question of the conversation ``progress``: its turns, calls and work
    folder stay, budgets are those of a new attempt. The rest as for ``begin``."""
    fresh = begin(task, prompt, config, available)
    kept = ("written", "called", "work", "compacted", "exact_from")
    transcript = (*progress.transcript, fresh.transcript[-1])
    return fresh.but(transcript=transcript, **{name: getattr(progress, name) for name in kept})


async def step(progress: AttemptProgress, conditions: Conditions) -> AttemptProgress:
    """Run one more turn: generate, then carry out its tool calls; returns the new progress.

    Turn n draws from its own random stream, keyed (seed, n). A turn that calls tools is not final: a boxed answer
    beside a call was written before the call's output was known.

    Raises:
        DependencyError: model, sandbox or store is unavailable.
        TransientError: the sandbox failed through no fault of the code.
    """
    config, turn = conditions.config, len(progress.written)
    specs = specs_of(config.tools, conditions.tools) if config.max_calls else ()
    heat = config.temperature if conditions.temperature is None else conditions.temperature
    stop = stops(config.form) if specs else ()
    sampling = Sampling(heat, config.top_p, config.max_tokens, derive_seed(conditions.seed, "turn", turn), stop=stop)
    forced = "" if turn else conditions.prefill
    joint = config.choices if conditions.joint else 1
    request = GenerateRequest(
        (),
        sampling,
        requested(specs, config.form),
        conditions.adapter,
        forced,
        conditions.group,
        joint=joint,
        task=conditions.task,
        attempt=conditions.attempt,
        turn=turn,
    )
    progress, written = await next_turn(progress, request, conditions.model, config.form)
    written = until_call(written, specs, config.form)
    parsed = as_message(parse_turn(written.text, toolbox(specs), form=config.form), written, conditions.messages)
    errors = len(parsed.errors) + sum(bool(call.error) for call in parsed.calls)
    parsed = _reminded(parsed, specs, progress, conditions)
    progress = progress.wrote(written, errors)
    progress = await _react(progress, parsed, written.finish == "length", conditions)
    progress = progress if progress.end or progress.turns else progress.but(end="turn_limit")
    progress = _with_files(progress) if conditions.by_files else progress
    progress = _with_steps(progress) if conditions.by_steps else progress
    return await _criticised(progress, conditions) if config.self_critique else progress


def _reminded(
    parsed: ParsedTurn, specs: Sequence[ToolSpec], progress: AttemptProgress, conditions: Conditions
) -> ParsedTurn:
    by_steps, by_files, changed = conditions.by_steps, conditions.by_files, progress.work != conditions.start
    return as_action(parsed, specs, progress.transcript[-1], steps=by_steps, files=by_files, changed=changed)


def _with_files(progress: AttemptProgress) -> AttemptProgress:
    """Once an attempt has ended, the work folder that it leaves as its answer, however it ended."""
    if progress.end is None:
        return progress
    end = "answered" if progress.end == "no_answer" else progress.end
    return progress.but(answer=as_answer(progress.work), end=end)


def _with_steps(progress: AttemptProgress) -> AttemptProgress:
    """Once an attempt or its episode has ended, the record of its steps as its answer."""
    last = progress.called[-1].result.step if progress.called else None
    ended = last is not None and last.last
    if progress.end is None and not ended:
        return progress
    answer = record_of(progress.called)
    end = "answered" if ended or (answer and progress.end == "no_answer") else progress.end
    return progress.but(answer=answer, end=end if answer or end != "answered" else "no_answer")


async def _criticised(progress: AttemptProgress, conditions: Conditions) -> AttemptProgress:
    """Once an answer is given, its student's judgement of it."""
    if progress.answer is None or progress.end is None:
        return progress
    subject = (
        conditions.model,
        conditions.config,
        delivered(progress.transcript, conditions.config.form),
        progress.answer,
    )
    seed = derive_seed(conditions.seed, "critique")
    critique = await criticise(
        *subject,
        seed=seed,
        adapter=conditions.adapter,
        group=conditions.group,
        task=conditions.task,
        attempt=conditions.attempt,
    )
    return progress.but(critique=critique)


def specs_of(names: Sequence[str], available: Mapping[str, Tool] | None = None) -> tuple[ToolSpec, ...]:
    """Describe the named tools for a model, out of those ``available`` (None: the registered ones).

    Raises:
        ConfigError: there is no such tool.
    """
    available = tools() if available is None else available
    if unknown := [name for name in names if name not in available]:
        raise ConfigError(
            f"There is no tool named {unknown[0]}.", f"The tools are: {', '.join(available)}.", "Set run.student.tools."
        )
    return tuple(available[name].spec for name in names)


async def _react(progress: AttemptProgress, parsed: ParsedTurn, cut: bool, conditions: Conditions) -> AttemptProgress:
    """Take one turn in: its calls, or its answer, or what was wrong with it. ``cut``: it met the token limit."""
    if parsed.calls:
        if cut and parsed.calls[-1].error:
            return progress.but(end="length")
        if progress.over_budget:
            return progress.but(end="budget")
        return _with_errors(await _act(progress, parsed.calls, conditions), parsed)
    if parsed.answer is not None:
        return _answered(progress, parsed.answer)
    if cut or not (parsed.errors or parsed.reminder):
        return progress.but(end="length" if cut else "no_answer")
    return _with_errors(progress, parsed)


def _answered(progress: AttemptProgress, answer: str) -> AttemptProgress:
    """The final answer is the last subgoal's, too."""
    subgoals = (*progress.subgoals[:-1], answer) if progress.subgoals else ()
    return progress.but(answer=answer, end="answered", subgoals=subgoals)


def _with_errors(progress: AttemptProgress, parsed: ParsedTurn) -> AttemptProgress:
    """What was wrong with a turn as a whole, for the student to read."""
    if progress.end or not (parsed.errors or parsed.reminder):
        return progress
    unread = f"The turn could not be read whole: {'; '.join(parsed.errors)}."
    error = Turn(role="tool", content=unread if parsed.errors else parsed.reminder)
    return progress.but(transcript=(*progress.transcript, error))


async def _act(progress: AttemptProgress, calls: Sequence[ToolCall], conditions: Conditions) -> AttemptProgress:
    """Make ``calls`` in order, as far as the budget goes, until one of them is the final answer."""
    work = await _workspace(progress, conditions)
    keeper = Keeper(conditions.artifacts, progress.work, work.files)
    called, transcript = list(progress.called), list(progress.transcript)
    for number, call in enumerate(calls):
        before = len(work.journal)
        result = await call_tool(call, work) if number < progress.calls else _refused(call, work)
        for index in range(before, len(work.journal)):
            done = work.journal[index]
            if done.result.state in _NOBODYS_FAULT:
                why = f"{done.result.state.value}: {done.result.output[:200]}"
                raise TransientError("The sandbox did not run a tool call.", why)
            stored = await keeper.keep(done.files)
            work.journal[index] = replace(done, files=stored)
            result_kept = done.result.model_copy(update={"work": keeper.work})
            called.append(ToolUse(turn=len(progress.written) - 1, call=done.call, result=result_kept, inner=done.inner))
        transcript.append(result_turn(call.name, observation(result, called, work.characters), conditions.messages))
        if work.answer is not None or (result.step and result.step.last):
            break
    after = progress.but(
        called=tuple(called),
        transcript=tuple(transcript),
        calls=max(progress.calls - len(calls), 0),
        over_budget=len(calls) > progress.calls,
        seconds=work.seconds,
        characters=work.characters,
        subgoals=tuple(work.subgoals),
        work=keeper.work,
    )
    printed = _printed(work.journal[-1].result) if conditions.config.program_answers and work.journal else None
    if (answer := printed if work.answer is None else work.answer) is not None:
        return _answered(after, answer)
    return after.but(end="budget") if after.over_budget and not after.turns else after


async def _workspace(progress: AttemptProgress, conditions: Conditions) -> Workspace:
    """The world of the tools as the last turn left it."""
    journal = [
        Done(c.call, c.result, StoredFolder(c.result.work, conditions.artifacts), c.inner) for c in progress.called
    ]
    return Workspace(
        conditions.sandbox,
        conditions.config.tools,
        conditions.policy,
        tools=conditions.tools,
        web=conditions.web,
        cache=conditions.cache,
        seconds=progress.seconds,
        characters=progress.characters,
        files=await opened(progress.work, conditions.artifacts),
        start=StoredFolder(conditions.start, conditions.artifacts),
        journal=journal,
        subgoals=list(progress.subgoals),
        question=progress.question,
    )


def _printed(result: ToolResult) -> str | None:
    """The last line that a call printed, None where it failed or printed nothing."""
    return plain_output(result.output) or None if result.state is ToolState.OK else None


def _refused(call: ToolCall, work: Workspace) -> ToolResult:
    """A call beyond the budget: it is not made, and the student reads so."""
    reason = "the attempt's tool calls are used up"
    size = sum(map(len, work.files.values()))
    output = f"[refused: {reason}; give your answer now]"
    result = ToolResult(state=ToolState.REFUSED, output=output, reason=reason, files=len(work.files), file_bytes=size)
    work.journal.append(Done(call, result, work.files))
    return result


def conclude(progress: AttemptProgress) -> AttemptResult:
    """Turn an attempt that has ended into its result."""
    assert progress.end is not None  # noqa: S101 - the callers' loop
    written = generations(progress)
    control = control_names()  # a plan's steps are counted, and to give or try an answer proves nothing
    work = [c for c in progress.called if c.call.name not in control]
    good = [c for c in work if c.result.state is ToolState.OK]
    grounded = any(same(progress.answer, plain_output(c.result.output)) for c in good) if progress.answer else False
    trajectory, problem = assemble(written, progress.exact_from)
    values = signals(written, progress.answer, grounded=grounded, calls=len(work), calls_ok=len(good))
    if progress.critique and progress.critique.probability is not None:
        values[SELF_CRITIQUE] = progress.critique.probability
    return AttemptResult(
        answer=progress.answer,
        end=progress.end,
        turns=len(written),
        tool_calls=progress.called,
        tool_ok=len(good),
        parse_errors=progress.errors,
        grounded=grounded,
        transcript=progress.transcript,
        trajectory=trajectory,
        trajectory_problem=problem,
        capture=least_capture(written),
        seeds=tuple(generation.seed for generation in written)
        if any(generation.seed is not None for generation in written)
        else (),
        mean_logprob=mean_logprob(written),
        signals=values,
        usage=total_usage(written),
        model=written[-1].model,
        prompt=progress.prompt,
        subgoals=progress.subgoals,
        work=progress.work,
        critique=progress.critique,
        authors=dict(Counter(generation.author for generation in written if generation.author)),
        compacted=progress.compacted,
    )
