"""Training examples for the built-in model that does tasks of several steps: a file is written, run, changed and run
again, each step's answer is submitted, and a change that does not run is undone.

Tool calls are made by the tools themselves; only what Python prints is the family's own answer, or the error of a line
that was cut short. A test compares both with the real sandbox.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent0.chat_format import format_call
from agent0.events.values import ToolCall, ToolState, Turn
from agent0.infra.tiny.examples import NOT_TAUGHT, STYLE, Phase, TrainingExample
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.tasks.families import Family, Params, families
from agent0.tasks.families.ledger import PEOPLE
from agent0.tasks.splits import split_key, split_of
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace

LONG = ("chain", "revision", "ledger")
LONG_TOOLS = ("python", "write_file", "read_file", "edit_file", "rollback", "submit_answer")
_PYTHON = '\n{"name": "python", "arguments": {"code": "exec(open(\''
_WRITE = '\n{"name": "write_file", "arguments": {"path": "'
_EDIT = '\n{"name": "edit_file", "arguments": {"path": "'
_END = "}}\n</tool_call>"
_ASKED = ("sum(h.values()))", "max(h,key=h.get))")
LONG_MARKUP = (
    *("<tool_call>", "</tool_call>", "\\boxed{", "\n</tool_response>\n<tool_response>\n"),
    *(f'{_WRITE}values.py", "content": "a=', f'{_WRITE}f.py", "content": "def f(x): return '),
    *(f'{_EDIT}values.py", "old": "#", "new": "', f'{_EDIT}f.py", "old": "', '", "new": "'),
    *(f"{_PYTHON}values.py').read());print(", f"{_PYTHON}f.py').read());print(f("),
    *(f"{_PYTHON}f.py').read());print(sum(map(f,range(", f"{_PYTHON}f.py').read());print(f(f("),
    *('\n{"name": "submit_answer", "arguments": {"answer": "', '\n{"name": "rollback", "arguments": {"call": '),
    *(f'", "subgoal": {number}{_END}\n' for number in (1, 2)),
    *PEOPLE,
    *(f'{_WRITE}coins.py", "content": "h={{\'', "h={'", "': ", ", '"),
    *(f'{_EDIT}coins.py", "old": "#", "new": "{line}' for line in ("h['", "n=h['")),
    *("n=h['", "h['", "']-=", "']//2;h['", "']-=n;h['", "']+=n", ";h['", "']+=", "'],h['", "']=h['", "']"),
    *(f"{_PYTHON}coins.py').read());print({fragment}" for fragment in ("h['", *(f'{a}"{_END}' for a in _ASKED))),
    f"'])\"{_END}",
    *(f"{text}{_END}{after}" for text in ("", '"', '\\n#"', '}\\n#"', '\\n"') for after in ("", "\n")),
    *(f'{brackets}"{_END}' for brackets in (")", "))", ")))")),
)
LONG_PIECES = "|".join(
    (
        r"Keep files[^\n]*|Take these steps[^\n.]*\.|Keep a file[^\n.]*\.|One after another[^\n.]*\.",
        r"\n?Step [1-6]: |\n[1-6]\. |\.? First, |\.? Then, |\.? Finally, |(?i:let )| be ",
        r"(?i:write) f\(x\) = | to f\.py and report f\(|(?i:set) its factor to |(?i:set) its term to ",
        r" and report f\(|(?i:reduce) f modulo |(?i:test) f\(|\) > | and report True or False\.?",
        r"(?i:report) the sum of f\(0\) to f\(|(?i:report) f\(f\(",
        r"(?i:start) with coins: |; count all|(?i:give) half of |(?i:give) |(?i:swap) |(?i:name) who has most",
        r"'s(?: to | and |; count )?|(?:, rounded down)?; count | of |, '?|': |h=\{'| (?=h=\{|h\['|n=h\[')",
        r"'\](?:-=n;h\['|-=|//2;h\['|\+=n|\+=|,h\['|=h\[')?|n=h\['|;?h\['|" + "|".join(PEOPLE),
        r"--- \w+\.py\n\+\+\+ \w+\.py\n@@ [-+,0-9 ]+ @@\n|wrote \w+\.py: \d lines?, |[0-9]+ bytes",
        r"The answer to step \d is recorded\. Still open: [0-9, ]+\.|The work folder is as it was after call ",
        r"\. changed: \w+\.py|def f\(x\): return |\n#|Traceback [^\n]*\n[^\n]*\n +exec[^;]*;print\(",
        r'\n +\^+\n  File "<string>", line \d\n    |\n +\^\nSyntaxError: invalid syntax',
        r" ?[A-Z]?[a-z]+|[0-9]{1,2}|[^\sA-Za-z0-9]|\s",
    )
)
"""How texts are cut: what is always said alike is a piece of its own."""


def long_example(level: int, phase: Phase, rng: random.Random) -> TrainingExample:
    """Make one conversation on a fresh training task. In a share ``phase.tool`` of them a change is cut short first, so
    that it does not run, and is undone; of these, only what follows the mistake is taught."""
    entry = families(long=True)[rng.choice(LONG)]
    params = entry.sample(level, rng)
    while split_of(split_key(entry, params)) != "train":
        params = entry.sample(level, rng)
    question = entry.render(params, rng)
    turns = _calls(entry, params)
    changed = [index for index, calls in enumerate(turns) if any(call.name == "edit_file" for call in calls)]
    slip = rng.choice(changed) if changed and rng.random() < phase.tool else None
    return conversation(entry, params, question, turns, slip)


def _calls(entry: Family, params: Params) -> list[list[ToolCall]]:
    """The calls of each turn: those of the family's script without the mistake that it makes."""
    assert entry.script  # noqa: S101 - a long family has one
    calls = [call for turn in entry.script(params) for call in parse_turn(turn).calls]
    back = next(index for index, call in enumerate(calls) if call.name == "rollback")
    turns = [calls[:2], [next(call for call in calls if call.name == "submit_answer")]]
    for call in calls[back + 2 :]:
        if call.name == "submit_answer":
            turns.append([])
        turns[-1].append(call)
    return turns


