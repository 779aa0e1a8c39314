"""A task folder of Harbor as others write it: read where its environment needs no build, refused by name where it does.

What it needs beside a plain image cannot be had in the sandbox, so nothing is guessed.
"""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile, groupby

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agent0.errors import ConfigError

APP = "/app"
"""The folder that an agent works in: the work folder."""
OWN = ("tests", "logs", "solution")
"""What lies in the work folder while a task is judged, under these names at the root of the file system, too."""
STATEMENT, SCRIPT, SOLUTION = "instruction.md", "tests/test.sh", "solution/solve.sh"
_DOCKERFILE = "environment/Dockerfile"
LONGEST_NAME = 100
PRESENT = frozenset(
    ("bash", "ca-certificates", "coreutils", "curl", "pytest", "pytest-json-ctrf", "python3", "python3-pip")
)
"""What an image may install: it is here, or of use with a network alone."""
_plain = re.compile(
    r"(?:docker\.io/|public\.ecr\.aws/docker/)?(?:library/)?(?:python|ubuntu|debian)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?"
)
_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _HarborTable(BaseModel):
    """A table of ``task.toml``; what a later version adds is not looked at."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _TestsTable(_HarborTable):
    timeout_sec: float = Field(600.0, gt=0, le=86_400)
    environment_mode: str | None = None


class _ImageTable(_HarborTable):
    docker_image: str | None = None
    gpus: int | None = None
    mcp_servers: list[JsonValue] = Field(default_factory=list)


class _TaskTable(_HarborTable):
    verifier: _TestsTable = _TestsTable()
    environment: _ImageTable = _ImageTable()
    steps: list[JsonValue] | None = None


@dataclass(frozen=True)
class HarborTask:
    """A task: what is asked, the files of ``/app`` that an agent begins with, those of ``tests`` and ``solution`` with
    these names in front, and the seconds that the tests may take."""

    name: str
    statement: str
    start: Mapping[str, bytes]
    tests: Mapping[str, bytes]
    solution: Mapping[str, bytes]
    seconds: float


def read_harbor_task(name: str, files: Mapping[str, bytes]) -> HarborTask:
    """Read the ``files`` of a task folder, by path in it.

    Raises:
        ConfigError: a file is missing or none of Harbor's, or the task needs what no plain image has: it is
            named with file, and with line or field.
    """
    if not _name.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ConfigError(f"{name[:80]!r} is no name of a task.", "It is letters, digits, dots, dashes.", "Rename it.")
    for needed in ("task.toml", STATEMENT, SCRIPT, SOLUTION):
        if needed not in files:
            raise ConfigError(f"{name} has no {needed}.", "It is no task of Harbor, or one of another system.")
    config = _config(name, _text(name, "task.toml", files))
    statement = _text(name, STATEMENT, files).strip()
    if not statement:
        raise ConfigError(f"{name}/{STATEMENT} is empty.")
    start = dict(_start(name, config, files))
    if taken := sorted({path.partition("/")[0] for path in start} & {*OWN}):
        raise _refusal(name, _DOCKERFILE, f"{APP}/{taken[0]} would be the task's own {taken[0]} here")
    tests, solution = (_below(folder, files) for folder in ("tests", "solution"))
    start[STATEMENT] = files[STATEMENT]
    return HarborTask(name, statement, start, tests, solution, config.verifier.timeout_sec)


def _below(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path.startswith(f"{folder}/")}


def _refusal(name: str, where: str, why: str) -> ConfigError:
    return ConfigError(f"{name}/{where} cannot be used here.", why[:1].upper() + why[1:], "Leave the task out.")


def _text(name: str, path: str, files: Mapping[str, bytes]) -> str:
    try:
        return files[path].decode()
    except UnicodeDecodeError as error:
        raise _refusal(name, path, f"it is no UTF-8: {error.reason} at byte {error.start}") from error


def _config(name: str, text: str) -> _TaskTable:
    try:
        config = _TaskTable.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _refusal(name, "task.toml", str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise _refusal(name, "task.toml", f"field {field}: {first['msg']}") from error
    if needs := _needs(config):
        raise _refusal(name, "task.toml", f"field {needs}")
    return config


def _needs(config: _TaskTable) -> str:
    """The field that asks for more than there is here, and why; empty where none does."""
    environment = config.environment
    fields = {
        "steps: it has several": config.steps,
        "environment.gpus: it needs a GPU": environment.gpus,
        "environment.mcp_servers: it needs servers": environment.mcp_servers,
        "environment.docker_image: it is no plain image": not _plain.fullmatch(environment.docker_image or "python"),
        "verifier.environment_mode: its tests have an image of their own": config.verifier.environment_mode
        == "separate",
    }
    return next((field for field, asks in fields.items() if asks), "")


def _start(name: str, config: _TaskTable, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The files that the image puts into ``/app``.

    Raises:
        ConfigError: the image is built by more than copying files.
    """
    others = {path for path in files if path.startswith("environment/")} - {_DOCKERFILE}
    if _DOCKERFILE not in files:
        if not config.environment.docker_image or others:
            raise _refusal(name, "environment", "it has no Dockerfile")
        return
    based = False
    for number, parts in _instructions(_text(name, _DOCKERFILE, files)):
        where, instruction = f"{_DOCKERFILE}, line {number},", parts[0].upper()
        if instruction == "FROM" and len(parts) == 2 and not based and _plain.fullmatch(parts[1]):
            based = True
        elif _changes_nothing(instruction, parts[1:]):
            continue
        elif instruction == "COPY" and len(parts) > 2 and not parts[1].startswith(("-", "[")):
            yield from _copied(name, where, parts[1:-1], parts[-1], files)
        else:
            what = " ".join(parts)[:80]
            raise _refusal(name, where, f"{what!r} needs a build, and there is none here")
    if not based:
        raise _refusal(name, _DOCKERFILE, "it names no plain image")


