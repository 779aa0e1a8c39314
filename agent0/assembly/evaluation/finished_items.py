"""Part of the rim: items of an evaluation that no run carries, kept in a file until its outcome is recorded, so that a
command that was killed goes on with the items that are left."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from pydantic import TypeAdapter

from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.item_rollout import RolloutPorts, attempt_all
from agent0.events.base import sha256
from agent0.events.checkpoints import EvaluationRequested
from agent0.run.lifecycle import RunState
from agent0.settings import RunConfig, Settings

FOLDER = "evaluating"
T = TypeVar("T")


@dataclass(frozen=True)
class FinishedItems:
    """The finished items of evaluations under way, a file each in ``folder``. Every line is synced before the next item
    begins, and a line that was cut short by a kill is an item that is attempted again."""

    folder: Path

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Those of the data folder that ``settings`` name."""
        return cls(settings.home / FOLDER)

    async def attempt(self, request: EvaluationRequested, run: RunState, ports: RolloutPorts) -> list[ScoredItem]:
        """Attempt the items of ``request`` that are not finished; returns all of them, in set order. Errors as for
        ``attempt_item``."""
        with self.opened(_key(request, run.config), ScoredItem) as (finished, add):
            return await attempt_all(request, run, ports, finished, add)

    def forget(self, request: EvaluationRequested, config: RunConfig) -> None:
        """Delete the items of ``request``, whose outcome is recorded."""
        self.drop(_key(request, config))

    @contextmanager
    def opened(self, key: str, kind: type[T]) -> Iterator[tuple[dict[int, T], Callable[[int, T], None]]]:
        """Yield the finished items of the evaluation that ``key`` decides, by number, and what writes one down."""
        path, adapter = self._path(key), TypeAdapter(kind)
        finished = _read(path, adapter)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _AppendedFile(path) as lines:
            yield finished, lambda number, item: lines.add(number, adapter.dump_python(item, mode="json"))

    def drop(self, key: str) -> None:
        """Delete the items of the evaluation that ``key`` decides."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{sha256(key)[:32]}.jsonl"


def _key(request: EvaluationRequested, config: RunConfig) -> str:
    """Everything that decides an item: the request, and the settings it is attempted and verified under."""
    return request.model_dump_json() + config.model_dump_json()


class _AppendedFile:
    """A file that is added to, line by line."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("ab")

    def __enter__(self) -> Self:
        if self._file.tell():
            self._file.write(b"\n")  # behind a line that was cut short
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, number: int, item: object) -> None:
        """Write item ``number``, as JSON values, to the disk."""
        self._file.write(json.dumps({"number": number, "item": item}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _read(path: Path, adapter: TypeAdapter[T]) -> dict[int, T]:
    """The items of a file, by number; of none where it is not there."""
    items: dict[int, T] = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        with suppress(ValueError):  # blank, or cut short
            entry = json.loads(line)
            items[entry["number"]] = adapter.validate_python(entry["item"])
    return items
