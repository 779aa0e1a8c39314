"""Part of the rim: where the files of users lie that runs of a data folder were given. A run records their digests
only: its log may be given away."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent0.registry import LOADED
from agent0.settings import Settings

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


def _read(home: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        remembered = json.loads((home / FILE).read_text(encoding="utf-8"))
        return remembered if isinstance(remembered, dict) else {}
    return {}
