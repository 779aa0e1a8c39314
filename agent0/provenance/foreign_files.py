"""Files of other frameworks, recognised by the names of their fields: they are sound, and are not ours."""

import json
import re
from dataclasses import dataclass
from typing import Any

from agent0.errors import ConfigError

HEAD = 1 << 20
"""Characters at a file's beginning that are looked at."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file: ``title`` names what it holds, ``format`` is its name in ``trajectory import``, empty where that
    reads none. Its rows have all of ``fields``, and one of ``some`` where there are any."""

    title: str
    format: str
    fields: frozenset[str]
    some: frozenset[str] = frozenset()


ROWS = (
    FileKind(
        "rollouts of verifiers (results.jsonl)",
        "verifiers",
        frozenset({"prompt", "completion", "reward"}),
        frozenset({"answer", "example_id", "info", "task", "metrics"}),
    ),
    FileKind("training traces of OpenEnv", "openenv", frozenset({"schema_version", "turns"})),
    FileKind("traces of verifiers", "verifiers-trace", frozenset({"nodes", "rewards", "task"})),
    FileKind("prompts and completions (TRL)", "trl", frozenset({"prompt", "completion"})),
    FileKind("conversations (OpenAI's chat format)", "openai-chat", frozenset({"messages"})),
    FileKind("samples of lm-evaluation-harness (samples_*.jsonl)", "", frozenset({"doc_id", "doc", "resps"})),
)
DOCUMENTS = (
    (
        FileKind("a trajectory of ATIF (Harbor)", "atif", frozenset()),
        re.compile(r'\{\s*"schema_version"\s*:\s*"ATIF-v[\d.]{1,9}"'),
    ),
    (
        FileKind("a log of Inspect", "inspect", frozenset()),
        re.compile(r'\{\s*"version"\s*:\s*\d+,\s*"status"\s*:\s*"\w+",\s*"eval"\s*:\s*\{'),
    ),
)
"""Kinds, and how their one object begins; that may be longer than what is looked at."""


def _kind(text: str) -> FileKind | None:
    text = text[:HEAD].lstrip("\ufeff \t\r\n")
    if document := next((kind for kind, begins in DOCUMENTS if begins.match(text)), None):
        return document
    fields = _fields(text)
    if "pair_id" in fields:
        return None
    return next((kind for kind in ROWS if kind.fields <= fields and (not kind.some or kind.some & fields)), None)


def foreign_kind(text: str) -> str:
    """Name what a file that begins with ``text`` holds, of which framework; empty where it is none that is known."""
    kind = _kind(text)
    return kind.title if kind else ""


def foreign_format(text: str) -> str:
    """The format of a file that begins with ``text``, as ``trajectory import`` calls it; empty where none is known."""
    kind = _kind(text)
    return kind.format if kind else ""


def require_own(text: str, name: str) -> None:
    """Require that the file ``name``, which begins with ``text``, is of no other framework.

    Raises:
        ConfigError: it is.
    """
    kind = _kind(text)
    if kind and kind.format:
        raise ConfigError(f"{name} holds {kind.title}.", "", f"Import it as a run: agent0 trajectory import {name}")
    if kind:
        fix = "Answers of another program are judged as pairs: agent0 verify pairs --help"
        raise ConfigError(f"{name} holds {kind.title}.", "Foreign trajectories of this kind are not imported.", fix)


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