def conversation(
    entry: Family, params: Params, question: str, turns: Sequence[Sequence[ToolCall]], slip: int | None = None
) -> TrainingExample:
    """What is said of a task whose calls are ``turns``, in the tools' own words; ``slip`` is the turn whose change is
    cut short first."""
    assert entry.steps  # noqa: S101 - a long family has them
    answers = [step.answer for step in entry.steps(params)]
    printed = _ScriptedSandbox(list(answers))
    work = Workspace(printed, LONG_TOOLS, subgoals=[None] * len(answers))
    messages = [*render(prompt(STYLE, entry.domain, "student", long=True), {"question": question})]
    for index, calls in enumerate(turns):
        if index == slip:
            before = len(work.journal) + len(calls) - 2
            printed.cut = True
            messages += _call_turns([*calls[:-2], _cut(calls[-2]), calls[-1]], work, NOT_TAUGHT)
            printed.cut = False
            calls = [ToolCall(name="rollback", arguments={"call": before}), *calls[-2:]]
        messages += _call_turns(calls, work)
    return (*messages, Turn(role="assistant", content=f"\\boxed{{{answers[-1]}}}"))


def _cut(edit: ToolCall) -> ToolCall:
    """``edit`` without the last number or name of the line that it writes, or the pair that two holdings become."""
    new = re.sub(r"(\d+|[a-f]|n|h\['\w+'\],h\['\w+'\])(\n#)?$", r"\2", edit.arguments["new"])
    return edit.model_copy(update={"arguments": {**edit.arguments, "new": new}})


def _call_turns(calls: Sequence[ToolCall], work: Workspace, name: str = "") -> list[Turn]:
    """The turn that makes ``calls``, and what each tool answers."""
    turn = Turn(role="assistant", content="\n".join(format_call(c.name, c.arguments) for c in calls), name=name)
    return [turn, *(Turn(role="tool", name=call.name, content=_answer(call, work)) for call in calls)]


def _answer(call: ToolCall, work: Workspace) -> str:
    """What the tool answers; nothing here waits, so no event loop is needed."""
    coroutine = call_tool(call, work)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return str(done.value.output)
    raise AssertionError("a tool waited")


@dataclass
class _ScriptedSandbox:
    """Stands for the sandbox: prints ``answers``, one a call; where a line was ``cut`` short, Python's error."""

    answers: list[str]
    cut: bool = False

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Print the next answer, or the error."""
        out, error = ("", _error(call)) if self.cut else (f"{self.answers.pop(0)}\n", "")
        state = ToolState.ERROR if self.cut else ToolState.OK
        size = len(out) + len(error)
        return SandboxResult(
            state, int(self.cut), out, error, 0.0, 0.0, 0.0, "none", "none", dict(call.files), output_bytes=size
        )

    async def close(self) -> None:
        """Nothing is open."""


def _error(call: SandboxCall) -> str:
    """What Python says of the line that ends in an operator, in the only file there is."""
    (text,) = call.files.values()
    number, line = next(
        (n, line) for n, line in enumerate(text.decode().split("\n"), 1) if line.endswith(("+", "-", "*", "%", "="))
    )
    read = call.code.partition(";")[0]
    return (
        f'Traceback (most recent call last):\n  File "main.py", line 1, in <module>\n    {call.code}\n'
        f'    {"^" * len(read)}\n  File "<string>", line {number}\n    {line}\n    {" " * len(line)}^\n'
        "SyntaxError: invalid syntax\n"
    )
