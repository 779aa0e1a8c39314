"""Calls as fenced blocks: what is a call, where its turn ends, and how its output comes back."""

import io
from contextlib import redirect_stdout
from typing import Literal

import pytest

from agent0.events.values import Turn
from agent0.ports.models import Generation, ToolSpec
from agent0.rollout.parsing import LONGEST, parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.student import specs_of
from agent0.rollout.tool_prompts import delivered, opening, requested, shown, stops, toolbox, until_call
from agent0.settings import StudentConfig
from agent0.turns.programs import with_last_value
from tests.test_student import Playback, play

SPECS = specs_of(("python", "sympy", "shell"))
FENCE = StudentConfig(max_tokens=200, tools=("python", "sympy"), tool_form="fence")


def calls_of(text: str) -> list[tuple[str, dict[str, object], bool]]:
    parsed = parse_turn(text, toolbox(SPECS), form="fence")
    return [(call.name, call.arguments, bool(call.error)) for call in parsed.calls]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("I compute.\n```python\nprint(6*7)\n```", "python", {"code": "print(6*7)"}),
        ("```py\nprint(1)\n```\nThis prints 1.", "python", {"code": "print(1)"}),
        ("```Python\nprint(1)\n```", "python", {"code": "print(1)"}),
        ("~~~python3\nprint(1)\n~~~", "python", {"code": "print(1)"}),
        ("````python\ns = '''\n```\n'''\nprint(s)\n````", "python", {"code": "s = '''\n```\n'''\nprint(s)"}),
        ("```python title=a.py\nprint(1)\n```", "python", {"code": "print(1)"}),
        ("```\nx = 2\nprint(x)\n```", "python", {"code": "x = 2\nprint(x)"}),
        ("```text\nsome words\n```\n```python\nprint(2)\n```", "python", {"code": "print(2)"}),
        ("```bash\nls -l\n```", "shell", {"command": "ls -l"}),
        ("```sympy\n{\"operation\": \"solve\", \"expression\": \"x-1\"}\n```", "sympy",
         {"operation": "solve", "expression": "x-1"}),
        ("```python\n{\"code\": \"print(1)\"}\n```", "python", {"code": "print(1)"}),
        ("```python\n{'a': 1}\n```", "python", {"code": "{'a': 1}"}),
        ("```python\nprint('unclosed by the server')", "python", {}),
        ("\\boxed{3}? I check.\n```python\nprint(3)\n```\n\\boxed{4}", "python", {"code": "print(3)"}),
    ],
)  # fmt: skip
def test_a_block_in_the_name_of_a_tool_is_its_call(text: str, name: str, arguments: dict[str, object]) -> None:
    assert calls_of(text) == [(name, arguments, not arguments)]


FENCES_IN_TEXTS = (
    'doc = """\n```\nmath\n```\n"""\nprint(doc)',
    "s = '''\n```\n'''\nprint(s)",
    'def f():\n    """Shows:\n\n    ```\n    >>> f()\n    ```\n    """\n    return 1\nprint(f())',
    'print("""```python\nx = 1\n```""")\nprint("""\n```\n""")',
    's = """\n```python\nx = 1\n```\n"""\nprint(len(s))',
    "a = r'''\n```\n```\n```\n'''\nprint(a.count(\"`\"))",
)


@pytest.mark.parametrize("code", FENCES_IN_TEXTS)
@pytest.mark.parametrize("language", ["python", "py", ""])
def test_a_fence_in_a_text_of_a_program_closes_no_block(code: str, language: str) -> None:
    text = f"I compute.\n```{language}\n{code}\n```"
    assert calls_of(text) == [("python", {"code": code}, False)]
    assert calls_of(f"{text}\n```output\n1\n```\n```python\nprint(2)\n```") == [("python", {"code": code}, False)]
    assert until_call(written(text), SPECS, "fence").text == text
    stopped = until_call(written(text.removesuffix("```"), tokens=False), SPECS, "fence")
    assert calls_of(stopped.text) == [("python", {"code": code}, False)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nprint(\n```\n```python\nprint(2)\n```", "print("),
        ("```python\nx = '''\n```\nThat is it.\n```\nNo more.", "x = '''"),
        ("```python\nprint(1)\n```\nThen\n```\n'''\n```", "print(1)"),
        ("```python\n# Step 1\n```\n```python\nprint(2)\n```", "# Step 1"),
        ('```python\ns = """a\n```\n```output\n1\n```\n```python\nprint(2)\n```', 's = """a'),
    ],
)
def test_what_is_no_program_ends_at_its_first_fence(text: str, code: str) -> None:
    assert calls_of(text) == [("python", {"code": code}, False)]


