"""The built-in small models, packaged in ``infra/tiny``: ``base`` calls tools, ``climb`` reverses
short strings of digits, which ``climb_teacher`` writes, ``long`` does tasks of several steps."""

from pathlib import Path

from agent0.errors import ConfigError
from agent0.infra.models.transformers import Transformers
from agent0.ports.storage import Artifacts

FOLDER = Path(__file__).parents[1] / "tiny"
BASE = FOLDER / "base"
PACKAGED = {"": BASE, "tools": BASE} | {name: FOLDER / name for name in ("climb", "climb_teacher", "long")}

FIX = "Choose one of them, or name a folder: --set run.<role>.provider=transformers --set run.<role>.model=FOLDER"


def packaged(name: str) -> Path:
    """The folder of a built-in model, by the course it was taught; the one that calls tools where ``name`` is empty.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in PACKAGED:
        names = ", ".join(filter(None, PACKAGED))
        raise ConfigError(f"There is no built-in model {name[:80]!r}.", f"Known: {names}.", FIX)
    return PACKAGED[name]


def tiny(artifacts: Artifacts, *, threads: int = 1, max_batch: int = 256, path: Path = BASE) -> Transformers:
    """A packaged model, or another one made by the same build at ``path``."""
    return Transformers(path, artifacts, name="tiny", threads=threads, max_batch=max_batch)
