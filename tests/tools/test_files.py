"""Reading, writing, editing and going back: folders are values, and every change can be told and undone."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Refusing
from agent0.settings import PolicyConfig
from agent0.tools import tools
from agent0.tools.calling import call_tool
from agent0.tools.paths import plain
from agent0.tools.results import LIMIT
from agent0.tools.snapshots import is_inside, kept
from agent0.tools.workspace import Done, Workspace

LINES = st.lists(st.text(alphabet="ab \t(.*", max_size=6), max_size=12).map("\n".join)
PATHS = st.lists(st.sampled_from(["a", "b.txt", "..", ".", "", "~", "-rf", "c d", "\u00e9"]), max_size=4).map("/".join)


def place(files: dict[str, bytes] | None = None, **policy: tuple[str, ...]) -> Workspace:
    return Workspace(Refusing("not needed."), sorted(tools()), PolicyConfig.model_validate(policy), files=files or {})


async def do(work: Workspace, name: str, **arguments: object) -> ToolResult:
    return await call_tool(ToolCall(name=name, arguments=arguments), work)


@given(
    path=PATHS, content=st.text(max_size=200), files=st.dictionaries(PATHS.filter(is_inside), st.binary(), max_size=3)
)
async def test_what_is_written_is_read_and_nothing_else_is_touched(
    path: str, content: str, files: dict[str, bytes]
) -> None:
    files, _ = kept(files)
    work = place(files)
    result = await do(work, "write_file", path=path, content=content)
    if result.state is ToolState.OK:
        assert work.files == {**files, plain(path): content.encode()}
        read = await do(work, "read_file", path=path)
        if "\0" not in content:
            assert read.state is ToolState.OK
    else:
        assert work.files == files
        name = plain(path)
        clash = any(name.startswith(f"{other}/") or other.startswith(f"{name}/") for other in files)
        assert not is_inside(name) or clash


@given(st.lists(st.text(alphabet="abc ", max_size=30), min_size=1, max_size=60), st.integers(1, 20))
async def test_pages_together_are_the_file(lines: list[str], size: int) -> None:
    work = place({"a": "\n".join([*lines, ""]).encode()})
    read, start = [], 1
    while start:
        output = (await do(work, "read_file", path="a", start=start, lines=size)).output.split("\n")
        note = output.pop() if output[-1].startswith("[line") else ""
        read += output
        start = int(note.rpartition(" ")[2][:-1]) if "read on" in note else 0
    assert read == lines


async def test_a_page_ends_with_a_whole_line() -> None:
    work = place({"a": b"".join(b"%d%s\n" % (n, b"x" * 1000) for n in range(20))})
    output = (await do(work, "read_file", path="a")).output
    assert len(output) < LIMIT + 100
    assert output.endswith("x\n[lines 1 to 4 of 20; read on with start 5]")


@given(before=LINES, old=st.text(alphabet="ab \n(.*", max_size=5), new=LINES, windows=st.booleans())
async def test_an_edit_is_exact_or_refused(before: str, old: str, new: str, windows: bool) -> None:
    text = before.replace("\n", "\r\n") if windows else before
    work = place({"a": text.encode()})
    result = await do(work, "edit_file", path="a", old=old, new=new)
    times = sum(before.startswith(old, at) for at in range(len(before))) if old else 0
    if times == 1 and old != new:
        after = before.replace(old, new)
        assert result.state is ToolState.OK
        assert work.files["a"] == (after.replace("\n", "\r\n") if "\r" in text else after).encode()
        assert patched(before, result.output) == split(after)
    else:
        assert result.state is ToolState.ERROR
        assert work.files == {"a": text.encode()}
        assert old == new or not old or _told(times) in result.output


def _told(times: int) -> str:
    return "does not occur" if not times else f"{times} times" if times <= 10 else "more than 10 times"


def split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def patched(before: str, difference: str) -> list[str]:
    """The lines of ``before`` once a unified difference is applied to them, as ``patch`` would, by line numbers."""
    left, out, at = split(before), [], 0
    for line in difference.split("\n")[2:]:
        if line.startswith("@@"):
            place, _, size = line.split()[1][1:].partition(",")
            first = int(place) - (size != "0")
            out += left[at:first]
            at = first
        elif line.startswith("+"):
            out.append(line[1:])
        else:
            assert left[at] == line[1:]
            out += [left[at]] if line.startswith(" ") else []
            at += 1
    return out + left[at:]


async def test_a_difference_has_the_numbers_of_the_file() -> None:
    before = "".join(f"line {n}\n" for n in range(1, 101))
    work = place({"a": before.encode()})
    result = await do(work, "edit_file", path="a", old="line 50\n", new="fifty\nand more\n")
    after = work.files["a"].decode()
    wanted = difflib.unified_diff(before.splitlines(), after.splitlines(), "a", "a", lineterm="")
    assert result.output == "\n".join(wanted)


@pytest.mark.parametrize(
    ("old", "says"),
    [
        ("retrun x", "The nearest line is 2:     return x"),
        ("    return x\n    pass\n", "The nearest line is 2:     return x"),
        ("qqqqqq", "No line is like it."),
        ("def", "occurs 2 times in a, at lines 1, 4."),
    ],
)
async def test_what_cannot_be_replaced_is_told(old: str, says: str) -> None:
    work = place({"a": b"def f(x):\n    return x\n\ndef g(y): ...\n"})
    assert says in (await do(work, "edit_file", path="a", old=old, new="")).output


async def test_a_missing_file_is_told_with_what_there_is() -> None:
    work = place({f"notes/{n}.txt": b"" for n in range(40)})
    output = (await do(work, "read_file", path="notes/77.txt")).output
    assert "Did you mean notes/7.txt?" in output
    assert output.endswith("and 10 more.")
    assert "The work folder is empty." in (await do(place(), "read_file", path="a")).output


@pytest.mark.parametrize("name", ["write_file", "edit_file", "sqlite_query"])
@pytest.mark.parametrize(
    ("path", "allowed"), [("src/a.py", True), ("src/b/c.py", True), ("a.py", False), ("src", False)]
)
async def test_only_what_the_policy_names_is_written(name: str, path: str, allowed: bool) -> None:
    work = place({path: b"x"}, paths=("src/*",))
    arguments = {
        "write_file": {"path": path, "content": "y"},
        "edit_file": {"path": path, "old": "x", "new": "y"},
        "sqlite_query": {"database": path, "sql": "SELECT 1"},
    }
    try:
        result = await do(work, name, **arguments[name])
    except SandboxUnavailableError:
        assert allowed and name == "sqlite_query"
    else:
        assert (result.state is ToolState.OK) == allowed
        assert allowed or "may not be written. What may: src/*" in result.output
        assert (work.files == {path: b"x"}) != allowed


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text(alphabet="xy", max_size=2)), max_size=6), st.data())
async def test_any_folder_of_the_attempt_can_be_had_again(writes: list[tuple[str, str]], data: st.DataObject) -> None:
    work = place({"at first": b""})
    folders = [dict(work.files)]
    for path, content in writes:
        await do(work, "write_file", path=path, content=content)
        folders.append(dict(work.files))
    for _ in range(3):
        call = data.draw(st.integers(0, len(folders) - 1))
        before = work.files
        result = await do(work, "rollback", call=call)
        assert result.state is ToolState.OK
        assert work.files == folders[call]
        assert ("Nothing changed" in result.output) == (before == folders[call])
        folders.append(dict(work.files))
    assert (await do(work, "rollback", call=len(folders))).state is ToolState.ERROR
    assert work.files == folders[-1]


async def test_steps_of_a_plan_are_one_call_to_go_back_to() -> None:
    work = place()
    for name in "abc":
        step = ToolCall(name="write_file", arguments={"path": name, "content": name})
        await call_tool(step, work, inner=name != "c")
    assert "you made 1 calls" in (await do(work, "rollback", call=3)).output
    assert "removed: a; removed: b; removed: c" in (await do(work, "rollback", call=0)).output


async def test_going_back_needs_nothing_but_the_journal() -> None:
    """As when an attempt goes on in another process: the journal is given, and the folders in it are any mappings."""
    made = ToolCall(name="python", arguments={})
    journal = [Done(made, ToolResult(state=ToolState.OK), {"a": b"1"}), Done(made, ToolResult(state=ToolState.OK), {})]
    work = Workspace(Refusing("away."), ["rollback"], files={"b": b"2"}, start={}, journal=journal)
    assert (await do(work, "rollback", call=1)).output.endswith("added: a; removed: b")
    assert work.files == {"a": b"1"}
    await do(work, "rollback", call=0)
    assert work.files == {}
