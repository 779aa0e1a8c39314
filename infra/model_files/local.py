"""A model's file that is on this machine already, or in a folder of it."""

from functools import partial
from pathlib import Path

from agent0.errors import NotFoundError
from agent0.infra.model_files.offers import Offer, copy
from agent0.settings.catalogue import CatalogueModel


def offer(entry: CatalogueModel, path: Path) -> Offer:
    """Offer the file ``path``, or the entry's file in the folder ``path``.

    Raises:
        NotFoundError: there is none.
    """
    file = path / entry.file if path.is_dir() else path
    if not file.is_file():
        fix = f"Name the file, or a folder that has {entry.file}: --from PATH; or one of hub, ollama, packages."
        raise NotFoundError(f"There is no file {file}.", fix=fix)
    return Offer(str(file), file.stat().st_size, "", partial(copy, file))
