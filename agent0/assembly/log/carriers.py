"""Part of the rim: which processes of this machine execute the runs of a data folder. Each holds the lock of a file of
its own while it does, so that one that was killed is known to be gone."""

import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent0.assembly.log.waits import waits
from agent0.assembly.runtime.stamping import utc_now
from agent0.infra.bus import user_code
from agent0.infra.models.calls import first_words
from agent0.projections.base import Row
from agent0.registry import LOADED
from agent0.settings import Settings

if TYPE_CHECKING:
    from agent0.run.diagnosis.local_state import LocalState

FOLDER = "carriers"


@dataclass(frozen=True)
class Carrier:
    """A process that reacts to events. ``handlers``: how many of them it runs; ``since``: ISO 8601, UTC."""

    pid: int
    host: str
    handlers: int
    since: str


@contextmanager
def carrying(settings: Settings, handlers: int) -> Iterator[None]:
    """Make this process known as one that runs ``handlers`` handlers on the data folder of ``settings``."""
    folder = settings.home / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    remember_paths(settings)
    user_code.forget(settings.home)
    path = folder / f"{os.getpid()}-{secrets.token_hex(3)}.json"
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(asdict(Carrier(os.getpid(), socket.gethostname(), handlers, utc_now().isoformat()))))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def carriers(settings: Settings) -> list[Carrier] | None:
    """Processes that execute the runs of this data folder now; None where its log's server is an external one, which
    processes of other machines use, too."""
    processes = []
    for path in sorted((settings.home / FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, TypeError), path.open(encoding="utf-8") as file:
            if _is_locked(file.fileno()):
                processes.append(Carrier(**json.loads(file.read())))
            else:
                path.unlink(missing_ok=True)
    return None if settings.nats.url and not processes else processes


def carried(settings: Settings, rows: Iterable[Mapping[str, object]]) -> list[Row]:
    """``rows`` of runs with ``carried``: whether a process executes it, where it is running; None: it is not
    running, or that cannot be known here. Those that are wait for space where the disk has none."""
    by, full = carried_here(settings), waits(settings.home)
    return [
        {**row, "carried": by, "waits_for": row.get("waits_for") or full or None}
        if row["status"] == "running"
        else {**row, "carried": None}
        for row in rows
    ]


def carried_here(settings: Settings) -> bool | None:
    """Whether a process executes what is running in this data folder; None: it cannot be known here."""
    processes = carriers(settings)
    return None if processes is None else bool(processes)


def known_here(settings: Settings) -> "LocalState":
    """What this machine knows of the runs of a data folder that its tables do not: whether they are ``carried``, what
    a running one ``waits`` for (``first_word``: of a model server), in which ``user_code`` it stands, the limits of the
    ``sandbox``, and where the ``plugins`` lie that they were given (sha256 -> path)."""
    home = settings.home
    return {
        "carried": carried_here(settings),
        "plugins": known_paths(home),
        "waits": waits(home),
        "first_word": first_words.read(home),
        "user_code": user_code.read(home),
        "sandbox": settings.sandbox.model_dump(include={"wall_s", "mem_mib", "workers"}),
    }


def carrier_line(settings: Settings, run: str) -> str:
    """Say in one line who executes the running run ``run``."""
    running = carriers(settings)
    if running is None:
        return f"Run {run}: whether a process on another machine carries it cannot be seen from here."
    if not running:
        return f"No process executes run {run}: it is stopped. Continue it with: agent0 run resume {run}"
    processes = ", ".join(
        f"process {process.pid} on {process.host} since {process.since[11:19]}" for process in running
    )
    return f"Run {run} is executed by {processes} UTC."


def _is_locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(number, fcntl.LOCK_UN)
    return False


FILE = "plugin-paths.json"


def remember_paths(settings: Settings) -> None:
    """Write down where the loaded files of ``settings.plugins`` lie, by sha256; what cannot be written is not known
    later."""
    paths = {LOADED[path.stem]: str(path.absolute()) for path in settings.plugins if path.stem in LOADED}
    remembered = _read(settings.home)
    if paths and remembered | paths != remembered:
        with suppress(OSError):
            (settings.home / FILE).write_text(json.dumps(remembered | paths, indent=1), encoding="utf-8")


def known_paths(home: Path) -> dict[str, str]:
    """The paths of the files that runs of ``home`` were given and that still are there, by sha256."""
    return {digest: path for digest, path in _read(home).items() if Path(path).is_file()}


def _read(home: Path) -> dict[str, str]:
    with suppress(OSError, ValueError):
        remembered = json.loads((home / FILE).read_text(encoding="utf-8"))
        return remembered if isinstance(remembered, dict) else {}
    return {}
