"""A form for the settings of a run, made of their JSON schema: what each is, where its value comes from, and what the
profile says where that is something else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from agent0.api.v1.writes import profile_source
from agent0.config.loading import Loaded, packaged_run, public, resolve
from agent0.config.setting_entries import fields
from agent0.projections.base import Row
from agent0.settings import RunConfig, Settings

Node = dict[str, Any]
"""A part of a JSON schema."""
NOT_HERE = ("run.plugins",)
"""Computed: which files are loaded is for who starts the server to say."""


@dataclass(frozen=True)
class Field:
    """How one setting is asked for. ``kind``: choice, whole, number or text."""

    kind: str = "text"
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


@cache
def fields_of_runs() -> Mapping[str, Field]:
    """By dotted key, in the order of the schema."""
    schema = RunConfig.model_json_schema()
    return {f"run.{key}": _field(node) for key, node in _leaves(schema, schema["$defs"])}


def _leaves(node: Node, named: Node, prefix: str = "") -> list[tuple[str, Node]]:
    leaves: list[tuple[str, Node]] = []
    for name, inner in node["properties"].items():
        leaf = {**named[inner["$ref"].rpartition("/")[2]], **inner} if "$ref" in inner else inner
        if "properties" in leaf:
            leaves += _leaves(leaf, named, f"{prefix}{name}.")
        else:
            leaves.append((f"{prefix}{name}", leaf))
    return leaves


def _field(node: Node) -> Field:
    if "enum" in node:
        return Field("choice", tuple(map(str, node["enum"])))
    if node.get("type") == "boolean":
        return Field("choice", ("true", "false"))
    low, high = node.get("minimum"), node.get("maximum")
    kind = {"integer": "whole", "number": "number"}.get(node.get("type", ""), "text")
    return Field(kind, (), low, high)


def text_of(value: object) -> str:
    """A value as it is typed into a field or after ``--set``."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(
        isinstance(item, str) and item and not set(item) & set(",[{ ") for item in value
    ):
        return ",".join(value)
    return "" if value is None else json.dumps(value)


def shown(settings: Settings, profile: str) -> Row:
    """Every setting with its value, its origin and its meaning: those of runs as a run of ``profile`` gets them here,
    the others as they are in this process.

    Raises:
        ConfigError: there is no such profile, or a value on this machine does not fit.
    """
    loaded = resolved(settings, profile)
    meanings = {key: field.description or "" for key, field in fields()}
    packaged = packaged_run(loaded.settings.profile)
    profile_values = values(Settings(run=packaged)) if packaged else {}  # nothing where the profile is a user's own
    ours, theirs, origins = values(settings), values(loaded.settings), _origins(loaded)
    rows = []
    for key, value in theirs.items():
        row = {"key": key, "value": value, "origin": origins[key], "meaning": meanings[key]}
        if not key.startswith("run.") and ours[key] != value:
            row |= {"value": ours[key], "origin": "given to this server"}
        if key.startswith("run.") and key in profile_values and profile_values[key] != value:
            row["profile_says"] = profile_values[key]
        rows.append(row)
    return {"profile": loaded.settings.profile, "sha": loaded.settings.run.to_record()[1], "settings": rows}


def values(settings: Settings) -> dict[str, object]:
    """Every setting by dotted key as a JSON value, without a secret; a table of named entries is one value."""
    by_key: dict[str, object] = {}
    plain = public(settings)
    for key, _ in fields():
        value: Any = plain
        for part in key.split("."):
            value = value[part]
        by_key[key] = value
    return by_key


def _origins(loaded: Loaded) -> dict[str, str]:
    """Where each setting comes from; a table of named entries has an origin an entry."""
    by_leaf = {key: origin for key, _, origin in loaded.rows()}
    origins = {}
    for key, _ in fields():
        inner = (origin for leaf, origin in by_leaf.items() if leaf.startswith(f"{key}."))
        origins[key] = by_leaf.get(key) or ", ".join(dict.fromkeys(inner))
    return origins


def resolved(settings: Settings, profile: str) -> Loaded:
    """What a run of ``profile`` that is started on this server gets."""
    return resolve(profile_source(settings, profile), {"home": str(settings.home)})


def sections(rows: list[Row]) -> list[Row]:
    """The settings of runs as a form asks for them, by section."""
    fields, by_section = fields_of_runs(), dict[str, list[Row]]()
    for row in rows:
        if row["key"] in fields and row["key"] not in NOT_HERE:
            section, _, name = row["key"].rpartition(".")
            more = {"name": name, "text": text_of(row["value"]), "field": fields[row["key"]]}
            by_section.setdefault(section, []).append({**row, **more})
    return [{"name": name, "rows": section_rows} for name, section_rows in by_section.items()]


def changes(settings: Settings, profile: str, body: bytes) -> dict[str, str]:
    """The settings of a sent form that are not what a run of ``profile`` gets anyway."""
    form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    named = {key: values[0] for key, values in form.items() if key in fields_of_runs() and key not in NOT_HERE}
    if not named:
        return {}
    current = values(resolved(settings, profile).settings)
    return {key: text for key, text in named.items() if text.strip() != text_of(current[key]).strip()}