@pytest.mark.timeout(20)
def test_many_fences_are_read_in_time() -> None:
    for piece in ("```python\nx = '''\n", "```\n", "```\nprint(\n", "```text\n```\n", '"""\n```\n'):
        calls_of(piece * (LONGEST // len(piece)))


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{42}",
        "```json\n{\"answer\": 42}\n```\n\\boxed{42}",
        "```text\nprint(1)\n```",
        "```output\n42\n```",
        "```\nplain words\n```",
        "```\n42\n```",
        "Write it between ``` and ```: \\boxed{1}",
        "Use `print(6*7)` to see 42.",
        "inline ```python print(1)``` code",
        "```javascript\nconsole.log(1)\n```",
    ],
)  # fmt: skip
def test_other_blocks_are_text(text: str) -> None:
    assert calls_of(text) == []


def test_only_the_first_block_is_called_and_only_where_the_form_is_fence() -> None:
    text = "```python\nprint(1)\n```\n```output\n1\n```\n```python\nprint(2)\n```\n\\boxed{2}"
    parsed = parse_turn(text, toolbox(SPECS), form="fence")
    assert [call.arguments for call in parsed.calls] == [{"code": "print(1)"}] and parsed.answer is None
    assert parse_turn(text, {"python": "code"}).calls == ()
    assert calls_of('<tool_call>{"name": "shell", "arguments": {"command": "ls"}}</tool_call>') == [
        ("shell", {"command": "ls"}, False)
    ]


def written(text: str, finish: Literal["stop", "length"] = "stop", tokens: bool = True) -> Generation:
    pieces = text.split(" ")
    texts = [*(f"{piece} " for piece in pieces[:-1]), pieces[-1]]
    ends = tuple(len("".join(texts[: n + 1])) for n in range(len(texts)))
    ids = tuple(range(len(texts))) if tokens else ()
    chances = tuple(-0.5 for _ in ids)
    return Generation(text, ids, chances, (9,), finish, ends=ends if tokens else ())


def test_a_turn_ends_with_its_first_block_and_no_token_is_taken_apart() -> None:
    call = "I compute. \n```python\nprint( 6 )\n``` "  # of which the last token is "``` "
    cut = until_call(written(f"{call}\nThat is 6 or \\boxed{{6}}"), SPECS, "fence")
    assert cut.text.startswith(call.rstrip()) and "boxed" not in cut.text and cut.text == call
    assert len(cut.token_ids) == len(cut.logprobs) == len(cut.ends) and cut.ends[-1] == len(cut.text)
    assert cut.finish == "stop"
    for whole in (
        written("no block \\boxed{1}"),
        written("```python\nprint(1)\n```"),
        written("```python\nx", "length"),
    ):
        assert until_call(whole, SPECS, "fence") == whole
        assert until_call(whole, SPECS, "template") == whole
    stopped = until_call(written("```python\nprint(1)\n", tokens=False), SPECS, "fence")
    assert stopped.text == "```python\nprint(1)\n```", "a server leaves out what it stopped at"


@pytest.mark.parametrize(
    ("thought", "rest"),
    [
        ("<think>\n```python\nprint(1)\n```\nOr not.\n</think>\n", "\\boxed{2}"),
        ("So:\n```python\nprint(1)\n```\nOr not.\n</think>\n", "\\boxed{2}"),
        ("<think>\n```python\nprint(1)\n```\nOr not.", ""),
        ("[THINK]```python\nprint(1)\n```[/THINK]", "I run it.\n```python\nprint(2)\n```"),
    ],
)
def test_a_block_in_a_thought_ends_no_turn(thought: str, rest: str) -> None:
    whole = written(thought + rest)
    assert until_call(whole, SPECS, "fence") == whole
    if "```" in rest:
        cut = until_call(written(f"{thought}{rest}\nIt prints 2."), SPECS, "fence")
        assert cut.text == f"{thought}{rest}\nIt ", "the last token that is begun is kept"


