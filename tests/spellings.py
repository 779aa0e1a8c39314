"""Tasks as language models spell them: 200 replies of a teacher, each with the task that it holds or None.

A style is a function from a task to replies. Which reply holds a task is said by the style, never by a reader.
"""

import json
import pprint
from collections.abc import Callable, Iterator

Fields = dict[str, str]
Spelling = tuple[str, Fields | None]
"""A reply, and the fields of the task in it; None where a reader must refuse."""

TASKS: tuple[Fields, ...] = (
    {
        "question": "How many primes are below 100?",
        "program": "from sympy import primerange\n\nprint(len(list(primerange(100))))",
    },
    {
        "question": "Ann's set is {2, 3, 5}, and \\(x \\times 7 \\neq 4\\). What is its sum?",
        "program": "d = {'a': 2, \"b\": 3}  # { \"question\n\nfor k in d:\n\tpass\nprint(sum(d.values()), sep='\\n')",
    },
    {
        "question": "Which is prime?\nA) 4\nB) 5",
        "program": "print('B') # // no comment, [1,], {2: 3,}",
        "answer_kind": "choice",
    },
    {
        "question": "Wie viele Zeichen hat 'Größe', true or false: \"数\" counts?",
        "program": 'words = """a\nb"""\nprint(len(words) // 3)',
    },
)
OTHER: Fields = {"question": "What is the cube of 12, less 5?", "program": "print(12**3 - 5)"}
STYLES: list[Callable[[Fields], Iterator[Spelling]]] = []


def style(found: Callable[[Fields], Iterator[Spelling]]) -> Callable[[Fields], Iterator[Spelling]]:
    """Register a style."""
    STYLES.append(found)
    return found


def raw(text: str, quote: str = '"') -> str:
    """``text`` between quotes with its line breaks and tabs as they are."""
    return quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


def spelled(task: Fields, quote: str = '"', end: str = "", write: Callable[[str, str], str] = raw) -> str:
    """``task`` as an object whose strings ``write`` writes, with ``end`` after the last."""
    lines = [f"  {quote}{key}{quote}: {write(text, quote)}" for key, text in task.items()]
    return "{\n" + ",\n".join(lines) + end + "\n}"


def fenced(text: str, language: str = "json") -> str:
    """``text`` in a code fence."""
    return f"```{language}\n{text}\n```"


@style
def prose(task: Fields) -> Iterator[Spelling]:
    """Words around the object; braces of LaTeX and of Python among them."""
    body = json.dumps(task)
    yield f"Sure! Here is an exercise of level 3:\n\n{body}", task
    yield f"{body}\n\nThis takes three steps: $\\frac{{1}}{{2}}$, then {{x}} and {{1, 2}}.", task
    yield f"The set \\{{1, 2\\}} gave me the idea.\n{json.dumps(task, indent=2)}\nHope this helps :-}}{{", task
    yield f"I cannot write one about {task['question'][:20]}", None


@style
def fences(task: Fields) -> Iterator[Spelling]:
    """Fences with and without a language, in prose, and one that does not end."""
    body = json.dumps(task, ensure_ascii=False)
    for language in ("json", "", "JSON", "python", "json5"):
        yield f"Here you are.\n\n{fenced(body, language)}\n\nEnjoy!", task
    yield f"```json {body} ```", task
    yield f"~~~\n{body}\n~~~\n", task


@style
def several(task: Fields) -> Iterator[Spelling]:
    """More than one object: one task among others is read, two different tasks are not."""
    body, other = json.dumps(task), json.dumps(OTHER)
    plan = '{"plan": ["choose", "compute"], "level": 3}'
    yield f"{plan}\n{body}", task
    yield f"{body}\n{fenced(plan)}", task
    yield f"{body}\n\nOnce more:\n{json.dumps(task, indent=1)}", task
    yield f'The format is {{"question": "...", "program": "..."}}, so:\n{body}', task
    yield f"{body}\n{other}", None
    yield f"First draft: {other}\nBetter: {body}", None
    yield f"[{body}, {other}]", None
    yield json.dumps({"task": task, "alternative": OTHER}), None
    yield json.dumps({**task, "example": OTHER}), None
    yield json.dumps(task)[:-1] + f', "question": {json.dumps(OTHER["question"])}}}', None


