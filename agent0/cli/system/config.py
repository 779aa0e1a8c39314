"""Settings: what they are, where each came from, whether they are valid, what there is."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console, flags
from agent0.config.loading import public, resolve
from agent0.config.setting_entries import fields, leaves
from agent0.report.markdown.rendering import render
from agent0.settings import Settings


def show(
    profile: console.Profile = None,
    pairs: console.Set = None,
    origin: Annotated[bool, typer.Option("--origin", help="Also where each value came from.")] = False,
    as_json: console.Json = False,
) -> None:
    """Print the settings in effect; secrets are masked."""
    loaded = resolve(profile, flags.overrides(pairs))
    if as_json and not origin:
        console.data({**public(loaded.settings), "config_sha": loaded.settings.run.to_record()[1]})
        return
    rows = [{"key": key, "value": value, "origin": where} for key, value, where in loaded.rows()]
    console.table(rows, as_json, ("key", "value", "origin") if origin else ("key", "value"))


def docs(as_json: console.Json = False) -> None:
    """Every setting with its default and meaning, as Markdown."""
    rows = reference()
    if as_json:
        console.data(rows)
        return
    console.text("\n" + render("settings.md.jinja", Path(__file__).parent, settings=rows).rstrip("\n"))


def reference() -> list[dict[str, Any]]:
    """key, default (JSON), meaning and section of every setting, in the order of the models."""
    defaults = dict(leaves(public(Settings())))
    rows: list[dict[str, Any]] = []
    firsts: dict[str, str] = {}
    for key, field in fields():
        section, _, name = key.rpartition(".")
        firsts.setdefault(section, name)
        meaning = (field.description or "").replace("|", "\\|")
        shown = "the user's data folder" if key == "home" else json.dumps(defaults.get(key))
        rows.append({"key": key, "default": shown, "meaning": meaning, "section": section, "first": firsts[section]})
    return rows
