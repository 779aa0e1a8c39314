"""Part of the rim: what a study is asked to be: its file, variants, seeds and profile, as they were typed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent0.errors import ConfigError
from agent0.experiments.ablation_runs import seeds_of, study_of
from agent0.experiments.ablation_study import AblationStudy, Variant, study_of_file
from agent0.infra.storage.files import read_regular

LARGEST = 1 << 20
"""Bytes of a study file."""


@dataclass(frozen=True)
class StudyRequest:
    """A request to execute an ablation study. ``typed``: settings by dotted key as they were typed; ``profile``: as
    it was typed; ``command``: the words of the command line that make this request, but for ``--jobs``."""

    study: AblationStudy
    name: str
    profile: str
    seeds: tuple[int, ...]
    typed: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    jobs: int = 1
    command: tuple[str, ...] = ()


def read_study(file: Path | None, variants: Sequence[Variant] = ()) -> AblationStudy:
    """Read the study of ``file`` with ``variants`` added; without a file they are all of it. Its plugins are made
    absolute: they lie beside the file.

    Raises:
        ConfigError: the file cannot be read or is no study, or there are no two variants.
    """
    if file is None:
        return study_of(variants)
    try:
        text = read_regular(file, LARGEST).decode("utf-8")
    except (OSError, ValueError) as error:
        why = f"{getattr(error, 'strerror', None) or error}."
        raise ConfigError(f"The study {file} cannot be read.", why, "Name a study file, in TOML.") from error
    study = study_of_file(text, file.name)
    plugins = tuple(str((file.parent / plugin).absolute()) for plugin in study.plugins)
    return study_of(variants, replace(study, plugins=plugins))


def request_of(
    study: AblationStudy,
    typed: Mapping[str, str],
    *,
    file: Path | None = None,
    variants: Sequence[Variant] = (),
    name: str = "",
    profile: str | None = None,
    seeds: str | None = None,
    only: Sequence[str] = (),
    jobs: int = 1,
) -> StudyRequest:
    """Make a request from what was typed: what is empty is the study's own. A study without a name is named after its
    file and its profile, one without a file after its variants. ``variants`` are those beside the file's.

    Raises:
        ConfigError: seeds that are none.
    """
    chosen = profile or study.profile
    if chosen.endswith(".toml"):
        chosen = str(Path(chosen).absolute())
    title = file.stem if file else "-".join(variant.name for variant in study.variants)
    plugins = [*study.plugins, *json.loads(typed.get("plugins", "[]"))]
    return StudyRequest(
        study,
        name or f"{title}-{Path(chosen).stem}".lower()[:30].rstrip("-"),
        chosen,
        study.seeds if seeds is None else seeds_of(seeds),
        {**typed, "plugins": json.dumps(plugins)} if plugins else typed,
        tuple(only),
        jobs,
        tuple(_command(typed, file, variants, name, profile, seeds, only)),
    )


def _command(
    typed: Mapping[str, str],
    file: Path | None,
    variants: Sequence[Variant],
    name: str,
    profile: str | None,
    seeds: str | None,
    only: Sequence[str],
) -> Iterator[str]:
    """Files that were named by their whole path go by their names alone."""
    yield from ("agent0", "experiment", "ablation")
    if file:
        yield file.name if file.is_absolute() else str(file)
    for variant in variants:
        pairs = ",".join(f"{key}={text}" for key, text in variant.settings.items())
        yield from ("--variant", f"{variant.name}:{pairs}")
    flags = {"--name": name, "--profile": profile, "--seeds": seeds, "--only": ",".join(only)}
    for flag, text in flags.items():
        if text:
            yield from (flag, text)
    for plugin in json.loads(typed.get("plugins", "[]")):
        yield from ("--plugin", Path(plugin).name)
    for key, text in typed.items():
        if key not in ("home", "profile", "plugins"):
            yield from ("--set", f"{key}={text}")
