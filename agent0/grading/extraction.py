"""Where in a reply its answer stands. Three places count, in this order; nowhere else is looked."""

import re

from agent0.chat_format import boxed

LONGEST = 200_000
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
