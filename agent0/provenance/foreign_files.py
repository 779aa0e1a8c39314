"""Files of other frameworks, recognised by the names of their fields: they are sound, and are not ours."""

import json
import re
from collections.abc import Mapping
from typing import Any

from agent0.errors import ConfigError

HEAD = 1 << 20
"""Characters at a file's beginning that are looked at."""
ROWS: Mapping[str, frozenset[str]] = {
    "rollouts of verifiers (results.jsonl)": frozenset({"prompt", "completion", "reward"}),
    "samples of lm-evaluation-harness (samples_*.jsonl)": frozenset({"doc_id", "doc", "resps"}),
}
"""What a file holds -> fields that each of its rows has."""
DOCUMENTS: Mapping[str, re.Pattern[str]] = {
    "a trajectory of ATIF (Harbor)": re.compile(r'\{\s*"schema_version"\s*:\s*"ATIF-v[\d.]{1,9}"'),
    "a log of Inspect": re.compile(r'\{\s*"version"\s*:\s*\d+,\s*"status"\s*:\s*"\w+",\s*"eval"\s*:\s*\{'),
}
"""What a file holds -> how its one object begins; that may be longer than what is looked at."""


def foreign_kind(text: str) -> str:
    """Name what a file that begins with ``text`` holds, of which framework; empty where it is none that is known."""
    text = text[:HEAD].lstrip("\ufeff \t\r\n")
    if document := next((kind for kind, begins in DOCUMENTS.items() if begins.match(text)), ""):
        return document
    fields = _fields(text)
    if "pair_id" in fields:
        return ""
    return next((kind for kind, names in ROWS.items() if names <= fields), "")


def require_own(text: str, name: str) -> None:
    """Require that the file ``name``, which begins with ``text``, is of no other framework.

    Raises:
        ConfigError: it is.
    """
    if kind := foreign_kind(text):
        fix = "Answers of another program are judged as pairs: agent0 verify pairs --help"
        raise ConfigError(f"{name} holds {kind}.", "Foreign trajectories cannot be imported yet.", fix)


def _fields(text: str) -> frozenset[str]:
    """Names of the fields of the first object in ``text``, which may stand in an array."""
    begin = text[1:].lstrip() if text.startswith("[") else text
    if not begin.startswith("{"):
        return frozenset()
    try:
        row: Any = json.JSONDecoder().raw_decode(begin)[0]
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(row)
