"""An ablation study as data: variants of settings that are compared over seeds, and the file that says so.

Variants differ in settings alone. Every ablation run (a variant with a seed) is a run of its own; all score the same
held-out items.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agent0.errors import ConfigError

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
"""Of a study and of a variant: both are part of run tokens and of folders."""
T = TypeVar("T")
KEYS = ("question", "profile", "seeds", "own_bases", "shared_start", "plugins", "run", "variants")
"""What a study file may say."""
GUIDE = "docs/guide/replay-experiments.md has a whole file."
SEARCHES = ("reflective", "random")
"""Searches over prompts: by what failing answers say, and its control, which sees none of them."""


@dataclass(frozen=True)
class Variant:
    """One variant of a study: a name, the settings that make it (dotted keys below ``run``), and what it stands for.
    ``search``: in the place of training, one of ``SEARCHES`` over the student's prompt, with as many attempts."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    search: str = ""

    def __post_init__(self) -> None:
        if self.search not in ("", *SEARCHES):
            why = f"There are {', '.join(SEARCHES)}."
            raise ConfigError(f"The variant {self.name[:80]} has no search {self.search[:80]!r}.", why, GUIDE)


@dataclass(frozen=True)
class AblationStudy:
    """An ablation study. Each other variant is compared with the first.

    ``settings`` hold for every variant, unless the user says otherwise; ``plugins`` are files beside the study's.
    ``own_bases``: each seed has a base model of its own, taught the course of the packaged student from that seed.
    ``shared_start``: variants differ in their training only, and each other one begins as a fork of the first's run
    just before that is trained: the untrained student is scored and attempts its first tasks once a seed.
    """

    question: str
    variants: tuple[Variant, ...]
    profile: str = "tiny"
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    settings: Mapping[str, str] = field(default_factory=dict)
    own_bases: bool = False
    plugins: tuple[str, ...] = ()
    shared_start: bool = False

    def __post_init__(self) -> None:
        names = [variant.name for variant in self.variants]
        odd = [name for name in names if not NAME.fullmatch(name)]
        if odd or len(set(names)) < len(names) or not names:
            why = f"Its variants: {', '.join(name[:80] for name in names) or 'none'}."
            fix = "Give each a name of its own, of small letters, digits and '-', at most 30."
            raise ConfigError("The variants of a study are not named.", why, fix)


def study_of_file(text: str, name: str) -> AblationStudy:
    """Read the study of a file, in TOML; ``name`` stands in errors.

    ``run`` has settings of every variant, ``[variants.NAME]`` those of one, each as a profile has them; ``about`` says
    what a variant stands for.

    Raises:
        ConfigError: it is no TOML, a key is none, or a value does not fit.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is no TOML.", f"{error}.", GUIDE) from error
    if unknown := [key for key in content if key not in KEYS]:
        raise ConfigError(f"{name}: a study has no {unknown[0][:80]!r}.", f"It has {', '.join(KEYS)}.", GUIDE)
    tables = _typed(content, "variants", dict, name)
    return AblationStudy(
        _typed(content, "question", str, name),
        tuple(_variant(variant, table, name) for variant, table in tables.items()),
        _typed(content, "profile", str, name) or "tiny",
        tuple(_seeds(content, name)),
        dict(_settings(_typed(content, "run", dict, name))),
        _typed(content, "own_bases", bool, name),
        tuple(map(str, _typed(content, "plugins", list, name))),
        _typed(content, "shared_start", bool, name),
    )


def _typed(content: Mapping[str, object], key: str, kind: type[T], name: str) -> T:
    """The value of ``key``, empty where there is none."""
    value = content.get(key, kind())
    if not isinstance(value, kind):
        raise ConfigError(f"{name}: {key} is not a {_KINDS[kind]}.", f"It is {str(value)[:80]!r}.", GUIDE)
    return value


_KINDS = {str: "text", dict: "table", bool: "true or false", list: "list"}


def _seeds(content: Mapping[str, object], name: str) -> list[int]:
    seeds = _typed(content, "seeds", list, name) or [0, 1, 2, 3, 4]
    if not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise ConfigError(f"{name}: seeds are whole numbers from 0 on.", f"They are {str(seeds)[:80]}.", GUIDE)
    return seeds


def _variant(name: str, table: object, file: str) -> Variant:
    if not isinstance(table, dict) or table.keys() - {"about", "run", "search"}:
        why = "A variant has `about`, `search`, and settings that begin with `run.`."
        raise ConfigError(f"{file}: the variant {name[:80]} is not one.", why, GUIDE)
    settings, about = dict(_settings(_typed(table, "run", dict, file))), _typed(table, "about", str, file)
    return Variant(name, settings, about, _typed(table, "search", str, file))


def _settings(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key below ``run``, value as it would be typed)."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _settings(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
