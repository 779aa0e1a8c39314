"""The built-in small model, packaged in ``infra/tiny/base``."""

from pathlib import Path

from agent0.ports import Artifacts
from infra.models.transformers import Transformers

BASE = Path(__file__).parents[1] / "tiny" / "base"


def tiny(artifacts: Artifacts, *, threads: int = 1, max_batch: int = 256, path: Path = BASE) -> Transformers:
    """The packaged base, or another one made by the same build at ``path``."""
    return Transformers(path, artifacts, name="tiny", threads=threads, max_batch=max_batch)
