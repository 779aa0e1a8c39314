"""A folder of mined tasks (``agent0 task mine``) as rows of a run, and the files that these name."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from agent0.errors import ConfigError, DependencyError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.files import read_regular
from agent0.ports.storage import Artifacts, Dataset

LARGEST = 16 << 20
"""Bytes of what is written of one task."""
_TASKS, _SOLUTIONS = "tasks", "solutions"


def is_mined(folder: Path) -> bool:
    """Whether ``folder`` has been filled with tasks by ``agent0 task mine``."""
    return (folder / _TASKS).is_dir() and (folder / _SOLUTIONS).is_dir()


def read_mined_tasks(folder: Path) -> Dataset:
    """Read the tasks of ``folder``, in the order of their names: a line of JSON for each, with the task, the manifest
    of its reference, and digest and size of what decides; of an environment's episode the task alone. What was accepted
    is known by the digests of all.

    Raises:
        ConfigError: a task is damaged, or has no solution.
    """
    lines, digests = [], []
    for path in sorted((folder / _TASKS).glob("*.json")):
        solution_path = folder / _SOLUTIONS / path.name
        try:
            task = read_regular(path, LARGEST)
            if "episode" in (parsed := json.loads(task)):
                lines.append(json.dumps({"task": parsed}))
                digests.append(f"{path.name} {hashlib.sha256(task).hexdigest()}\n")
                continue
            solution = read_regular(solution_path, LARGEST)
            reference = json.loads(solution)["code"]
            hidden = Artifact(sha256=hashlib.sha256(solution).hexdigest(), size=len(solution))
            line = {"task": parsed, "reference": reference, "hidden": hidden.model_dump()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = f"{type(error).__name__}: {error}."[:200]
            fix = "Mine it again, or take its file out of tasks/."
            raise ConfigError(f"The mined task {path} cannot be read.", why, fix) from error
        lines.append(json.dumps(line))
        digests.append(f"{path.name} {hashlib.sha256(task).hexdigest()} {hidden.sha256}\n")
    return Dataset(folder.name, "\n".join(lines), hashlib.sha256("".join(digests).encode()).hexdigest(), mined=True)


class MinedFiles(Artifacts):
    """The files that tasks of mined ``folders`` name, what decides about each task among them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder for folder in folders if is_mined(folder)]

    @cached_property
    def _solutions(self) -> dict[str, Path]:
        paths = (path for folder in self._folders for path in sorted((folder / _SOLUTIONS).glob("*.json")))
        return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in paths}

    def get(self, artifact: Artifact) -> bytes:
        """As ``Artifacts.get``."""
        if artifact.sha256 in self._solutions:
            return self._solutions[artifact.sha256].read_bytes()
        for folder in self._folders:
            try:
                return FileArtifacts(folder).get(artifact)
            except NotFoundError:
                continue
        raise NotFoundError(f"File {artifact.sha256[:12]} is in no folder of mined tasks.", "", "Mine the task again.")

    def put(self, data: bytes, media: str = "application/octet-stream") -> Artifact:
        """Refuse: a run adds nothing to the folders.

        Raises:
            DependencyError: always.
        """
        raise DependencyError("The folder of mined tasks", "Only task mine adds to it.")

    def discard(self, artifact: Artifact) -> None:
        """Keep it: it is no run's."""
