"""Reads a task that is written as fields under labels: in Markdown, as blocks like those of YAML, or in tags.

The extent of each field must be clear: a question is one paragraph, a program stands in a fence, in an indented block
after ``|`` or on one line, and so do tests, or as lines that each assert something.
"""

import re
from collections.abc import Mapping
from textwrap import dedent

from agent0.turns.assertions import as_assertions, as_checker, prints
from agent0.turns.calls.spellings import read_object

MOST_FENCES = 32

ALIASES = {
    "tests": ("test", "test_cases", "unit_tests", "asserts", "assertions", "test_list"),
    "checker": ("check", "verifier", "checking_function"),
    "program": ("solution", "reference", "reference_solution", "reference_program", "function", "code"),
    "answer": ("reference_answer", "expected_answer", "example_answer", "sample_answer"),
}
"""Field -> what it is called as well."""
_CODE = tuple(name for field in ("program", "checker", "tests") for name in (field, *ALIASES[field]))
_TESTS = ("tests", *ALIASES["tests"])
_CLEAR = ("question", "program", "answer_kind", "tests", "checker")
"""Fields whose extent must be clear; others are left out where it is not."""
_OTHERS = "|".join(name.replace("_", "[ _-]") for names in ALIASES.values() for name in names)
_NAMES = f"question|program|answer[ _-]kind|tests|checker|answer|{_OTHERS}"
_ASIDE = "domain|level|difficulty|family|kind|topic|category|explanation|note|rationale"
_label = re.compile(
    rf"^[ \t>]*(?:[-*+][ \t]+)?(?:\#{{1,6}}[ \t]+)?[*_`]{{0,3}}({_NAMES}|{_ASIDE})[*_`]{{0,3}}"
    r"[ \t]*(?::[*_`]{0,3}|$)",
    re.I | re.M,
)
_other_label = re.compile(r"^[ \t>*_#-]*[A-Za-z][\w \t-]{0,30}[*_`]*:", re.M)
_fence = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n`]*)\n(.*?)^[ \t]*\1[ \t]*$", re.S | re.M)
_open_fence = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.M)
_block = re.compile(r"[ \t]*\|[-+]?[ \t]*\n((?:[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)")
_tag = re.compile(rf"</?(question|answer_kind|{'|'.join(ALIASES)})>")
_TEXT = ("", "yaml", "yml", "markdown", "md", "text")
"""Languages of fences in which labels are labels, not code."""


def read_fields(body: str) -> dict[str, str] | str | None:
    """Read the fields of ``body``; returns their texts by name, what is unclear, or None where it has no question."""
    if len(_open_fence.findall(body)) > MOST_FENCES:
        return f"more than {MOST_FENCES} fences"
    fields = [(name, text) for name, text in _tagged(body) or _labelled(body) if text is not None or name in _CLEAR]
    names = [name for name, _ in fields]
    if "question" not in names:
        return None
    if len(set(names)) < len(names):
        return "a field is there twice"
    if unclear := next((name for name, text in fields if text is None), ""):
        return f"where the {unclear} ends is not clear"
    return {name: text or "" for name, text in fields}


def with_usual_names(fields: Mapping[str, object]) -> dict[str, object]:
    """Return ``fields`` with tests, checker, program and answer under these names, whatever they are called. Another
    name of the program counts beside tests only, one of the checker where it can check, an answer beside a checker. A
    program beside an answer that only defines ``check`` is the checker."""
    usual = {name: fields.get(name) or _called_otherwise(fields, name) for name in ALIASES}
    program = fields.get("program")
    checks = isinstance(program, str) and as_checker(program) == program and not (prints(program) or usual["tests"])
    if checks and usual["answer"] and not usual["checker"]:
        return {**fields, **usual, "program": None, "checker": program}
    if not fields.get("program") and not usual["tests"]:
        usual["program"] = None
    if not usual["checker"]:
        usual["answer"] = None
    return {**fields, **usual}


def _called_otherwise(fields: Mapping[str, object], name: str) -> object:
    values = (fields.get(alias) for alias in ALIASES[name])
    return next((v for v in values if v and (name != "checker" or (isinstance(v, str) and as_checker(v)))), None)


def _tagged(body: str) -> list[tuple[str, str | None]]:
    """Name and text of each field between tags, None where another tag stands between its own."""
    marks = [*_tag.finditer(body)]
    opened = [number for number, mark in enumerate(marks) if not mark[0].startswith("</")]
    fields: list[tuple[str, str | None]] = []
    for number in opened:
        name, closing = marks[number][1], marks[number + 1 : number + 2]
        closed = closing and closing[0][0] == f"</{name}>"
        text = body[marks[number].end() : closing[0].start()] if closed else None
        fields.append((name, text if text is None or name in _CODE else text.strip()))
    return fields


def _labelled(body: str) -> list[tuple[str, str | None]]:
    """Name and text of each field under a label, None where its end is not clear. Labels in code are none."""
    fences: list[tuple[str, str]] = []

    def kept(match: re.Match[str]) -> str:
        fences.append((match[2].strip().lower(), match[3]))
        return f"\0{len(fences) - 1}\0"

    pieces = _label.split(_fence.sub(kept, body.replace("\0", "")))
    codes = [code for _, code in fences]
    pairs = zip((re.sub(r"[ -]", "_", name.lower()) for name in pieces[1::2]), pieces[2::2], strict=True)
    fields = [(name, _text(name, text, codes)) for name, text in pairs if re.fullmatch(_NAMES, name)]
    if "question" not in dict(fields) and len(fences) == 1 and fences[0][0] in _TEXT:
        return _labelled(codes[0])
    return fields


def _text(name: str, text: str, codes: list[str]) -> str | None:
    """The text of a field that follows its label."""
    if _open_fence.search(text):
        return None
    if block := _block.match(text):
        return dedent(block[1]).strip("\n") if not text[block.end() :].strip() else None
    if name in _CODE:
        code = _program(text.strip(), codes)
        return _assertions(text) if code is None and name in _TESTS else code
    first, *rest = re.split(r"\n[ \t]*\n", text.strip())
    if name == "question":
        unclear = rest or "\0" in first or first.startswith((">", "|")) or _other_label.search(first.partition("\n")[2])
        return None if unclear else _unquoted(first)
    return first.strip(" \t`*\"'.")


def _program(text: str, codes: list[str]) -> str | None:
    """The one fence that ``text`` begins with, prose after it aside, or its one line."""
    if marks := re.findall(r"\0(\d+)\0", text):
        return codes[int(marks[0])] if len(marks) == 1 and text.startswith("\0") else None
    return _unquoted(text.strip("`")) if "\n" not in text else None


def _assertions(text: str) -> str | None:
    """The paragraph that ``text`` begins with, where each of its lines asserts something, and no other line does."""
    first, *rest = re.split(r"\n[ \t]*\n", text.strip())
    lines = as_assertions(first)
    clear = all(line.startswith(("assert ", "#")) for line in lines.splitlines()) and "assert " not in "".join(rest)
    return lines if clear else None


def _unquoted(text: str) -> str | None:
    """``text`` without the quotes around all of it; None where it only begins with one and ends with one."""
    if len(text) < 2 or text[0] not in "\"'“" or text[-1] not in "\"'”":
        return text
    value, end = read_object(f"[{text}]", 0) or (None, 0)
    return value[0] if isinstance(value, list) and len(value) == 1 and end == len(text) + 2 else None