@style
def newlines(task: Fields) -> Iterator[Spelling]:
    """Line breaks and tabs inside of strings as they are."""
    body = spelled(task)
    yield body, task
    yield f"Of course.\n{fenced(body)}\nDone.", task
    yield spelled(task, "'"), task


@style
def python(task: Fields) -> Iterator[Spelling]:
    """Dictionaries as Python prints them, and as programs write them."""
    yield repr(task), task
    yield fenced(pprint.pformat(task, width=10_000), "python"), task
    yield repr({**task, "checked": True, "answer_kind": task.get("answer_kind"), "hint": None}), task
    yield "task = " + repr({**task, "easy": False}), task
    if '"""' not in task["program"]:
        program = task["program"].replace("\\", "\\\\")
        yield (
            f'{{"question": {task["question"]!r}, "program": """\n{program}\n""", "answer_kind": None}}',
            {key: task[key] for key in ("question", "program")},
        )


@style
def commas(task: Fields) -> Iterator[Spelling]:
    """Trailing commas."""
    yield spelled(task, end=","), task
    yield spelled(task, "'", end=" , "), task
    yield spelled(task, end=', "tags": ["a", "b",], "more": {"c": 3,}, '), task
    yield spelled(task, end=",,"), None


@style
def comments(task: Fields) -> Iterator[Spelling]:
    """Comments of JavaScript and Python, and keys without quotes."""
    body = spelled(task)
    yield "{ // the task\n" + body[1:], task
    yield body[:-1] + "# that is all, isn't it?\n}", task
    yield '{ /* question: "none" */' + body[1:], task
    yield "{" + ", ".join(f"{key}: {json.dumps(text)}" for key, text in task.items()) + "}", task


@style
def smart(task: Fields) -> Iterator[Spelling]:
    """Typographic quotes around strings; inside of plain ones they are text."""

    def typeset(text: str, quote: str) -> str:
        return f"“{text}”".replace("\\", "\\\\")

    body = spelled(task, "?", write=typeset).replace("?question?", "“question”").replace("?program?", "“program”")
    yield body.replace("?answer_kind?", "“answer_kind”"), task
    quoted = {**task, "question": f"“{task['question']}” \u2013 what\u2019s that?"}
    yield json.dumps(quoted, ensure_ascii=False), quoted
    yield spelled(quoted, "?", write=typeset).replace("?question?", "“question”").replace("?", "“"), None


@style
def thoughts(task: Fields) -> Iterator[Spelling]:
    """Thoughts before the task, drafts in them; thoughts that do not end."""
    body, other = json.dumps(task), json.dumps(OTHER)
    yield f"<think>\nPerhaps {other}? No, too easy.\n</think>\n\n{body}", task
    yield f"Perhaps {other}? No.\n</think>\n{fenced(body)}", task
    yield f"<thinking>{other[:30]}</thinking>{body}", task
    yield f"<think>Perhaps {body}", None
    yield f"<think>{body}</think>", None


@style
def calls(task: Fields) -> Iterator[Spelling]:
    """The task as the arguments of a call, or in an object or a list of its own."""
    wrapped = {"name": "propose_task", "arguments": task}
    yield f"<tool_call>\n{json.dumps(wrapped)}\n</tool_call>", task
    yield f"I propose:\n{fenced(json.dumps(wrapped, indent=2))}\n", task
    yield json.dumps({"function": {"name": "submit", "arguments": json.dumps(task)}}), task
    yield json.dumps({"task": task}), task
    yield f"[{json.dumps(task)}]", task
    yield f"<tool_call>\n{json.dumps(wrapped)[:-1]}", task
    yield f"<tool_call>\n{json.dumps(wrapped)[:-3]}", None
    yield f'{{"name": "python", "arguments": {{"code": {json.dumps(task["program"])}}}}}', None


