"""Where in a reply its answer stands. Three places count, in this order; nowhere else is looked."""

import re

LONGEST = 200_000
_brace = re.compile(r"\\(?:boxed|fbox)\s*\{|\\[{}\\]|[{}]")
_stated = re.compile(
    r"(?:final answer|the answer|answer)\s*(?:is|=|:)+\s*\**\s*(.+?)(?:\.\s|\.?\s*$|\n)", re.IGNORECASE | re.DOTALL
)
_hashes = re.compile(r"####[ \t]*([^\n]+)")


def extract(reply: str) -> str | None:
    r"""The last balanced ``\boxed{...}``; else what follows the last ``####`` (GSM8K's form); else the last stated
    final answer. None where there is none of these: an answer is not searched for anywhere else."""
    text = reply[-LONGEST:]
    found = boxed(text)
    if found is not None:
        return found.strip() or None
    if marked := _hashes.findall(text):
        return str(marked[-1]).strip() or None
    stated = [match[1] for match in _stated.finditer(text[-4000:])]
    return stated[-1].strip().strip("*`") or None if stated else None


def boxed(text: str) -> str | None:
    r"""What is inside the last ``\boxed{`` that is closed, None where none is."""
    stack: list[int] = []
    best: tuple[int, int] | None = None
    for mark in _brace.finditer(text):
        word = mark[0]
        if word == "{":
            stack.append(-1)
        elif word == "}" and stack:
            start = stack.pop()
            if start >= 0 and (best is None or start > best[0]):
                best = (start, mark.start())
        elif word.startswith(("\\boxed", "\\fbox")):
            stack.append(mark.end())
    return text[best[0] : best[1]] if best else None