def test_no_text_that_opens_a_block_is_one_to_stop_at() -> None:
    openings = ("```python\nprint(1)", "```\nprint(1)", "```py title=a\n\nx", "I compute:\n\n```python\n\nx = 1")
    assert all(stop not in opening for stop in stops("fence") for opening in openings)
    assert stops("template") == ()


def test_output_comes_back_as_a_block_that_it_cannot_close() -> None:
    turns = (
        Turn(role="assistant", content="a"),
        Turn(role="tool", name="python", content="```\n1"),
        Turn(role="tool", name="", content="The turn could not be read whole."),
        Turn(role="user", content="b"),
    )
    first, block, last = delivered(turns, "fence")
    assert (first, last) == (turns[0], turns[-1]) and block.role == "user"
    assert block.content == "```output\n'''\n1\n```\n```output\nThe turn could not be read whole.\n```"
    assert delivered(turns, "template") is turns


async def test_a_student_calls_by_block_and_reads_the_output_in_one() -> None:
    model = Playback(["I compute.\n```python\nprint(12+30)\n```\nIt is 41.", r"\boxed{42}"])
    result = await play(model=model, config=FENCE)
    assert (result.answer, [use.call.name for use in result.tool_calls]) == ("42", ["python"])
    first, second = model.asked
    assert not first.tools and first.sampling.stop and "```python" in first.turns[0].content
    assert second.turns[-1] == Turn(role="user", content="```output\n42\n```")
    assert second.turns[-2].content == "I compute.\n```python\nprint(12+30)\n```"
    assert [turn.role for turn in result.transcript][-3:] == ["assistant", "tool", "assistant"]


async def test_a_tool_that_prints_nothing_says_so() -> None:
    model = Playback(["```python\nx = 1\n```", r"\boxed{42}"])
    result = await play(model=model, config=FENCE)
    assert result.transcript[-2].content == "[no output]" and result.tool_calls[0].result.output == ""


def test_examples_of_a_prompt_are_written_in_its_form() -> None:
    call = '<tool_call>\n{"name": "sympy", "arguments": {"operation": "solve", "expression": "x"}}\n</tool_call>'
    turns = (Turn(role="system", content=f"Write\n{call}"), Turn(role="user", content=call))
    system, user = shown(turns, SPECS, "fence")
    assert '```sympy\n{"operation": "solve", "expression": "x"}\n```' in system.content and user.content == call
    assert "[tool_call]\n{" in shown(turns, SPECS, "brackets")[0].content
    assert shown(turns, SPECS, "template") is turns and requested(SPECS, "fence") == ()


def test_a_form_of_blocks_has_no_example_in_json_where_python_is_there() -> None:
    def example(name: str, arguments: str) -> tuple[Turn, ...]:
        call = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        turns = (("user", "Q"), ("assistant", call), ("tool", "3"), ("assistant", f"It is {name}."))
        return tuple(Turn(role=role, content=content) for role, content in turns)

    sympy, python = example("sympy", '{"operation": "solve", "expression": "x"}'), example("python", '{"code": "1"}')
    last = Turn(role="user", content="The question")
    both = (Turn(role="system", content="Be brief."), *sympy, *python, last)
    system, *rest = shown(both, specs_of(("python", "sympy")), "fence")
    assert "sympy:" not in system.content and "Example:" not in system.content
    assert [turn.content for turn in rest] == ["Q", "```python\n1\n```", "3", "It is python.", "The question"]
    alone = shown(both, specs_of(("sympy",)), "fence")
    assert "- sympy:" in alone[0].content and [turn.content for turn in alone][-2:] == ["It is sympy.", "The question"]
    assert len(shown(both, specs_of(("python", "sympy")), "actions")) == len(both)


def spec(name: str, **types: str) -> ToolSpec:
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    return ToolSpec(name, f"Does {name}.", {"properties": properties, "required": list(types)})


ENVIRONMENT = (
    spec("update_reservation_flights", reservation="string", cabin="string"),
    spec("done"),
    spec("act", way="integer"),
)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('```update_reservation_flights\n{"reservation": "A", "cabin": "economy"}\n```', "update_reservation_flights",
         {"reservation": "A", "cabin": "economy"}),
        ("```done\n```", "done", {}),
        ("```act\n3\n```", "act", {"way": 3}),
        ('```act\n{"way": 3}\n```', "act", {"way": 3}),
    ],
)  # fmt: skip
def test_tools_of_an_environment_are_called_by_blocks(text: str, name: str, arguments: dict[str, object]) -> None:
    (call,) = parse_turn(text, toolbox(ENVIRONMENT), form="fence").calls
    assert (call.name, call.arguments, call.error) == (name, arguments, "")