def tagged(
    task: Fields, call: str = '<invoke name="propose">', tag: str = "parameter name", end: str = "</invoke>"
) -> str:
    """``task`` as a call whose arguments stand in tags."""
    quote, kind = ('"', tag.partition(" ")[0]) if " " in tag else ("", tag)
    inner = "\n".join(f"<{tag}={quote}{key}{quote}>{text}</{kind}>" for key, text in task.items())
    return f"{call}\n{inner}\n{end}"


@style
def forms_of_calls(task: Fields) -> Iterator[Spelling]:
    """The task as the arguments of a call, in the forms that models are taught for their tools."""
    body = json.dumps(task)
    call, other = (json.dumps({"name": "propose", "arguments": one}) for one in (task, OTHER))
    xml = tagged(task, "<function=propose>", "parameter", "</function>")
    yield f"<tool_call>\n{xml}\n</tool_call>", task
    yield f"Here is one.\n{xml}", task
    yield tagged(task), task
    yield f"<function_calls>\n{tagged(task)}\n</function_calls>", task
    keyed = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{text}</arg_value>\n" for key, text in task.items())
    yield f"<tool_call>propose\n{keyed}</tool_call>", task
    yield f"[TOOL_CALLS][{call}]", task
    yield f"[TOOL_CALLS]propose[ARGS]{body}", task
    yield f"<|python_tag|>{json.dumps({'name': 'propose', 'parameters': task})}<|eom_id|>", task
    channel = "<|channel|>{} to=functions.propose <|constrain|>json<|message|>{}<|call|>"
    yield (
        "<|channel|>analysis<|message|>One of primes?<|end|><|start|>assistant" + channel.format("commentary", body),
        task,
    )
    deepseek = "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>"
    yield f"{deepseek}propose<\uff5ctool\u2581sep\uff5c>{body}<\uff5ctool\u2581call\u2581end\uff5c>", task
    kimi = "<|tool_call_begin|>functions.propose:0<|tool_call_argument_begin|>"
    yield f"<|tool_calls_section_begin|>{kimi}{body}<|tool_call_end|><|tool_calls_section_end|>", task
    arguments = ", ".join(f"{key}={text!r}" for key, text in task.items())
    yield f"[propose({arguments})]", task
    yield f"Thought: one of primes.\nAction: propose\nAction Input: {body}", task
    yield f"[tool_call]\n{call}\n[/tool_call]", task
    yield f"{call}\n{call}", task
    yield f"<tool_call>{call}</tool_call>\nI hope you like {task['question']}", task
    shown = {**OTHER, "program": f"print({f'<tool_call>{call}</tool_call>'!r})"}
    yield json.dumps(shown), shown
    yield f"<tool_call>{call}</tool_call><tool_call>{other}</tool_call>", None
    yield f"<tool_call>{call}</tool_call>\n{json.dumps(OTHER)}", None
    yield f"**Question:** {OTHER['question']}\n\n{tagged(task)}", None
    yield f"<think>Perhaps <tool_call>{call}</tool_call></think>", None
    yield f"<tool_call>{call}</tool_call><tool_call>{other[:-9]}", None
    yield tagged(task).replace("</invoke>", '<parameter name="question">And twice that?</parameter></invoke>'), None
    yield f"[TOOL_CALLS]propose[ARGS]{body[:-9]}", None
    yield f"<tool_call>{json.dumps({'name': 'propose', 'arguments': {**task, 'question': 7}})}</tool_call>", None