def _changes_nothing(instruction: str, words: list[str]) -> bool:
    """Whether an image without it is the same here: it names the work folder, or installs what is present."""
    if instruction == "WORKDIR":
        return words in ([APP], [f"{APP}/"])
    commands = groupby(dropwhile(lambda word: word.startswith("--"), words), lambda word: word == "&&")
    return instruction == "RUN" and all(and_ or _is_present(list(command)) for and_, command in commands)


def _is_present(command: list[str]) -> bool:
    """Whether nothing is missing here where ``command`` is not run."""
    match [word for word in command if not word.startswith("-")]:
        case ["apt-get" | "apt", "update"] | ["rm", "/var/lib/apt/lists/*"] | ["mkdir", "/app"]:
            return True
        case ["apt-get" | "apt" | "pip" | "pip3", "install", *packages]:
            return {package.partition("=")[0] for package in packages} <= PRESENT
    return False


def _instructions(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line, from 1, and words of each instruction; those that a backslash continues are one."""
    pending, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first if pending else number
        pending += line.rstrip().removesuffix("\\") + " "
        if not line.rstrip().endswith("\\"):
            yield first, _tokens(pending)
            pending = ""
    if pending:
        yield first, _tokens(pending)


def _tokens(line: str) -> list[str]:
    try:
        return shlex.split(line) or [line]
    except ValueError:
        return [line]


def _copied(
    name: str, where: str, sources: list[str], target: str, files: Mapping[str, bytes]
) -> Iterator[tuple[str, bytes]]:
    """Files of ``environment`` that are copied to a place below ``/app``, by path there."""
    path_below = posixpath.normpath(posixpath.join(APP, target))
    if path_below != APP and not path_below.startswith(f"{APP}/"):
        raise _refusal(name, where, f"{target[:80]!r} is not below {APP}")
    is_folder = path_below == APP or target.endswith(("/", "/.")) or len(sources) > 1
    for source in sources:
        path = posixpath.normpath(posixpath.join("environment", source.lstrip("/")))
        if path in files and path.startswith("environment/"):
            copies = {posixpath.join(path_below, posixpath.basename(path)) if is_folder else path_below: path}
        else:
            inside = (entry for entry in files if entry.startswith(f"{path}/") and entry != _DOCKERFILE)
            copies = {posixpath.join(path_below, entry.removeprefix(f"{path}/")): entry for entry in inside}
        if not copies or path.partition("/")[0] != "environment":
            raise _refusal(name, where, f"there is no {source[:80]!r}")
        yield from ((copy.removeprefix(f"{APP}/"), files[entry]) for copy, entry in copies.items())