def test_a_block_in_the_name_of_no_tool_is_told_so() -> None:
    parsed = parse_turn('```move\n{"way": 3}\n```', toolbox(ENVIRONMENT), form="fence")
    assert not parsed.calls and "no tool named move; the tools are: act, done" in parsed.errors[0]
    assert not parse_turn('```json\n{"way": 3}\n```', toolbox(ENVIRONMENT), form="fence").errors


def test_where_no_tool_takes_a_program_the_prompt_speaks_of_none() -> None:
    """A small model that reads of blocks of Python writes them, and copies examples of tools that it does not have."""
    prompted = render(prompt("full", "steps", "student", long=True), {"question": "Go."})
    system, *rest = shown(prompted, ENVIRONMENT, "fence")
    assert "python" not in system.content and '```act\n{"way": …}\n```' in system.content
    assert '- act: Does act. Arguments: {"way": {"type": "integer"}}' in system.content
    assert [turn.content for turn in rest] == ["Go."]


@pytest.mark.parametrize(
    ("program", "output"),
    [
        ("2+3", "5"),
        ("x = 6\nx * 7", "42"),
        ("def f(a):\n    return a + 1\n\nf(\n    41\n)  # so", "42"),
        ("[1, 2][:: -1]", "[2, 1]"),
        ("a = 'größe'; a.upper()", "GRÖSSE"),
        ("None", ""),
        ("[].sort()", ""),
        ("x = 1", ""),
        ("print(1)\n2", "1"),
        ("'a text'", ""),
        ("import sys\nsys.stdout.write('3')\n4", "3"),
        ("x = 1\nif x:\n    5", ""),
    ],
)
def test_a_program_that_prints_nothing_shows_its_last_value(program: str, output: str) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        exec(with_last_value(program), {})
    assert shown.getvalue().strip() == output


@pytest.mark.parametrize("program", ["", "2+", "raise SystemExit('a')\n3", "await x", "\ud800", "((" * 5000])
def test_what_is_no_such_program_stays_as_it_is(program: str) -> None:
    assert with_last_value(program) == program


@pytest.mark.parametrize("form", ["template", "fence", "actions", "brackets"])
def test_a_turn_that_is_made_to_call_begins_as_its_forms_calls_do(form: str) -> None:
    call = '<tool_call>\n{"name": "python", "arguments": {"code": "1"}}\n</tool_call>'
    example = shown((Turn(role="user", content="Q"), Turn(role="assistant", content=call)), SPECS, form)[-1]
    assert example.content.startswith(opening(form))


async def test_a_turn_that_does_nothing_is_told_so_once_where_files_are_the_answer() -> None:
    done = await play("I look first.", "It is right. \\boxed{done}", by_files=True)
    assert (done.end, done.turns, done.parse_errors) == ("answered", 2, 0), "it could be read"
    twice = await play("I look first.", "I look further.", "Never asked.", by_files=True)
    assert (twice.end, twice.turns) == ("answered", 2), "its files are its answer, however it ends"
    reminder = next(turn.content for turn in twice.transcript if turn.role == "tool")
    assert (
        reminder.startswith("Your turn calls no tool. End")
        and "python" in reminder
        and "write \\boxed{done}" in reminder
    )
    assert (await play("I look first.")).turns == 1, "an answer in words may end without one"


async def test_work_that_ends_without_a_change_is_told_so_once() -> None:
    done = await play("It is right. \\boxed{done}", "It is. \\boxed{done}", by_files=True)
    assert (done.end, done.turns, done.parse_errors) == ("answered", 2, 0)
    (reminder,) = [turn.content for turn in done.transcript if turn.role == "tool"]
    assert reminder.startswith("No file has been changed yet. End") and "write \\boxed{done} again" in reminder
    config = StudentConfig(max_tokens=200, tools=("write_file",), tool_form="fence")
    write = '```write_file\n{"path": "a.py", "content": "1"}\n```'
    changed = await play(write, "Done. \\boxed{done}", "Never asked.", by_files=True, config=config)
    assert (changed.end, changed.turns, changed.parse_errors) == ("answered", 2, 0)