@style
def fields(task: Fields) -> Iterator[Spelling]:
    """Labels instead of an object: Markdown, YAML-like, tags."""
    code, kind = fenced(task["program"], "python"), task.get("answer_kind", "")
    more = f"\n\n**Answer kind:** {kind}" if kind else ""
    yield f"Here it is:\n\n**Question:** {task['question']}\n\n**Program:**\n{code}{more}\n\nHave fun with it.", task
    yield f"## Question\n\n{task['question']}\n{more}\n\n## Program\n\n{code}\n", task
    yield f"Question: {task['question']}\nLevel: 3\nProgram:\n{code}\n{more.strip()}", task
    block = {key: "\n".join(f"  {line}" if line else "" for line in task[key].split("\n")) for key in task}
    lines = [f"{key}: |\n{text}" for key, text in block.items()]
    yield "domain: math\n" + "\n".join(lines), task
    yield fenced("\n".join(lines), "yaml"), task
    yield "\n".join(f"<{key}>\n{text}\n</{key}>" for key, text in task.items()), task
    yield f"**Question:** {task['question']}\n\n**Program:**\n{code}\n\n**Question:** And twice that?", None
    yield f"**Question:** {task['question']}\n\nOr perhaps its square.\n\n**Program:**\n{code}", None
    yield f"**Question:** {task['question']}\nProgram:\n{code}\nor\n{fenced('print(1)', 'python')}", None
    if "\n" in task["program"]:
        yield f"question: {task['question']}\nprogram: {task['program']}", None


@style
def cut(task: Fields) -> Iterator[Spelling]:
    """Replies that end in the middle."""
    body = json.dumps(task)
    for share in (0.3, 0.6, 0.9):
        yield f"Here is one:\n{body[: int(len(body) * share)]}", None
    yield fenced(body[:-1]), None
    yield f"{body}\n{body[:40]}", None
    yield f"[{body}, ", None
    yield f'{{"tasks": [{body}', None
    yield f"**Question:** {task['question']}\n\n**Program:**\n```python\n{task['program']}", None


@style
def broken(task: Fields) -> Iterator[Spelling]:
    """What could be read in two ways, or not at all."""
    yield f'{{"question": "She said "go", then {task["program"][:5]}", "program": "print(1)"}}', None
    yield '{"question": "What is $3 \\times 4$?", "program": "print(12)"}', None
    yield '{"question": "Is $a \\neq b$?", "program": "print(12)"}', None
    yield '{"question": "What is \\(3 + 4\\)?", "program": "print(7)"}', None
    yield spelled({**task, "question": 'She wrote """.'}, write=lambda text, quote: f"{quote}{text}{quote}"), None
    yield json.dumps(task).replace('"program": "', '"program": f"', 1), None


@style
def odd(task: Fields) -> Iterator[Spelling]:
    """What stands beside a task, and what only resembles one."""
    body, question = json.dumps(task), task["question"]
    yield body + "}", task
    yield f"\ufeff{body}<|im_end|>", task
    yield json.dumps({key.title(): text for key, text in task.items()}), task
    yield spelled(task, "'", end=", 'tags': None").replace("\n", "\r\n"), task
    yield json.dumps({**task, "program": fenced(task["program"], "python")}), task
    yield f"**Question:** {question}\n\n{fenced(body)}", task
    yield f"**Question:** {OTHER['question']}\n\n{fenced(body)}", None
    yield json.dumps({**task, "Question": OTHER["question"]}), None
    yield json.dumps(body), None
    yield body.replace('"', "&quot;"), None
    yield f"question={question!r}, program={task['program']!r}", None
    yield f"Problem: {question}\nCode: {task['program']}", None
    yield f"question: {OTHER['question']}\nprogram: print(12**3 -", None
    yield f'question: "{OTHER["question"]}"\nprogram: "{OTHER["program"]}"', OTHER


def spellings() -> list[tuple[str, str, Fields | None]]:
    """Every spelling of every task: (style, reply, fields or None), those that are the same for all tasks once."""
    found = {text: (make.__name__, text, read) for make in STYLES for task in TASKS for text, read in make(task)}
    return list(found.values())
